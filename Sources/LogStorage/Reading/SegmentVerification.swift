// Verifies one segment file: reads every line that can be read, and reports every damage, also after a first
// one. LogVerifier calls it for each file of a log. Spec/format/recovery.md, REC-7.

import LogFormat

/// The verification of one segment.
struct SegmentVerification {
    /// The end of a segment.
    struct End {
        /// The position with which the next segment must begin.
        var next: Position
        /// The offset after the last intact byte; nil unless it is the last segment.
        var offset: Int?
    }

    private(set) var findings: [Finding] = []
    /// The number of lines that were read, and their bytes with newlines.
    private(set) var events = 0
    private(set) var plaintextBytes = 0
    /// The bytes after the last commit that the next writer will truncate.
    private(set) var tornTail: TornTail?
    /// False if a writer did not close the segment, or has it open.
    private(set) var wasClosed = true

    private let name: String
    private let base: Position
    private let directory: String
    private let fileSystem: any FileSystem
    private var path: String { directory + "/" + name }
    /// A header of the log that the segment must belong to.
    private let log: SegmentHeader?
    /// The header that stands in for a damaged one.
    private var standIn: SegmentHeader?
    /// The positions of the segment's removed lines, once they are needed.
    private var removedPositions: [Position]?

    /// - Parameter log: a header of the log that the segment must belong to; nil if no segment has an intact
    ///   one.
    init(
        _ base: Position, in directory: String, _ fileSystem: any FileSystem,
        of log: SegmentHeader? = nil
    ) {
        name = SegmentName.of(base)
        self.base = base
        self.directory = directory
        self.fileSystem = fileSystem
        self.log = log
    }

