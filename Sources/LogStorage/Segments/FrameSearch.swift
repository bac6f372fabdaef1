// Finds the frame of a position in a segment without a footer: walks from block to block by their sizes,
// without decoding them, then bisects among the frames. Spec/format/following.md.

import LogFormat

/// The search for a frame in a live segment.
enum FrameSearch {
    /// The last frame that begins at or before a position; the first one if there is none. An unreadable
    /// frame counts as after the position, so that the reader reports the damage when it gets there.
    ///
    /// - Complexity: O(bytes of the segment), and O(log frames) blocks to decode.
    static func frame(
        of position: Position, in file: any File, from base: Position
    ) throws(FileError) -> FrameEntry {
        let first = FrameEntry(offset: SegmentHeader.encodedBytes, first: base)
        guard position > base else { return first }
        let offsets = try offsets(of: file)
        var found = first
        var low = 1
        var high = offsets.count
        while low < high {
            let middle = (low + high) / 2
            var scanner = SegmentScanner(
                file, at: offsets[middle], expecting: base, allowsHoles: true)
            if case .commit(let commit) = try scanner.next(),
                commit.positions.lowerBound <= position
            {
                found = FrameEntry(
                    offset: offsets[middle], first: commit.positions.lowerBound)
                low = middle + 1
            } else {
                high = middle
            }
        }
        return found
    }

    /// The offsets of the frames, up to the first place where none begins.
    private static func offsets(of file: any File) throws(FileError) -> [Int] {
        var offsets: [Int] = []
        var window = FileWindow(file)
        var offset = SegmentHeader.encodedBytes
        // The offset in the window of the `count` bytes at a file offset; nil if the file ends before.
        func load(_ at: Int, _ count: Int) throws(FileError) -> Int? {
            try window.load(at, count) == count ? at - window.start : nil
        }
        while let at = try load(offset, FrameHeader.bigCommitBytes),
            let header = try? FrameHeader(window.bytes.span.bytes, at: at)
        {
            offsets.append(offset)
            offset += header.encodedBytes
            while let at = try load(offset, FrameHeader.endMarkBytes),
                let block = try? BlockHeader.read(window.bytes.span.bytes.integer(at: at))
            {
                offset += block.blockBytes
            }
            offset += FrameHeader.endMarkBytes
        }
        return offsets
    }
}
