// Caches the most recently used decoded frames. Lookups of neighbouring events, as in a repeated import,
// then decode each frame twice: up to the first line, then in full.

import LogFormat
import Synchronization

/// A decoded frame.
package struct DecodedFrame: Sendable {
    package var plaintext: [UInt8]
    package var lines: [ScannedLine]

    /// The line with an id.
    package func line(id: UInt128) -> ScannedLine? { lines.first { $0.prefix.id == id } }

    /// The position and the bytes of the line with an id.
    func copy(ofLineWith id: UInt128) -> (position: Position, bytes: [UInt8])? {
        line(id: id).map { ($0.prefix.position, Array(plaintext[$0.range])) }
    }

    /// The line at a position. O(log n).
    package func line(at position: Position) -> ScannedLine? {
        let index = lines.partitioningIndex { $0.prefix.position >= position }
        return index < lines.count && lines[index].prefix.position == position ? lines[index] : nil
    }

    /// Reads the frame at an offset.
    static func read(
        _ file: any File, path: String, _ entry: FrameEntry, allowsHoles: Bool
    ) throws(LogError) -> DecodedFrame {
        var scanner = SegmentScanner(
            file, at: entry.offset, expecting: entry.first, allowsHoles: allowsHoles)
        var frame = DecodedFrame(plaintext: [], lines: [])
        var end = entry.offset
        while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            guard case .commit(let commit) = step, commit.frameOffset == entry.offset else {
                // Damage at this frame's next block belongs to this frame: unreadable lines must not look
                // like missing ones.
                if case .damage(let damage) = step, frame.lines.isEmpty || damage.offset == end {
                    throw LogError(damage.error, path: path, offset: damage.offset)
                }
                break
            }
            // A big commit is a frame of its own. The next one may be as big, and would be decoded in vain.
            if commit.isBig {
                frame = DecodedFrame(
                    plaintext: scanner.extractPlaintext(), lines: commit.lines)
                break
            }
            end = commit.end
            frame.lines.append(contentsOf: commit.lines)
            frame.plaintext += scanner.plaintext[frame.plaintext.count..<scanner.plaintextBytes]
        }
        guard frame.lines.first?.prefix.position == entry.first else {
            throw LogError(
                .corrupt, path: path, offset: entry.offset,
                positions: entry.first...entry.first,
                "no frame with this first position begins here")
        }
        return frame
    }
}

/// A frame in a file, with everything that is needed to read it without the log's lock.
struct StoredFrame {
    let segment: Position
    let file: any File
    let path: String
    let entry: FrameEntry
    let allowsHoles: Bool
    /// True for the last frame of the live segment, which may get more blocks.
    let mayGrow: Bool

    init(_ entry: FrameEntry, of segment: SealedSegment) {
        self.segment = segment.header.base
        (file, path) = (segment.file, segment.path)
        self.entry = entry
        allowsHoles = segment.footer.isCompacted
        mayGrow = false
    }

    /// The frame at an index of the live segment.
    init(at index: Int, of contents: SegmentContents, _ reading: (file: any File, path: String)) {
        segment = contents.base
        (file, path) = reading
        entry = contents.frames[index]
        allowsHoles = false
        mayGrow = index == contents.frames.count - 1
    }

    /// The line with an id, by decoding the frame up to it.
    func line(id: UInt128) throws(LogError) -> (position: Position, bytes: [UInt8])? {
        try LineSearch.line(id: id, in: file, path: path, entry, allowsHoles: allowsHoles)
    }
}

/// The most recently used frames of a log's segments.
///
/// A log replaces its cache when its files change. A reader that still decodes a frame of the old files then leaves
/// it in the old cache.
final class FrameCache: Sendable {
    private struct Key: Equatable {
        let segment: Position
        let first: Position
        init(_ frame: StoredFrame) { (segment, first) = (frame.segment, frame.entry.first) }
    }

    private struct Content {
        /// The frames, latest first.
        var frames: [(key: Key, frame: DecodedFrame, mayHaveGrown: Bool)] = []
        /// The frames in which lines were searched last.
        var searched: [Key] = []
    }

    private let content = Mutex(Content())
    private static let countMax = 4

    /// True if a frame is cached or was searched lately: then further lookups in it are likely, and it is worth
    /// decoding in full.
    func isWorthDecoding(_ frame: StoredFrame) -> Bool {
        let key = Key(frame)
        return content.withLock { content in
            let isKnown =
                content.frames.contains { $0.key == key } || content.searched.contains(key)
            guard !isKnown else { return true }
            content.searched.insert(key, at: 0)
            if content.searched.count > Self.countMax { content.searched.removeLast() }
            return false
        }
    }

    /// The decoded frame, from the cache or from the file.
    ///
    /// - Parameter isWanted: called with a cached copy that may lack later blocks; false reads the frame again.
    func decoded(
        _ frame: StoredFrame, isWanted: (DecodedFrame) -> Bool
    ) throws(LogError) -> DecodedFrame {
        let key = Key(frame)
        let known = content.withLock { content -> (frame: DecodedFrame, mayHaveGrown: Bool)? in
            guard let index = content.frames.firstIndex(where: { $0.key == key }) else {
                return nil
            }
            let known = content.frames.remove(at: index)
            content.frames.insert(known, at: 0)
            return (known.frame, known.mayHaveGrown)
        }
        if let known, !known.mayHaveGrown || isWanted(known.frame) { return known.frame }
        let decoded = try DecodedFrame.read(
            frame.file, path: frame.path, frame.entry, allowsHoles: frame.allowsHoles)
        content.withLock { content in
            content.frames.removeAll { $0.key == key }
            content.frames.insert((key, decoded, frame.mayGrow), at: 0)
            if content.frames.count > Self.countMax { content.frames.removeLast() }
        }
        return decoded
    }
}
