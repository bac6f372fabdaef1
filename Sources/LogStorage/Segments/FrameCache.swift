// The frames read last, decoded. Looking up events that lie together, as importing a file again
// does, then decodes each frame once.

import LogFormat

/// A decoded frame.
package struct DecodedFrame: Sendable {
    package var plaintext: [UInt8]
    package var lines: [ScannedLine]

    /// The line with an id.
    package func line(id: UInt128) -> ScannedLine? { lines.first { $0.prefix.id == id } }

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
                // Damage where this frame's next block should be is this frame's: what cannot be
                // read must not look as if it were not there.
                if case .damage(let damage) = step, frame.lines.isEmpty || damage.offset == end {
                    throw LogError(damage.error, path: path, offset: damage.offset)
                }
                guard frame.lines.first?.prefix.position == entry.first else {
                    throw LogError(
                        .corrupt, path: path, offset: entry.offset,
                        positions: entry.first...entry.first,
                        "the frame that should begin here does not")
                }
                return frame
            }
            end = commit.end
            frame.lines.append(contentsOf: commit.lines)
            frame.plaintext += scanner.plaintext[frame.plaintext.count..<scanner.plaintextBytes]
        }
    }
}

/// The frames read last, newest first.
struct FrameCache {
    private var frames: [(segment: Position, first: Position, frame: DecodedFrame)] = []
    private static let countMax = 4

    /// The cached frame of a segment that begins at a position.
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
