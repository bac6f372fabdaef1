// Reads a whole log and reports every damage with its location. Continues after damage at the next frame
// that the footer lists. Spec/format/recovery.md, REC-7.

import LogFormat

/// A damage or inconsistency in a log.
package struct Finding: Hashable, Sendable {
    /// The kind of damage.
    package var code: String
    /// The segment file.
    package var segment: String
    package var offset: Int?
    package var positions: ClosedRange<Position>?
    package var detail: String
    /// The positions whose lines cannot be read, in order; empty if there are none, or none is known.
    package var lost: [ClosedRange<Position>]
    /// False if lines after the last range of `lost` are lost as well, and their number is not known.
    package var lostEndIsKnown = true
    /// The file whose damage has caused this finding; nil for damage of its own.
    package var cause: String?

    package init(
        code: String, segment: String, offset: Int?, positions: ClosedRange<Position>?,
        detail: String, lost: [ClosedRange<Position>] = []
    ) {
        self.code = code
        self.segment = segment
        self.offset = offset
        self.positions = positions
        self.detail = detail
        self.lost = lost
    }

    /// Creates a finding from an error of a segment.
    init(_ error: LogError, in segment: String, lost: [ClosedRange<Position>] = []) {
        self.init(
            code: error.code.rawValue, segment: segment, offset: error.offset,
            positions: error.positions, detail: error.detail, lost: lost)
    }

    /// Sets the lost positions of a segment whose reading this error has ended.
    ///
    /// - Parameters:
    ///   - base: the first position of the segment.
    ///   - following: the first position of the next segment; nil for the last segment.
    ///   - lastRead: the last position that was read.
    fileprivate mutating func setLost(
        from base: Position, before following: Position?, lastRead: Position
    ) {
        if let following {
            // Only a damaged header ends the reading of such a segment, before its first line.
            if base < following { lost = [base...following.advanced(by: -1)] }
            return
        }
        let isInHeader = offset.map { $0 < SegmentHeader.encodedBytes } ?? false
        guard let first = isInHeader ? base : positions?.lowerBound, first > lastRead else {
            return
        }
        (lost, lostEndIsKnown) = ([first...first], false)
    }
}

/// The result of verification.
package struct VerificationSummary: Hashable, Sendable {
    package var segments = 0
    package var events = 0
    package var plaintextBytes = 0
    package var last = Position.zero
    package var findings: [Finding] = []
    /// The bytes after the last commit that the next writer will truncate. They are no damage.
    package var tornTail: TornTail?
    /// True if the log was closed in order.
    package var wasClosed = true
}

