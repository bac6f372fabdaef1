// Caches the most recently used decoded frames. Lookups of neighbouring events, as in a repeated import,
// then decode each frame twice: up to the first line, then in full.

import LogFormat

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
                guard frame.lines.first?.prefix.position == entry.first else {
                    throw LogError(
                        .corrupt, path: path, offset: entry.offset,
                        positions: entry.first...entry.first,
                        "no frame with this first position begins here")
                }
                return frame
            }
            end = commit.end
            frame.lines.append(contentsOf: commit.lines)
            frame.plaintext += scanner.plaintext[frame.plaintext.count..<scanner.plaintextBytes]
        }
    }
}

/// The most recently used frames, latest first.
struct FrameCache {
    private var frames: [(segment: Position, first: Position, frame: DecodedFrame)] = []
    private static let countMax = 4
    /// The frames in which lines were searched last.
    private var searched: [(segment: Position, first: Position)] = []

    /// True if a frame is cached or was searched lately: then further lookups in it are likely, and it is worth
    /// decoding in full.
    mutating func isWorthDecoding(segment: Position, first: Position) -> Bool {
        let isKnown =
            frames.contains { $0.segment == segment && $0.first == first }
            || searched.contains { $0 == (segment, first) }
        guard !isKnown else { return true }
        searched.insert((segment, first), at: 0)
        if searched.count > Self.countMax { searched.removeLast() }
        return false
    }

    /// The frame of a segment that begins at a position, from the cache if `isCurrent` accepts it, otherwise
    /// from `read`.
    mutating func frame(
        segment: Position, first: Position, read: () throws(LogError) -> DecodedFrame,
        isCurrent: (DecodedFrame) -> Bool
    ) throws(LogError) -> DecodedFrame {
        if let index = frames.firstIndex(where: { $0.segment == segment && $0.first == first }) {
            let known = frames.remove(at: index)
            if isCurrent(known.frame) {
                frames.insert(known, at: 0)
                return known.frame
            }
        }
        let frame = try read()
        frames.insert((segment, first, frame), at: 0)
        if frames.count > Self.countMax { frames.removeLast() }
        return frame
    }
}
