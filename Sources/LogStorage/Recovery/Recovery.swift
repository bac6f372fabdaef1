// What opening finds at the end of the last segment, and what follows from it. The rows below are
// the decision table of Spec/format/recovery.md under the same labels. Judging (`judge`) reads only;
// mending (`mend`) is done by the one writer, and can be interrupted anywhere and begun again.

import LogFormat

/// What recovery did when a log was opened.
public struct RecoveryReport: Hashable, Sendable {
    /// The torn tail that was cut, if there was one.
    public var tornTail: TornTail?
    /// Whether the last session ended without closing the log.
    public var wasUnclean = false
    /// Whether a segment that had only begun to exist was removed.
    public var removedUnfinishedSegment = false

    /// Creates an empty report.
    public init() {}
}

/// Bytes behind the last whole commit that nothing proves to have been synced.
public struct TornTail: Hashable, Sendable {
    /// The segment file.
    public var segment: String
    /// Where the bytes begin.
    public var offset: Int
    /// How many there are, up to the last that is not zero.
    public var byteCount: Int
    /// What was wrong with them.
    public var reason: String
    /// Where they were put, or nil if nobody has cut them yet.
    public var quarantinedAs: String?
}

/// The state of the last segment.
package enum LastSegment {
    /// R1: it has no valid header and nothing behind it: it had only begun to exist.
    case unfinished
    /// R2: it ends with a footer.
    case sealed(SegmentFooter, footerAt: Int, end: Int)
    /// R3: it ends with a close mark.
    case closed(LiveSegment)
    /// R4: it ends as a running or killed writer leaves it.
    case live(LiveSegment)
    /// R5: bytes that nothing proves to have been synced follow the last whole commit.
    case torn(LiveSegment, TornTail)

    /// The offset where what is intact ends; nil where nothing is.
    var end: Int? {
        switch self {
        case .unfinished: nil
        case .sealed(_, let footerAt, _): footerAt
        case .closed(let live), .live(let live), .torn(let live, _): live.dataEnd
        }
    }

    /// The position after the last one that the segment answers for.
    ///
    /// - Parameter base: the position in the segment's name.
    func next(base: Position) -> Position {
        switch self {
        case .unfinished: base
        case .sealed(let footer, _, _): footer.coveredThrough.next
        case .closed(let live), .live(let live), .torn(let live, _): live.contents.next
        }
    }

    /// The segment if it can be appended to.
    var live: LiveSegment? {
        switch self {
        case .unfinished, .sealed: nil
        case .closed(let live), .live(let live), .torn(let live, _): live
        }
    }
}

/// A last segment that can be appended to.
package struct LiveSegment {
    package var header: SegmentHeader
    package var file: any File
    package var contents: SegmentContents
    /// Where the last commit ends.
    package var dataEnd: Int
    /// Where the last commit begins: what has to be written again after a failed sync.
    package var lastCommit: Int
    /// Plaintext of the last frame if that is a running one, whose end mark may be written over.
    package var openFrame: [UInt8]?
    package var fileBytes: Int

    package var boundary: Int {
        openFrame == nil ? dataEnd : dataEnd + FrameHeader.endMarkBytes
    }
}