/// A verifier of a log, which reads it without its lock.
package struct LogVerifier {
    private let directory: String
    private let fileSystem: any FileSystem

    package init(_ directory: String, fileSystem: any FileSystem = POSIXFileSystem()) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    /// Reads the whole log.
    ///
    /// - Parameter line: called with every intact line; returns a description of its problem, or nil.
    /// - Throws: `LogError` if there is no log, it has a newer version, or a file cannot be read. Damage
    ///   is not thrown; it is in the summary.
    /// - Complexity: O(bytes); memory for one frame and one footer.
    package func verify(
        _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> VerificationSummary {
        // Before the segments are read: every position that a checkpoint names now is durable.
        let claims = CheckpointSlots(directory, fileSystem: fileSystem).claims()
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard !names.isEmpty else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        if let (name, reason) = try LogDirectory.misplaced(in: directory, fileSystem).first {
            throw LogError(
                .io, path: directory + "/" + name,
                reason + "; LogMaintenance.repair() or logtool repair moves it to quarantine")
        }
        var summary = VerificationSummary()
        var next = Position(1)
        var lastRead = Position.zero
        func check(_ prefix: LinePrefix, _ text: RawSpan) -> String? {
            lastRead = max(lastRead, prefix.position)
            return line(prefix, text)
        }
        var first: SegmentHeader?
        var end: SegmentEnd?
        for (number, name) in names.enumerated() {
            let base = SegmentName.base(name) ?? next
            if base != next {
                let gap = SealedSegments.gap(base, next)
                summary.findings.append(
                    Finding(
                        code: "missing-segment", segment: name, offset: nil, positions: gap,
                        detail: base > next
                            ? "positions \(next) to \(base.rawValue - 1) are in no segment"
                            : "the segment overlaps with the previous one",
                        lost: base > next ? [gap] : []))
            }
            let isLast = number == names.count - 1
            let following = isLast ? nil : SegmentName.base(names[number + 1])
            end = try verify(name, following, &first, &summary, check)
            if end == nil, let finding = summary.findings.indices.last {
                summary.findings[finding].setLost(
                    from: base, before: following, lastRead: lastRead)
            }
            next = end?.next ?? following ?? base
            summary.segments += 1
        }
        // If damage hides the end of the last segment, the last line that was read counts.
        summary.last = max(Position(next.rawValue - 1), lastRead)
        // The finding of a damaged last segment already names the first missing position.
        guard let end else { return summary }
        let name = names[names.count - 1]
        do throws(LogError) {
            try claims.check(
                next: end.next, of: first?.logID, location: (directory + "/" + name, end.offset))
        } catch {
            var finding = Finding(error, in: name, lost: error.positions.map { [$0] } ?? [])
            finding.lostEndIsKnown = false
            summary.findings.append(finding)
            // The torn tail belongs to the missing end, which was synced, and is no unfinished write.
            summary.tornTail = nil
        }
        return summary
    }

    /// The end of a segment.
    private struct SegmentEnd {
        /// The position with which the next segment must begin.
        var next: Position
        /// The offset after the last intact byte; nil unless it is the last segment.
        var offset: Int?
    }

    /// Verifies one segment.
    ///
    /// - Returns: nil if the segment is damaged and its end is not known.
    private func verify(
        _ name: String, _ following: Position?, _ first: inout SegmentHeader?,
        _ summary: inout VerificationSummary, _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> SegmentEnd? {
        let path = directory + "/" + name
        var findings: [Finding] = []
        defer { summary.findings += findings }
        do {
            guard let following else {
                return try verifyLast(name, path, &findings, &first, &summary, line)
            }
            return SegmentEnd(
                next: try verify(
                    name, path, before: following, &findings, &first, &summary, line))
        } catch let error as LogError
            where error.code == .corrupt || error.code == .notALog
        {
            findings.append(Finding(error, in: name))
            return nil
        }
    }

    /// Verifies a segment that others follow. If its footer is damaged, its lines are found frame by frame.
    private func verify(
        _ name: String, _ path: String, before following: Position, _ findings: inout [Finding],
        _ first: inout SegmentHeader?, _ summary: inout VerificationSummary,
        _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> Position {
        let (file, footer) = try storage { () throws(FileError) in
            let file = try fileSystem.open(path, .read)
            return (file, try SegmentFooter.read(atEndOf: file)?.footer)
        }
        guard footer == nil else {
            let segment = try SealedSegment(name, in: directory, fileSystem)
            try segment.header.check(isOf: &first, path)
            try verify(segment, &findings, &summary, line)
            return segment.footer.coveredThrough.next
        }
        let header = try SealedSegment.header(of: file, path)
        try header.check(isNamedFor: SegmentName.base(name), path)
        try header.check(isOf: &first, path)
        let segment = try UnsealedSegment(path, file: file, header: header, before: following)
        findings.append(Finding(segment.error, in: name, lost: segment.lost))
        guard segment.last >= header.base else { return following }
        try verifyLines(of: segment, name, &findings, &summary, line)
        // A compacted segment may cover more positions than it has lines. Lines lost at the end are already
        // part of the finding.
        return segment.salvage.isCompacted || segment.lacksLinesAtEnd
            ? following : segment.last.next
    }

    /// Verifies the lines of a segment that has no usable footer.
    private func verifyLines(
        of segment: UnsealedSegment, _ name: String, _ findings: inout [Finding],
        _ summary: inout VerificationSummary, _ line: (LinePrefix, RawSpan) -> String?
    ) throws {
        guard segment.last >= segment.header.base else { return }
        let positions = segment.header.base...segment.last
        try segment.salvage.forEachLine(of: segment.file, in: positions) { prefix, text in
            summary.events += 1
            summary.plaintextBytes += text.byteCount + 1
            if let problem = line(prefix, text) {
                findings.append(Self.badLine(name, prefix, problem))
            }
        }
    }

    private func verifyLast(
        _ name: String, _ path: String, _ findings: inout [Finding], _ first: inout SegmentHeader?,
        _ summary: inout VerificationSummary, _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> SegmentEnd {
        // A writer may be appending, so damage is read again before it is reported.
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        var attempt = 1
        while true {
            let file = try Recovery.openToRead(name, in: directory, fileSystem)
            var lines: [Finding] = []
            var events = 0
            var bytes = 0
            do {
                let last = try recovery.classify(name, file: file) { prefix, text in
                    events += 1
                    bytes += text.byteCount + 1
                    if let problem = line(prefix, text) {
                        lines.append(Self.badLine(name, prefix, problem))
                    }
                }
                if case .torn = last, attempt < 4 {
                    attempt += 1
                    continue
                }
                let end = SegmentEnd(
                    next: last.next(base: SegmentName.base(name) ?? Position(1)), offset: last.end)
                switch last {
                case .unfinished: summary.wasClosed = false
                case .sealed(let footer, let footerAt, _):
                    // The file that was read is verified, not a newly opened one: preallocated space after
                    // the footer may not be truncated yet, and the name may lead to a compacted file by now.
                    let segment = try SealedSegment(
                        last: path, file: file, footer: footer, footerAt: footerAt)
                    try segment.header.check(isOf: &first, path)
                    try verify(segment, &findings, &summary, line)
                case .closed(let live), .live(let live), .torn(let live, _):
                    try live.header.check(isOf: &first, path)
                    findings += lines
                    summary.events += events
                    summary.plaintextBytes += bytes
                    if case .closed = last {} else { summary.wasClosed = false }
                    if case .torn(_, let tail) = last { summary.tornTail = tail }
                }
                return end
            } catch let error as LogError where error.code == .corrupt && attempt < 4 {
                attempt += 1
            } catch {
                // A scan that allows no holes stops at the first hole of a compacted segment. SegmentSalvage
                // reads past it.
                if let segment = try? recovery.compactedWithoutFooter(file, path) {
                    try verifyLines(of: segment, name, &findings, &summary, line)
                } else {
                    findings += lines
                    summary.events += events
                    summary.plaintextBytes += bytes
                }
                throw error
            }
        }
    }

    private static func badLine(_ name: String, _ prefix: LinePrefix, _ problem: String) -> Finding
    {
        Finding(
            code: "bad-line", segment: name, offset: nil,
            positions: prefix.position...prefix.position, detail: problem,
            lost: [prefix.position...prefix.position])
    }

    private static func location(of step: ScanStep) -> (offset: Int, detail: String) {
        switch step {
        case .commit(let commit): (commit.offset, "")
        case .tail(_, let offset): (offset, "a sealed segment ends before its footer")
        case .damage(let damage): (damage.offset, damage.error.detail)
        }
    }

    /// Verifies a sealed segment on its own, without the rest of the log.
    func findings(in segment: SealedSegment) throws -> [Finding] {
        var findings: [Finding] = []
        var summary = VerificationSummary()
        try verify(segment, &findings, &summary) { _, _ in nil }
        return findings
    }

    /// Verifies a sealed segment frame by frame.
    private func verify(
        _ segment: SealedSegment, _ findings: inout [Finding],
        _ summary: inout VerificationSummary, _ line: (LinePrefix, RawSpan) -> String?
    ) throws {
        let name = SegmentName.of(segment.header.base)
        let footer = segment.footer
        var contents = SegmentContents(base: segment.header.base, ids: .none)
        var isWhole = true
        var indexError: LogError?
        do throws(LogError) { try segment.checkIDIndex() } catch { indexError = error }
        var scanner = SegmentScanner(
            segment.file, expecting: segment.header.base, allowsHoles: footer.isCompacted)
        scan: while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            switch step {
            case .commit(let commit):
                if commit.beginsFrame { contents.beginFrame(at: commit.frameOffset) }
                for scanned in commit.lines {
                    let bytes = scanner.plaintext.span.bytes.extracting(scanned.range)
                    contents.append(scanned.prefix, line: bytes)
                    if let problem = line(scanned.prefix, bytes) {
                        findings.append(Self.badLine(name, scanned.prefix, problem))
                    }
                    guard indexError == nil else { continue }
                    do throws(LogError) {
                        let frames = try segment.candidateFrames(id: scanned.prefix.id)
                        guard !frames.contains(where: { $0.offset == commit.frameOffset }) else {
                            continue
                        }
                    } catch {
                        indexError = error
                        continue
                    }
                    findings.append(
                        Finding(
                            code: "id-index", segment: name, offset: segment.footerAt,
                            positions: scanned.prefix.position...scanned.prefix.position,
                            detail: "the id index does not lead to the event"))
                }
            case .tail(_, let offset) where offset == segment.footerAt: break scan
            case .tail, .damage:
                isWhole = false
                let (offset, detail) = Self.location(of: step)
                let positions = segment.positions(from: scanner.expected, after: offset)
                findings.append(
                    Finding(
                        code: "corrupt", segment: name, offset: offset, positions: positions,
                        detail: detail, lost: positions.map { [$0] } ?? []))
                guard
                    let next = footer.frames.first(where: {
                        $0.offset > offset && $0.first >= scanner.expected
                    })
                else { break scan }
                scanner = SegmentScanner(
                    segment.file, at: next.offset, expecting: next.first,
                    allowsHoles: footer.isCompacted)
            }
        }
        summary.events += contents.eventCount
        summary.plaintextBytes += contents.plaintextBytes
        if let indexError { findings.append(Finding(indexError, in: name)) }
        try verifyRemovedIDs(segment, &findings)
        guard isWhole else { return }
        let digest = try storage { () throws(FileError) in
            try SegmentFooter.digest(of: segment.file, through: segment.footerAt)
        }
        let agrees =
            digest == footer.digest && contents.frames == footer.frames
            && contents.lines == footer.lines && UInt64(contents.eventCount) == footer.eventCount
            && footer.coversItsLines(from: segment.header.base)
            && contents.times == footer.times
            && UInt64(contents.plaintextBytes) == footer.plaintextBytes
            && scanner.removedIDsStart ?? segment.footerAt
                == segment.footerAt - (footer.compaction?.removedIDBytes ?? 0)
        if !agrees {
            findings.append(
                Finding(
                    code: "footer", segment: name, offset: segment.footerAt, positions: nil,
                    detail: "the footer does not agree with the segment's contents"))
        }
    }

    /// Reads the lists of removed ids, each against its own digest and with its ids in order.
    private func verifyRemovedIDs(
        _ segment: SealedSegment, _ findings: inout [Finding]
    ) throws(LogError) {
        do throws(LogError) {
            _ = try segment.removedIDs()
        } catch let error where error.code == .corrupt {
            findings.append(
                Finding(
                    code: "removed-ids", segment: SegmentName.of(segment.header.base),
                    offset: error.offset, positions: nil, detail: error.detail))
        }
    }
}
