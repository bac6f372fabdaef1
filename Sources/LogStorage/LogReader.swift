// Reads a log without its lock, in this process or another, while a writer goes on. Whatever looks
// bad at the live end is read again before it is believed. Spec/recovery.md, REC-6.

import LogFormat

/// A reader of a log's lines, in order.
package struct LogReader: Sendable {
    /// What a read came to.
    package struct Outcome: Hashable, Sendable {
        /// The last position that was read; `zero` if the log has no lines.
        package var last: Position
        /// Bytes behind the last commit that the next writer will cut.
        package var tornTail: TornTail?
        /// Whether a writer left, or still has, the log open.
        package var isOpenEnded: Bool
    }

    /// The folder.
    package let directory: String
    private let fileSystem: any FileSystem
    /// How often a bad live end is read again before it is called damaged.
    private static let attemptsMax = 4

    /// Creates a reader. Nothing is opened yet.
    package init(_ directory: String, fileSystem: any FileSystem = POSIXFileSystem()) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    /// Calls `body` with every line whose position is at least `first`, in order.
    ///
    /// - Parameter body: gets the line's prefix and its bytes without newline; returns false to
    ///   stop.
    /// - Throws: `LogError` (`noSuchLog`, `notALog`, `corrupt`, `newerVersion`, …) after all intact
    ///   lines before the place were delivered, and whatever `body` throws.
    /// - Complexity: O(bytes from the frame of `first` on); memory for one frame.
    @discardableResult
    package func forEachLine(
        from first: Position = Position(1),
        _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> Outcome {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard !names.isEmpty else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        var outcome = Outcome(last: .zero, tornTail: nil, isOpenEnded: false)
        var next = Position(1)
        var logID: UInt128?
        for (number, name) in names.enumerated() {
            let path = directory + "/" + name
            guard let base = SegmentName.base(name), base == next else {
                throw LogError(
                    .corrupt, path: path, positions: next...next,
                    "the segment is named for another position than \(next), which belongs here: "
                        + "a segment file is missing or was added")
            }
            if number < names.count - 1 {
                let segment = try SealedSegment(name, in: directory, fileSystem)
                try segment.header.check(isOf: &logID, path)
                next = segment.footer.coveredThrough.next
                outcome.last = segment.footer.coveredThrough
                guard next > first else { continue }
                guard try segment.forEachLine(from: first, body) else { return outcome }
            } else {
                try readLast(name, from: first, &logID, &outcome, body)
            }
        }
        return outcome
    }

    /// What the log's files say without being read.
    package func files() throws(LogError) -> (
        segments: Int, bytes: Int, logID: String, account: String?
    ) {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        var bytes = 0
        var header: SegmentHeader?
        for name in names {
            let path = directory + "/" + name
            let file = try storage { () throws(FileError) in try fileSystem.open(path, .read) }
            bytes += try storage { () throws(FileError) in try file.size() }
            guard header == nil else { continue }
            let start = try storage { () throws(FileError) in
                try file.read(at: 0, count: SegmentHeader.encodedBytes)
            }
            header = try? SegmentHeader(start.span.bytes)
        }
        var id: [UInt8] = []
        LineText.append(uuid: header?.logID ?? 0, to: &id)
        return (names.count, bytes, String(decoding: id, as: UTF8.self), header?.account)
    }

    /// States before this position cannot be rebuilt: compaction has taken out lines that they
    /// followed from. `zero` if nothing was ever taken out.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(segments).
    package func compactedThrough() throws(LogError) -> Position {
        var through = Position.zero
        for name in try LogDirectory.segments(of: directory, fileSystem) {
            let footer = try storage { () throws(FileError) in
                try SegmentFooter.read(
                    atEndOf: try fileSystem.open(directory + "/" + name, .read))
            }
            through = max(through, footer?.footer.compaction?.through ?? .zero)
        }
        return through
    }

    private func readLast(
        _ name: String, from first: Position, _ logID: inout UInt128?, _ outcome: inout Outcome,
        _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws {
        let path = directory + "/" + name
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        let file = try Recovery.openToRead(name, in: directory, fileSystem)
        var stopped = false
        var delivered = Position.zero
        var attempt = 1
        while true {
            do {
                let last = try recovery.judge(name, file: file) { prefix, line in
                    guard !stopped, prefix.position >= first, prefix.position > delivered else {
                        return
                    }
                    delivered = prefix.position
                    stopped = try !body(prefix, line)
                }
                guard !stopped else { return }
                switch last {
                case .unfinished: outcome.isOpenEnded = true
                case .sealed(let footer, _, _): outcome.last = footer.coveredThrough
                case .closed(let live): try finish(live, path, &logID, &outcome)
                case .live(let live):
                    outcome.isOpenEnded = true
                    try finish(live, path, &logID, &outcome)
                case .torn(let live, let tail):
                    // A writer in the middle of its write looks the same: look again.
                    if attempt < Self.attemptsMax {
                        attempt += 1
                        continue
                    }
                    outcome.isOpenEnded = true
                    outcome.tornTail = tail
                    try finish(live, path, &logID, &outcome)
                }
                return
            } catch let error as LogError where error.code == .corrupt {
                guard attempt < Self.attemptsMax else { throw error }
                attempt += 1
            }
        }
    }

    private func finish(
        _ live: LiveSegment, _ path: String, _ logID: inout UInt128?, _ outcome: inout Outcome
    ) throws(LogError) {
        try live.header.check(isOf: &logID, path)
        outcome.last = max(outcome.last, Position(live.contents.next.rawValue - 1))
    }
}

extension SealedSegment {
    /// Calls `body` with every line from a position on; false from it stops.
    ///
    /// - Parameter check: called between commits; what it throws ends the reading.
    /// - Returns: false if `body` stopped.
    package func forEachLine(
        from first: Position, betweenCommits check: () throws -> Void = {},
        _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> Bool {
        guard !footer.frames.isEmpty else { return true }
        var frame = footer.frames.frame(of: first)
        let entry = footer.frames[frame]
        var scanner = SegmentScanner(
            file, at: entry.offset, expecting: entry.first, allowsHoles: footer.isCompacted)
        while true {
            try check()
            let step = try storage { () throws(FileError) in try scanner.next() }
            switch step {
            case .commit(let commit):
                if commit.beginsFrame {
                    // Where holes are legal, positions do not tell that a frame is missing.
                    try self.check(commit, is: frame)
                    frame += 1
                }
                for line in commit.lines where line.prefix.position >= first {
                    let bytes = scanner.plaintext.span.bytes.extracting(line.range)
                    guard try body(line.prefix, bytes) else { return false }
                }
            case .tail(.footer, let offset):
                let last = Position(scanner.expected.rawValue - 1)
                guard offset == footerAt, last == footer.lines?.upperBound,
                    footer.isCompacted || last == footer.coveredThrough,
                    frame == footer.frames.count
                else {
                    throw LogError(
                        .corrupt, path: path, offset: offset,
                        "the segment ends at position \(last); its footer says "
                            + "\(footer.lines?.upperBound ?? .zero), and that it covers "
                            + "\(footer.coveredThrough)")
                }
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

    private func check(_ commit: ScannedCommit, is number: Int) throws(LogError) {
        let entry = FrameEntry(
            offset: commit.frameOffset, first: commit.positions.lowerBound)
        guard number < footer.frames.count, footer.frames[number] == entry else {
            throw LogError(
                .corrupt, path: path, offset: commit.frameOffset, positions: commit.positions,
                "the segment's footer does not name the frame that begins here")
        }
    }

    /// The positions that damage at an offset takes along: from the first unread one to the end of
    /// its frame.
    package func positions(from first: Position, after offset: Int) -> ClosedRange<Position> {
        let next = footer.frames.first { $0.offset > offset }?.first
        let last = next.map { Position($0.rawValue - 1) } ?? footer.coveredThrough
        return first...max(first, last)
    }
}