/// Judging and mending of the last segment.
package struct Recovery {
    package let directory: String
    package let fileSystem: any FileSystem

    /// How often the end may turn out good when it is read again before that is taken for the work of
    /// a writer who is quicker.
    private static let doubtsMax = 4

    package init(directory: String, fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    // MARK: Judging

    /// The last segment as a reader sees it: with what a cut recovery left half written completed.
    static func openToRead(
        _ name: String, in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> any File {
        let file = try storage { () throws(FileError) in
            try fileSystem.open(directory + "/" + name, .read)
        }
        return try RewriteJournal.read(in: directory, fileSystem)?.overlaid(on: file, name: name)
            ?? file
    }

    /// Reads the last segment and says what it is. Changes nothing.
    ///
    /// - Parameter snapshot: what a checkpoint knew of the segment; only what came later, and the
    ///   frame before it, is read then.
    /// - Throws: `corrupt` (R6) where synced bytes are damaged, and what the header says.
    package func judge(
        _ name: String, file: any File, resuming snapshot: LiveSnapshot? = nil
    ) throws(LogError) -> LastSegment {
        do {
            return try judge(name, file: file, resuming: snapshot) { _, _ in }
        } catch let error as LogError {
            throw error
        } catch {
            throw LogError(.io, path: directory + "/" + name, "\(error)")
        }
    }

    /// Reads the last segment, line by line, and says what it is. Changes nothing.
    ///
    /// - Parameters:
    ///   - frame: a frame to begin with, of which is known that all before it is right; what the
    ///     answer says of contents is then about the rest only.
    ///   - line: called with every intact line, in order.
    /// - Throws: `corrupt` (R6) where synced bytes are damaged, what the header says, and whatever
    ///   `line` throws.
    package func judge(
        _ name: String, file: any File, from frame: FrameEntry? = nil,
        resuming snapshot: LiveSnapshot? = nil,
        line: (LinePrefix, RawSpan) throws -> Void
    ) throws -> LastSegment {
        let path = directory + "/" + name
        let size = try storage { () throws(FileError) in try file.size() }
        guard size <= FormatLimit.segmentBytesMax else {
            throw LogError(
                .corrupt, path: path, "the file has \(size) bytes, more than any segment")
        }
        guard let header = try header(of: file, size: size, path) else { return .unfinished }
        try header.check(isNamedFor: SegmentName.base(name), path)
        let start = frame ?? FrameEntry(offset: SegmentHeader.encodedBytes, first: header.base)
        var live = LiveSegment(
            header: header, file: file, contents: SegmentContents(base: start.first),
            dataEnd: start.offset, lastCommit: start.offset, openFrame: nil, fileBytes: size)
        let footer = try storage { () throws(FileError) in try SegmentFooter.read(atEndOf: file) }
        var scanner = SegmentScanner(
            file, at: start.offset, expecting: start.first,
            allowsHoles: footer?.footer.isCompacted ?? false)
        var known = Position.zero
        if let snapshot, snapshot.base == header.base, footer?.footer.isCompacted != true,
            let lines = snapshot.footer.lines, let frame = snapshot.footer.frames.last
        {
            live.contents = SegmentContents(resuming: snapshot)
            known = lines.upperBound
            scanner = SegmentScanner(
                file, at: frame.offset, expecting: frame.first, allowsHoles: false)
        }
        let promised = known
        var doubtful: [Int] = []
        while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            let offset: Int
            switch step {
            case .commit(let commit):
                live.lastCommit = commit.offset
                live.dataEnd = commit.end
                live.openFrame = commit.isBig ? nil : []
                guard commit.positions.upperBound > known else { continue }
                if commit.beginsFrame { live.contents.begin(frameAt: commit.frameOffset) }
                for scanned in commit.lines {
                    let bytes = scanner.plaintext.span.bytes.extracting(scanned.range)
                    live.contents.add(scanned.prefix, line: bytes)
                    try line(scanned.prefix, bytes)
                }
                continue
            case .tail(_, let place): offset = place
            case .damage(let damage): offset = damage.offset
            }
            guard scanner.expected > promised else {
                throw LogError(
                    .corrupt, path: path, offset: live.dataEnd,
                    positions: scanner.expected...promised,
                    "a checkpoint names position \(promised), which was synced")
            }
            if live.openFrame != nil, let last = live.contents.frames.last {
                // Behind a frame that began and has no good block, the plaintext is not the open
                // frame's any more.
                live.openFrame =
                    scanner.plaintextFrame == last.offset
                    ? Array(scanner.plaintext[..<scanner.plaintextBytes])
                    : try DecodedFrame.read(file, path: path, last, allowsHoles: false).plaintext
            }
            do throws(LogError) {
                let end = try judge(step, live, path: path)
                guard case .torn = end, doubtful.last != offset else { return end }
            } catch {
                guard error.code == .corrupt, doubtful.last != offset else { throw error }
            }
            // Bytes are not read in one moment: where a writer is at work, the bad place may have
            // been read before its write and the proof after. It is bad if it still is.
            doubtful.append(offset)
            guard doubtful.count < Self.doubtsMax else { return .live(live) }
            live.fileBytes = try storage { () throws(FileError) in try file.size() }
            known = max(known, Position(live.contents.next.rawValue - 1))
            let last = live.contents.frames.last ?? start
            scanner = SegmentScanner(
                file, at: last.offset, expecting: last.first,
                allowsHoles: footer?.footer.isCompacted ?? false)
        }
    }

    /// The header, or nil for R1.
    private func header(
        of file: any File, size: Int, _ path: String, isSecondLook: Bool = false
    ) throws(LogError) -> SegmentHeader? {
        let bytes = try storage { () throws(FileError) in
            try file.read(at: 0, count: SegmentHeader.encodedBytes)
        }
        do throws(FormatError) {
            return try SegmentHeader(bytes.span.bytes)
        } catch {
            let written = SegmentHeader.encodedBytes + SkippableFrame.prefixBytes
            // A creation leaves no bytes, or the room it asked for first.
            if error.code != .newerVersion, error.code != .unknownFeature,
                size % FormatLimit.growthGranularityBytes == 0,
                try lastNonZero(file, from: written, size: size) == nil
            {
                return nil
            }
            // It may have been written between the two looks, and a first commit behind it.
            guard isSecondLook else {
                return try header(of: file, size: size, path, isSecondLook: true)
            }
            throw LogError(error, path: path, offset: 0)
        }
    }

    private func judge(
        _ step: ScanStep, _ found: LiveSegment, path: String
    ) throws(LogError) -> LastSegment {
        let live = found
        switch step {
        case .commit: preconditionFailure("a commit is not an end")
        case .tail(.footer(let footer, let bytes), let offset):
            try noBytes(live, from: offset + bytes, after: "the footer", path)
            try check(footer, live, at: offset, path)
            return .sealed(footer, footerAt: offset, end: offset + bytes)
        case .tail(.closeMark(let mark), let offset):
            try noBytes(live, from: offset + CloseMark.encodedBytes, after: "the close mark", path)
            guard mark.last.next == live.contents.next else {
                throw LogError(
                    .corrupt, path: path, offset: offset,
                    "the close mark names position \(mark.last) as the last")
            }
            return .closed(live)
        case .tail(.none, _):
            try notCut(live, path)
            return .live(live)
        case .tail(.trailer, let offset):
            let rest = offset + SkippableFrame.prefixBytes
            guard let last = try lastNonZero(live.file, from: rest, size: live.fileBytes) else {
                return .live(live)
            }
            // The bad place is where a frame should begin, not behind the trailer: the blocks of one
            // torn big commit, read from there, would look like commits of their own.
            let error = FormatError(.malformed, "the room behind the trailer is not empty")
            return try judge(
                ScanDamage(context: .frame, offset: offset, error: error), last, live, path)
        case .damage(let damage):
            guard
                let last = try lastNonZero(live.file, from: live.dataEnd, size: live.fileBytes)
            else {
                try notCut(live, path)
                return .live(live)
            }
            return try judge(damage, last, live, path)
        }
    }

    /// R6: a writer writes into room that is there, and a commit never ends the file: the room for
    /// the trailer behind the last good commit was synced before it or with it. A size that changed
    /// since the reading began says that a writer is at work.
    private func notCut(_ live: LiveSegment, _ path: String) throws(LogError) {
        let size = try storage { () throws(FileError) in try live.file.size() }
        guard size == live.fileBytes else { return }
        let end = live.boundary + SkippableFrame.prefixBytes
        if size < end || !isWritersSize(size, live) { throw cut(live, size, path) }
    }

    /// Whether a writer leaves files of this size: in steps of room, or after mending or closing.
    private func isWritersSize(_ size: Int, _ live: LiveSegment) -> Bool {
        size % FormatLimit.growthGranularityBytes == 0
            || size == live.boundary + SkippableFrame.prefixBytes
            || size == live.boundary + CloseMark.encodedBytes
    }

    private func cut(_ live: LiveSegment, _ size: Int, _ path: String) -> LogError {
        LogError(
            .corrupt, path: path, offset: size,
            positions: live.contents.next...live.contents.next,
            "the file ends where no writer ends it: it was cut. Nothing was changed; positions "
                + "from \(live.contents.next) on may be missing")
    }

    /// R5 or R6: are there synced bytes behind the damage?
    private func judge(
        _ damage: ScanDamage, _ last: Int, _ live: LiveSegment, _ path: String
    ) throws(LogError) -> LastSegment {
        // What was read as good bytes of a torn commit may be followed by zeros only. A proof may end
        // with zero bytes: those of its checksum.
        let rest = try storage { () throws(FileError) in
            try live.file.read(
                at: damage.offset,
                count: max(0, last + 1 - damage.offset) + MemoryLayout<UInt32>.size)
        }
        if let proof = SyncProof.find(rest.span.bytes, damage.context) {
            // A compacted segment whose footer cannot be read looks like one with holes.
            if let segment = try compactedWithoutFooter(live.file, path) { throw segment.error }
            throw LogError(
                .corrupt, path: path, offset: damage.offset,
                positions: live.contents.next...live.contents.next,
                damage.error.detail
                    + " (\(proof.what) at byte \(damage.offset + proof.offset) proves that it had "
                    + "been synced). Nothing was changed; positions from \(live.contents.next) on "
                    + "are affected")
        }
        let size = try storage { () throws(FileError) in try live.file.size() }
        guard size != live.fileBytes || isWritersSize(size, live) else {
            let isFooter = try storage { () throws(FileError) in
                guard damage.context == .frame else { return false }
                return try SegmentFooter.isExpected(at: damage.offset, of: live.file)
            }
            throw isFooter ? damagedFooter(damage, live, path) : cut(live, size, path)
        }
        let tail = TornTail(
            segment: path, offset: live.dataEnd, byteCount: last + 1 - live.dataEnd,
            reason: damage.error.detail)
        return .torn(live, tail)
    }

    private func damagedFooter(_ damage: ScanDamage, _ live: LiveSegment, _ path: String)
        -> LogError
    {
        LogError(
            .corrupt, path: path, offset: damage.offset,
            "the segment's footer is damaged (\(damage.error.detail)); the lines before it are "
                + "intact. Nothing was changed")
    }

    /// A damaged last segment that compaction wrote and whose footer cannot be read; nil for any other
    /// segment.
    func compactedWithoutFooter(
        _ file: any File, _ path: String
    ) throws(LogError) -> UnsealedSegment? {
        let footer = try storage { () throws(FileError) in try SegmentFooter.read(atEndOf: file) }
        guard footer == nil else { return nil }
        let header = try SealedSegment.header(of: file, path)
        let segment = try UnsealedSegment(path, file: file, header: header, before: nil)
        let salvage = segment.salvage
        let isDamaged = salvage.damage != nil || salvage.endingEnd != nil
        return salvage.isCompacted && isDamaged ? segment : nil
    }

    /// Is what the footer says what was read? A block that was taken out leaves a file in which
    /// everything else is right.
    private func check(
        _ footer: SegmentFooter, _ live: LiveSegment, at offset: Int, _ path: String
    ) throws(LogError) {
        let contents = live.contents
        let isWhole = contents.base == live.header.base
        let agrees =
            (isWhole
                ? footer.frames == contents.frames && footer.lines == contents.lines
                    && footer.eventCount == UInt64(contents.eventCount)
                : footer.frames.suffix(contents.frames.count) == contents.frames[...])
            && footer.coversItsLines(from: live.header.base)
            && (footer.isCompacted || footer.coveredThrough.next == contents.next)
        guard !agrees else { return }
        let next = contents.next
        throw LogError(
            .corrupt, path: path, offset: offset,
            positions: next...max(next, footer.coveredThrough),
            "the segment holds positions \(contents.lines?.lowerBound ?? .zero) to "
                + "\(next.rawValue - 1), \(contents.eventCount) lines; \(footer.linesDescription). Nothing "
                + "was changed")
    }

    private func noBytes(
        _ live: LiveSegment, from offset: Int, after what: String, _ path: String
    ) throws(LogError) {
        guard try lastNonZero(live.file, from: offset, size: live.fileBytes) != nil else { return }
        var first = offset
        while first < live.fileBytes {
            let bytes = try storage { () throws(FileError) in
                try live.file.read(at: first, count: min(256 * 1024, live.fileBytes - first))
            }
            if let index = bytes.firstIndex(where: { $0 != 0 }) {
                throw LogError(
                    .corrupt, path: path, offset: first + index, "bytes follow \(what)")
            }
            guard !bytes.isEmpty else { return }
            first += bytes.count
        }
    }

    /// The offset of the last byte from an offset on that is not zero.
    private func lastNonZero(
        _ file: any File, from offset: Int, size: Int
    ) throws(LogError) -> Int? {
        var end = size
        while end > offset {
            let start = max(offset, end - 256 * 1024)
            let bytes = try storage { () throws(FileError) in
                try file.read(at: start, count: end - start)
            }
            let span = bytes.span.bytes
            var count = bytes.count
            // Mostly zeros, and up to a megabyte of them: eight at a time.
            while count >= 8, span.integer(at: count - 8, as: UInt64.self) == 0 { count -= 8 }
            while count > 0, span.byte(at: count - 1) == 0 { count -= 1 }
            if count > 0 { return start + count - 1 }
            end = start
        }
        return nil
    }

    // MARK: Mending

    /// Puts a segment that can be appended to in order and syncs it, so that what follows stands on
    /// ground that is known to be on the medium. A failed sync may have left pages that only look
    /// clean; therefore the last commit is written again with the same bytes, a copy of it first.
    package func mend(
        _ live: LiveSegment, tornTail: TornTail?
    ) throws(LogError) -> (live: LiveSegment, tornTail: TornTail?) {
        var live = live
        var report = tornTail
        if let tornTail {
            report?.quarantinedAs = try quarantine(tornTail, live)
            try storage { () throws(FileError) in
                // The room for end mark and trailer stays, so that a file that ends before them was
                // cut by somebody else.
                try live.file.truncate(to: live.boundary + SkippableFrame.prefixBytes)
                try live.file.sync()
            }
        }
        // A tail without end mark or trailer gets both; a sound one is written as it was.
        let start = live.lastCommit == live.dataEnd ? 0 : live.lastCommit
        let bytes = try storage { () throws(FileError) in
            try live.file.read(at: start, count: live.dataEnd - start)
        }
        var closing: [UInt8] = []
        if live.openFrame != nil { closing.append(littleEndian: UInt32(0)) }
        let end = live.dataEnd + closing.count + SkippableFrame.prefixBytes
        let size = max(tornTail == nil ? live.fileBytes : 0, end)
        SkippableFrame.trailer.appendPrefix(contentBytes: size - end, to: &closing)
        try RewriteJournal.rewrite(
            bytes, then: closing, at: start, of: live.file, segment: live.header.base,
            in: directory, fileSystem)
        live.fileBytes = size
        return (live, report)
    }

    /// Copies a torn tail to `quarantine/`; durable on return.
    private func quarantine(_ tail: TornTail, _ live: LiveSegment) throws(LogError) -> String {
        let bytes = try storage { () throws(FileError) in
            try live.file.read(at: tail.offset, count: tail.byteCount)
        }
        return try Quarantine(directory, fileSystem)
            .keep(bytes, "\(SegmentName.of(live.header.base)).\(tail.offset)", "torn")
    }
}