    /// Verifies the segment.
    ///
    /// - Parameters:
    ///   - following: the first position of the next segment; nil for the last segment.
    ///   - line: called with every intact line; returns a description of its problem, or nil. The last segment
    ///     may be read several times.
    /// - Returns: nil if the segment's end is not known.
    /// - Throws: `LogError`: `newerVersion`, `unknownFeature`, `noSuchLog`; `io` for another file than the
    ///   segment's.
    mutating func run(
        before following: Position?, _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> End? {
        do {
            guard let following else { return try verifyLast(line) }
            return End(next: try verify(before: following, line))
        } catch let error as LogError where error.isDamage {
            findings.append(Finding(error, in: name, lost: all(before: following)))
        } catch let error as LogError
            where error.path == path && (error.code == .io || error.code == .readOnly)
        {
            findings.append(
                Finding(unreadable: name, error.detail, lost: all(before: following)))
        }
        if following == nil { findings[findings.count - 1].lostEndIsKnown = false }
        return nil
    }

    /// All positions of the segment; the first one if its end is not known.
    private func all(before following: Position?) -> [ClosedRange<Position>] {
        [base...max(base, following?.advanced(by: -1) ?? base)]
    }

    private mutating func count(
        _ prefix: LinePrefix, _ text: RawSpan, _ line: (LinePrefix, RawSpan) -> String?
    ) {
        events += 1
        plaintextBytes += text.byteCount + 1
        guard let problem = line(prefix, text) else { return }
        findings.append(
            Finding(
                code: "bad-line", segment: name, offset: nil,
                positions: prefix.position...prefix.position, detail: problem,
                lost: [prefix.position...prefix.position]))
    }

    // MARK: The header

    /// Reads the header. A damaged one is a finding, and the rest of the segment is read as its name says.
    ///
    /// - Returns: the header, and the file with this header.
    private mutating func header(
        of file: any File
    ) throws(LogError) -> (header: SegmentHeader, file: any File) {
        if let standIn { return (standIn, file) }
        do throws(LogError) {
            let header = try SealedSegment.header(of: file, path)
            try check(header)
            return (header, file)
        } catch let error where error.isDamage && error.offset == 0 {
            return replaceHeader(of: file, becauseOf: error)
        }
    }

    /// Checks that a header is that of this segment.
    private func check(_ header: SegmentHeader) throws(LogError) {
        guard standIn == nil else { return }
        try header.check(isNamedFor: base, path)
        if let log { try header.check(isOfLogOf: log, path, than: "most segments") }
    }

    private mutating func replaceHeader(
        of file: any File, becauseOf error: LogError
    ) -> (header: SegmentHeader, file: any File) {
        findings.append(Finding(error, in: name))
        var header = log ?? SegmentHeader(logID: 0, account: nil, base: base, createdAt: 0)
        header.base = base
        standIn = header
        return (header, OverlaidFile(file, header.encoded(), at: 0))
    }

    // MARK: A segment that others follow

    /// Verifies a segment that others follow. If its footer is damaged, its lines are found frame by frame.
    ///
    /// - Returns: the position with which the next segment must begin.
    private mutating func verify(
        before following: Position, _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> Position {
        let plain = try storage { () throws(FileError) in try fileSystem.open(path, .read) }
        let (header, file) = try header(of: plain)
        let footer = try storage { () throws(FileError) in try SegmentFooter.read(atEndOf: file) }
        if let footer {
            try verify(
                SealedSegment(
                    path: path, file: file, header: header, footer: footer.footer,
                    footerAt: footer.start), line)
            return footer.footer.coveredThrough.next
        }
        let segment = try UnsealedSegment(path, file: file, header: header, before: following)
        guard segment.last >= header.base else {
            // If the header is damaged as well, its finding stands for the whole file.
            if standIn == nil { findings.append(Finding(segment.error, in: name)) }
            findings[findings.count - 1].lost =
                segment.salvage.isCompacted ? segment.lost : all(before: following)
            return following
        }
        var finding = Finding(segment.error, in: name, lost: segment.lost)
        finding.losesCompactedThrough = segment.losesCompactedThrough
        findings.append(finding)
        findings += segment.laterErrors.map { Finding($0, in: name) }
        try verifyLines(of: segment, line)
        // A compacted segment may cover more positions than it has lines. Lines lost at the end are already
        // part of the finding.
        return segment.salvage.isCompacted || segment.lacksLinesAtEnd
            ? following : segment.last.next
    }

    /// Verifies the lines of a segment that has no usable footer.
    private mutating func verifyLines(
        of segment: UnsealedSegment, _ line: (LinePrefix, RawSpan) -> String?
    ) throws {
        guard segment.last >= segment.header.base else { return }
        let positions = segment.header.base...segment.last
        try segment.salvage.forEachLine(of: segment.file, in: positions) { count($0, $1, line) }
    }

    // MARK: The last segment

    private mutating func verifyLast(_ line: (LinePrefix, RawSpan) -> String?) throws -> End? {
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        // A writer may be appending, so damage is read again before it is reported.
        var attempt = 1
        while true {
            let file = try openLast()
            (events, plaintextBytes) = (0, 0)
            do {
                let last = try recovery.classify(name, file: file) { count($0, $1, line) }
                if case .torn = last, attempt < Recovery.attemptsMax {
                    attempt += 1
                    continue
                }
                return try end(last, file, line)
            } catch let error as LogError
                where error.code == .corrupt && attempt < Recovery.attemptsMax
            {
                attempt += 1
            } catch let error as LogError
                where error.isDamage && error.offset == 0 && standIn == nil
            {
                _ = replaceHeader(of: file, becauseOf: error)
            } catch let error as LogError where error.isDamage {
                if error.offset == 0 {
                    setUnknownEnd(from: base)
                } else {
                    try readOn(file, after: error, line)
                }
                return nil
            }
        }
    }

    /// Opens the last segment, with an interrupted rewrite completed if its journal can be read.
    private func openLast() throws(LogError) -> any File {
        let file: any File
        do throws(LogError) {
            file = try Recovery.openToRead(name, in: directory, fileSystem)
        } catch let error where error.path != path && error.code == .io {
            file = try storage { () throws(FileError) in try fileSystem.open(path, .read) }
        }
        if let standIn { return OverlaidFile(file, standIn.encoded(), at: 0) }
        // The lines of another log or segment are not read.
        if let header = try? SealedSegment.header(of: file, path) { try check(header) }
        return file
    }

    private mutating func end(
        _ last: LastSegment, _ file: any File, _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> End? {
        switch last {
        case .unfinished: wasClosed = false
        case .torn(let live, _) where standIn != nil:
            // A writer refuses the log because of the header, and truncates nothing.
            setUnknownEnd(from: live.contents.next)
            return nil
        case .sealed(let footer, let footerAt, _):
            // The file that was read is verified, not a newly opened one: preallocated space after the footer
            // may not be truncated yet, and the name may lead to a compacted file by now.
            let segment = try SealedSegment(
                last: path, file: file, footer: footer, footerAt: footerAt)
            (events, plaintextBytes) = (0, 0)
            try verify(segment, line)
        case .closed: break
        case .live: wasClosed = false
        case .torn(_, let tail): (wasClosed, tornTail) = (false, tail)
        }
        return End(next: last.next(base: base), offset: last.end)
    }

    /// Records in the finding of a damaged header that no line can be read from a position on.
    private mutating func setUnknownEnd(from position: Position) {
        guard let number = findings.firstIndex(where: { $0.offset == 0 }) else { return }
        findings[number].lost = [position...position]
        findings[number].lostEndIsKnown = false
    }

    /// Reads the lines of a damaged last segment, also those after the damage, and reports later damage.
    ///
    /// - Parameter error: the damage that opening and readers report.
    private mutating func readOn(
        _ plain: any File, after error: LogError, _ line: (LinePrefix, RawSpan) -> String?
    ) throws {
        let (header, file) = try header(of: plain)
        let number = findings.count
        findings.append(Finding(error, in: name))
        (events, plaintextBytes) = (0, 0)
        let footer = try storage { () throws(FileError) in try SegmentFooter.read(atEndOf: file) }
        if let footer {
            let segment = try SealedSegment(
                path: path, file: file, header: header, footer: footer.footer,
                footerAt: footer.start)
            try verify(segment, line)
            // A finding at the same location or before it is of the same fault: the classification has read
            // these bytes in order, and has accepted those before its error.
            let later = findings[(number + 1)...]
            let isSame = { (other: Finding) in
                other.offset.map { $0 <= error.offset ?? -1 } ?? false
            }
            findings.replaceSubrange((number + 1)..., with: later.filter { !isSame($0) })
            findings[number].lost = try lost(segment, error, later.filter(isSame))
            return
        }
        let segment = try UnsealedSegment(path, file: file, header: header, before: nil)
        let (lost, endIsKnown) = lost(segment, error)
        findings[number].lost = lost
        findings[number].lostEndIsKnown = endIsKnown
        findings[number].losesCompactedThrough = segment.losesCompactedThrough
        findings += segment.laterErrors.filter { $0.offset ?? 0 > error.offset ?? 0 }
            .map { Finding($0, in: name) }
        try verifyLines(of: segment, line)
    }

    /// The lost positions of a damaged last segment with a footer.
    ///
    /// - Parameter same: the findings of the same fault.
    private mutating func lost(
        _ segment: SealedSegment, _ error: LogError, _ same: [Finding]
    ) throws(LogError) -> [ClosedRange<Position>] {
        let known = same.flatMap(\.lost)
        let last = segment.footer.coveredThrough
        guard known.isEmpty, error.offset == segment.footerAt,
            let first = error.positions?.lowerBound, first <= last
        else { return known }
        return try [first...last].subtracting(removed(from: segment))
    }

    /// The lost positions of a damaged last segment without a footer; false if more are lost after them.
    private func lost(
        _ segment: UnsealedSegment, _ error: LogError
    ) -> (positions: [ClosedRange<Position>], endIsKnown: Bool) {
        let salvage = segment.salvage
        let read = segment.last
        let end = salvage.end ?? (salvage.hasDamagedEnding ? read : nil)
        let through = max(read, end ?? read)
        var lost = through < base ? [] : salvage.lostPositions(in: base...through)
        if end == nil { lost.append(read.next...read.next) }
        guard lost.isEmpty, let first = error.positions?.lowerBound, first > read else {
            return (lost, end != nil)
        }
        return ([first...first], false)
    }

    // MARK: A sealed segment

    /// Verifies a sealed segment frame by frame.
    mutating func verify(
        _ segment: SealedSegment, _ line: (LinePrefix, RawSpan) -> String?
    ) throws {
        let footer = segment.footer
        var contents = SegmentContents(base: segment.header.base, ids: .none)
        var index = IndexCheck(segment)
        /// The offset of the last damage between the header and the footer.
        var damage: Int?
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
                    count(scanned.prefix, bytes, line)
                    index.check(scanned.prefix, in: commit.frameOffset)
                }
            case .tail(_, let offset) where offset == segment.footerAt: break scan
            case .tail, .damage:
                let offset = try reportDamage(step, expecting: scanner.expected, segment)
                damage = offset
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
        findings += index.findings(in: name)
        // Damage that ended the scan among the lists is the same fault.
        var listsAreSound = true
        if damage.map({ $0 < segment.removedIDsStart }) ?? true {
            listsAreSound = try verifyRemovedIDs(segment)
        }
        guard damage == nil,
            try !agrees(footer, contents, scanner.removedIDsStart, segment, listsAreSound)
        else { return }
        findings.append(
            Finding(
                code: "footer", segment: name, offset: segment.footerAt, positions: nil,
                detail: "the footer does not agree with the segment's contents"))
    }

    /// Reports damage between the frames of a sealed segment.
    ///
    /// - Returns: its offset.
    private mutating func reportDamage(
        _ step: ScanStep, expecting first: Position, _ segment: SealedSegment
    ) throws(LogError) -> Int {
        let (offset, detail) = Self.location(of: step)
        let positions = segment.positions(from: first, after: offset)
        var finding = Finding(
            code: "corrupt", segment: name, offset: offset, positions: positions, detail: detail)
        if let positions {
            finding.lost = try [positions].subtracting(removed(from: segment))
        }
        findings.append(finding)
        return offset
    }

    private mutating func removed(from segment: SealedSegment) throws(LogError) -> [Position] {
        if let removedPositions { return removedPositions }
        let removed = try segment.removedPositions()
        removedPositions = removed
        return removed
    }

    private static func location(of step: ScanStep) -> (offset: Int, detail: String) {
        switch step {
        case .commit(let commit): (commit.offset, "")
        case .tail(_, let offset): (offset, "a sealed segment ends before its footer")
        case .damage(let damage): (damage.offset, damage.error.detail)
        }
    }

    /// True if the footer says what was read. Its digest differs in any case if a list of removed ids is
    /// damaged, which is a finding of its own.
    private func agrees(
        _ footer: SegmentFooter, _ contents: SegmentContents, _ scannedStart: Int?,
        _ segment: SealedSegment, _ listsAreSound: Bool
    ) throws(LogError) -> Bool {
        let digest = try storage { () throws(FileError) in
            try SegmentFooter.digest(of: segment.file, through: segment.footerAt)
        }
        // The digest covers the header.
        return (digest == footer.digest || standIn != nil || !listsAreSound)
            && contents.frames == footer.frames
            && contents.lines == footer.lines && UInt64(contents.eventCount) == footer.eventCount
            && footer.coversItsLines(from: segment.header.base)
            && contents.times == footer.times
            && UInt64(contents.plaintextBytes) == footer.plaintextBytes
            && scannedStart ?? segment.footerAt == segment.removedIDsStart
    }

    /// Reads the lists of removed ids, each against its own digest and with its ids in order.
    ///
    /// - Returns: false if there is a finding.
    private mutating func verifyRemovedIDs(_ segment: SealedSegment) throws(LogError) -> Bool {
        do throws(LogError) {
            _ = try segment.removedIDs()
            return true
        } catch let error where error.code == .corrupt {
            findings.append(
                Finding(
                    code: "removed-ids", segment: name, offset: error.offset, positions: nil,
                    detail: error.detail))
            return false
        }
    }
}

/// The check that an id index leads to every line of its segment.
private struct IndexCheck {
    private let segment: SealedSegment
    /// The reason why the index cannot be used.
    private var error: LogError?
    /// The lines to which the index does not lead.
    private var missing: (positions: ClosedRange<Position>, count: Int)?

    init(_ segment: SealedSegment) {
        self.segment = segment
        do throws(LogError) { try segment.checkIDIndex() } catch { self.error = error }
    }

    mutating func check(_ prefix: LinePrefix, in frame: Int) {
        guard error == nil else { return }
        do throws(LogError) {
            let frames = try segment.candidateFrames(id: prefix.id)
            guard !frames.contains(where: { $0.offset == frame }) else { return }
        } catch { return self.error = error }
        let first = missing?.positions.lowerBound ?? prefix.position
        missing = (first...max(first, prefix.position), (missing?.count ?? 0) + 1)
    }

    func findings(in name: String) -> [Finding] {
        var findings: [Finding] = []
        if let missing {
            findings.append(
                Finding(
                    code: "id-index", segment: name, offset: segment.footerAt,
                    positions: missing.positions,
                    detail: "the id index does not lead to "
                        + (missing.count == 1 ? "the event" : "\(missing.count) events")))
        }
        if let error { findings.append(Finding(error, in: name)) }
        return findings
    }
}
