// The lines of a sealed segment, in order. Spec/format/segment.md.

import LogFormat

extension SealedSegment {
    /// Calls `body` with every line from a position on, until it returns false. A footer that contradicts the
    /// lines is an error after the last one.
    ///
    /// - Parameter check: called between commits; an error that it throws ends the reading.
    /// - Returns: false if `body` stopped the reading.
    package func forEachLine(
        from first: Position, betweenCommits check: () throws -> Void = {},
        _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> Bool {
        var (scanner, frames) = try scanner(from: first)
        // Counted only if the reading begins at the first frame.
        var count: UInt64? = frames == 0 ? 0 : nil
        var lowest = footer.lines?.lowerBound
        // In a segment with legal holes, positions do not reveal a missing frame; the frame list does.
        var areFramesListed = true
        while true {
            try check()
            let step = try storage { () throws(FileError) in try scanner.next() }
            switch step {
            case .commit(let commit):
                if commit.beginsFrame {
                    areFramesListed = areFramesListed && footer.lists(commit)
                    if frames == 0 { lowest = commit.positions.lowerBound }
                    frames += 1
                }
                count? += UInt64(commit.lines.count)
                for line in commit.lines where line.prefix.position >= first {
                    let bytes = scanner.plaintext.span.bytes.extracting(line.range)
                    guard try body(line.prefix, bytes) else { return false }
                }
            case .tail(.footer, let offset):
                let last = Position(scanner.expected.rawValue - 1)
                guard offset == footerAt, footer.lines == lowest.map({ $0...max($0, last) }),
                    footer.isCompacted || last == footer.coveredThrough,
                    areFramesListed, frames == footer.frames.count,
                    count ?? footer.eventCount == footer.eventCount
                else {
                    throw LogError(
                        .corrupt, path: path, offset: offset,
                        "the segment has positions \(lowest ?? .zero) to "
                            + "\(lowest == nil ? .zero : last)"
                            + (count.map { ", \($0) lines" } ?? "") + "; "
                            + footer.linesDescription
                            + (areFramesListed ? "" : "; its frame list names other frames"))
                }
                try checkIDIndex()
                return true
            case .tail(_, let offset):
                throw LogError(
                    .corrupt, path: path, offset: offset,
                    positions: positions(from: scanner.expected, after: offset),
                    "a sealed segment ends before its footer")
            case .damage(let damage):
                throw LogError(
                    .corrupt, path: path, offset: damage.offset,
                    positions: positions(from: scanner.expected, after: damage.offset),
                    damage.error.detail + " in a sealed segment. Nothing was changed")
            }
        }
    }

    /// A scanner that begins at the frame of a position, and the number of that frame. It begins at the
    /// first frame if the frame list is wrong about the other.
    private func scanner(
        from first: Position
    ) throws(LogError) -> (scanner: SegmentScanner, frame: Int) {
        let number = footer.frames.isEmpty ? 0 : footer.frames.frame(of: first)
        if number > 0 {
            let entry = footer.frames[number]
            let scanner = SegmentScanner(
                file, at: entry.offset, expecting: entry.first, allowsHoles: footer.isCompacted)
            var probe = scanner
            let step = try storage { () throws(FileError) in try probe.next() }
            if case .commit(let commit) = step, footer.lists(commit) { return (scanner, number) }
        }
        return (
            SegmentScanner(file, expecting: header.base, allowsHoles: footer.isCompacted), 0
        )
    }

    /// The positions that damage at an offset makes unreadable: from the first unread one to the end of its
    /// frame. Nil if there are none, as after the last line of a frame.
    package func positions(from first: Position, after offset: Int) -> ClosedRange<Position>? {
        let next = footer.frames.first { $0.offset > offset }?.first
        let last = next.map { Position($0.rawValue - 1) } ?? footer.lines?.upperBound ?? .zero
        return first <= last ? first...last : nil
    }
}

extension SegmentFooter {
    /// True if the frame list contains the frame of a commit.
    func lists(_ commit: ScannedCommit) -> Bool {
        let entry = FrameEntry(
            offset: commit.frameOffset, first: commit.positions.lowerBound)
        return !frames.isEmpty && frames[frames.frame(of: entry.first)] == entry
    }
}
