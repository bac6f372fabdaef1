// Classifies the end of the last segment and recovers it after an unclean stop. The labels R1 to R6 are the
// rows of the decision table in Spec/format/recovery.md. `classify` only reads. `recover` is called by the
// one writer, and can be interrupted at any point and repeated.

import LogFormat

/// The result of recovery when a log was opened.
public struct RecoveryReport: Hashable, Sendable {
    /// The torn tail that was truncated, if there was one.
    public var tornTail: TornTail?
    /// True if the last session ended without closing the log.
    public var wasUnclean = false
    /// True if a segment whose creation was interrupted was removed.
    public var removedUnfinishedSegment = false
    /// The positions that the log had when its folder was copied file by file and that this copy lacks, as far
    /// as they are known; nil for any other folder. New events get these positions.
    public var missing: ClosedRange<Position>?

    /// Creates an empty report.
    public init() {}
}

/// Bytes after the last complete commit that are not proven to have been synced.
public struct TornTail: Hashable, Sendable {
    /// The segment file.
    public var segment: String
    /// The offset of the first byte.
    public var offset: Int
    /// The number of bytes, up to the last one that is not zero.
    public var byteCount: Int
    /// The description of the damage.
    public var reason: String
    /// The path of their copy in the quarantine; nil if no writer has truncated them yet.
    public var quarantinedAs: String?
}

extension RecoveryReport: CustomStringConvertible {
    /// How the last session ended, what was removed, and what a copied folder lacks.
    public var description: String {
        let notes: [String?] = [
            wasUnclean ? "the log was not closed" : "the log was closed",
            removedUnfinishedSegment ? "an unfinished segment was removed" : nil,
            tornTail?.description,
            missing.map {
                "the folder is a copy that lacks \($0.text)"
            },
        ]
        return notes.compactMap(\.self).joined(separator: "; ")
    }
}

extension TornTail: CustomStringConvertible {
    /// The number of bytes, their location, the damage, and their copy in the quarantine.
    public var description: String {
        var text = "\(byteCount.counted("byte")) of an unfinished write in \(segment)"
        text += " from byte \(offset) on: \(reason)"
        if let quarantinedAs { text += "; kept as \(quarantinedAs)" }
        return text
    }
}

/// The state of the last segment.
package enum LastSegment {
    /// R1: no valid header and no bytes after it: its creation was interrupted.
    case unfinished
    /// R2: ends with a footer.
    case sealed(SegmentFooter, footerAt: Int, end: Int)
    /// R3: ends with a clean-shutdown marker.
    case closed(LiveSegment)
    /// R4: ends as a running or killed writer leaves it.
    case live(LiveSegment)
    /// R5: bytes that are not proven to have been synced follow the last complete commit.
    case torn(LiveSegment, TornTail)

    /// The offset after the intact bytes; nil for an unfinished segment.
    var end: Int? {
        switch self {
        case .unfinished: nil
        case .sealed(_, let footerAt, _): footerAt
        case .closed(let live), .live(let live), .torn(let live, _): live.dataEnd
        }
    }

    /// The position after the last one that the segment covers.
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
    /// The offset after the last commit.
    package var dataEnd: Int
    /// The offset of the last commit, which must be rewritten after a failed sync.
    package var lastCommit: Int
    /// The plaintext of the last frame if it is a running one, whose end mark may be overwritten.
    package var openFrame: [UInt8]?
    package var fileBytes: Int

    /// The offset of the next frame, or of what ends the segment.
    package var boundary: Int {
        openFrame == nil ? dataEnd : dataEnd + FrameHeader.endMarkBytes
    }
}

/// Classifies and recovers the last segment.
package struct Recovery {
    package let directory: String
    package let fileSystem: any FileSystem

    /// The number of reads of a damaged end before the damage is reported: a writer may be appending.
    static let attemptsMax = 4
    /// The number of times that damage may move when it is read again. After that a writer is taken to be
    /// appending faster than it is read.
    private static let rereadsMax = 4

    package init(directory: String, fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    // MARK: Classifying

    /// Opens the last segment for reading, with an interrupted rewrite completed from its journal.
    static func openToRead(
        _ name: String, in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> any File {
        let file = try storage { () throws(FileError) in
            try fileSystem.open(directory + "/" + name, .read)
        }
        return try RewriteJournal.read(in: directory, fileSystem)?.overlaid(on: file, name: name)
            ?? file
    }

    /// Reads the last segment and classifies it. Changes nothing.
    ///
    /// - Parameter snapshot: the segment's state in a checkpoint; then only its last frame and the later
    ///   bytes are read.
    /// - Throws: `corrupt` (R6) if synced bytes are damaged, and the errors of reading the header.
    package func classify(
        _ name: String, file: any File, resuming snapshot: LiveSnapshot? = nil
    ) throws(LogError) -> LastSegment {
        do {
            return try classify(name, file: file, resuming: snapshot) { _, _ in }
        } catch let error as LogError {
            throw error
        } catch {
            throw LogError(.io, path: directory + "/" + name, "\(error)")
        }
    }

    /// Reads the last segment, line by line, and classifies it. Changes nothing.
    ///
    /// - Parameters:
    ///   - frame: the frame to begin with, if the bytes before it are known to be intact. The contents in
    ///     the result then cover only the bytes from there on.
    ///   - line: called with every intact line, in order.
    /// - Throws: `corrupt` (R6) if synced bytes are damaged, the errors of reading the header, and whatever
    ///   `line` throws.
    package func classify(
        _ name: String, file: any File, from frame: FrameEntry? = nil,
        resuming snapshot: LiveSnapshot? = nil,
        line: (LinePrefix, RawSpan) throws -> Void
    ) throws -> LastSegment {
        let path = directory + "/" + name
        let size = try storage { () throws(FileError) in try file.size() }
        guard size <= FormatLimit.segmentBytesMax else {
            throw LogError(
                .corrupt, path: path,
                "the file has \(size) bytes; a segment has at most \(FormatLimit.segmentBytesMax)")
        }
        guard let header = try header(of: file, size: size, path) else { return .unfinished }
        try header.check(isNamedFor: SegmentName.base(name), path)
        let start = frame ?? FrameEntry(offset: SegmentHeader.encodedBytes, first: header.base)
        var live = LiveSegment(
            header: header, file: file, contents: SegmentContents(base: start.first),
            dataEnd: start.offset, lastCommit: start.offset, openFrame: nil, fileBytes: size)
        let footer = try storage { () throws(FileError) in try SegmentFooter.read(atEndOf: file) }
        let isCompacted = footer?.footer.isCompacted ?? false
        var scanner = SegmentScanner(
            file, at: start.offset, expecting: start.first, allowsHoles: isCompacted)
        var knownThrough = Position.zero
        if let snapshot, snapshot.base == header.base, !isCompacted,
            let lines = snapshot.footer.lines, let frame = snapshot.footer.frames.last
        {
            live.contents = SegmentContents(resuming: snapshot)
            knownThrough = lines.upperBound
            scanner = SegmentScanner(
                file, at: frame.offset, expecting: frame.first, allowsHoles: false)
        }
        let checkpointPosition = knownThrough
        var suspectOffsets: [Int] = []
        while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            let offset: Int
            switch step {
            case .commit(let commit):
                live.lastCommit = commit.offset
                live.dataEnd = commit.end
                live.openFrame = commit.isBig ? nil : []
                guard commit.positions.upperBound > knownThrough else { continue }
                if commit.beginsFrame { live.contents.beginFrame(at: commit.frameOffset) }
                for scanned in commit.lines {
                    let bytes = scanner.plaintext.span.bytes.extracting(scanned.range)
                    live.contents.append(scanned.prefix, line: bytes)
                    try line(scanned.prefix, bytes)
                }
                continue
            case .tail(_, let tailOffset): offset = tailOffset
            case .damage(let damage): offset = damage.offset
            }
            guard scanner.expected > checkpointPosition else {
                throw LogError(
                    .corrupt, path: path, offset: live.dataEnd,
                    positions: scanner.expected...checkpointPosition,
                    "a checkpoint names position \(checkpointPosition), which was synced")
            }
            if live.openFrame != nil, let last = live.contents.frames.last {
                // After the header of a frame without an intact block, the scanner's plaintext is no longer
                // that of the open frame.
                live.openFrame =
                    scanner.plaintextFrame == last.offset
                    ? Array(scanner.plaintext[..<scanner.plaintextBytes])
                    : try DecodedFrame.read(file, path: path, last, allowsHoles: isCompacted)
                        .plaintext
            }
            do throws(LogError) {
                let end = try classifyEnd(step, live, path: path)
                guard case .torn = end, suspectOffsets.last != offset else { return end }
            } catch {
                guard error.code == .corrupt, suspectOffsets.last != offset else { throw error }
            }
            // A read is not atomic: the damage may have been read before a running writer's write, and the
            // proof after it. Damage counts only if a second read finds it at the same offset.
            suspectOffsets.append(offset)
            guard suspectOffsets.count < Self.rereadsMax else { return .live(live) }
            live.fileBytes = try storage { () throws(FileError) in try file.size() }
            knownThrough = max(knownThrough, Position(live.contents.next.rawValue - 1))
            let last = live.contents.frames.last ?? start
            scanner = SegmentScanner(
                file, at: last.offset, expecting: last.first, allowsHoles: isCompacted)
        }
    }

    /// True if a segment was begun and has no header yet (R1), or was removed again.
    func isUnfinished(_ name: String) throws(LogError) -> Bool {
        let path = directory + "/" + name
        let file: any File
        do throws(FileError) { file = try fileSystem.open(path, .read) } catch {
            guard error.code == .notFound else { throw LogError(error) }
            return true
        }
        let size = try storage { () throws(FileError) in try file.size() }
        return try header(of: file, size: size, path) == nil
    }

    /// Reads the header; nil for R1.
    private func header(
        of file: any File, size: Int, _ path: String, isRetry: Bool = false
    ) throws(LogError) -> SegmentHeader? {
        let bytes = try storage { () throws(FileError) in
            try file.read(at: 0, count: SegmentHeader.encodedBytes)
        }
        do throws(FormatError) {
            return try SegmentHeader(bytes.span.bytes)
        } catch {
            let written = SegmentHeader.encodedBytes + SkippableFrame.prefixBytes
            // An interrupted creation leaves an empty file or preallocated space.
            if error.code != .newerVersion, error.code != .unknownFeature,
                size % FormatLimit.growthGranularityBytes == 0,
                try lastNonZero(file, from: written, size: size) == nil
            {
                return nil
            }
            // A writer may have written the header, and a first commit after it, between the two reads.
            guard isRetry else {
                return try header(of: file, size: size, path, isRetry: true)
            }
            throw LogError(error, path: path, offset: 0)
        }
    }

    private func classifyEnd(
        _ step: ScanStep, _ segment: LiveSegment, path: String
    ) throws(LogError) -> LastSegment {
        let live = segment
        switch step {
        case .commit: preconditionFailure("a commit is not an end")
        case .tail(.footer(let footer, let bytes), let offset):
            try requireZeros(live, from: offset + bytes, after: "the footer", path)
            try check(footer, live, at: offset, path)
            return .sealed(footer, footerAt: offset, end: offset + bytes)
        case .tail(.cleanShutdownMarker(let marker), let offset):
            try requireZeros(
                live, from: offset + CleanShutdownMarker.encodedBytes,
                after: "the clean-shutdown marker", path)
            guard marker.last.next == live.contents.next else {
                throw LogError(
                    .corrupt, path: path, offset: offset,
                    "the clean-shutdown marker names position \(marker.last) as the last, expected "
                        + "\(Position(live.contents.next.rawValue - 1))")
            }
            return .closed(live)
        case .tail(.none, _):
            try requireNotTruncated(live, path)
            return .live(live)
        case .tail(.trailer, let offset):
            let start = offset + SkippableFrame.prefixBytes
            guard let last = try lastNonZero(live.file, from: start, size: live.fileBytes) else {
                return .live(live)
            }
            // The damage counts from the trailer, where a frame should begin, and not from the bytes after
            // it: read from there, the blocks of one torn big commit would look like separate commits.
            let error = FormatError(
                .malformed, "the preallocated space after the trailer is not empty")
            return try classifyDamage(
                ScanDamage(context: .frame, offset: offset, error: error), last, live, path)
        case .damage(let damage):
            guard
                let last = try lastNonZero(live.file, from: live.dataEnd, size: live.fileBytes)
            else {
                try requireNotTruncated(live, path)
                return .live(live)
            }
            return try classifyDamage(damage, last, live, path)
        }
    }

    /// R6: checks that the file was not truncated. A writer writes into preallocated space, and a commit
    /// never ends the file, since the space for the trailer after it was synced before it or with it. A
    /// file whose size has changed since reading began has a running writer.
    private func requireNotTruncated(_ live: LiveSegment, _ path: String) throws(LogError) {
        let size = try storage { () throws(FileError) in try live.file.size() }
        guard size == live.fileBytes else { return }
        guard isPlausibleSize(size, live) else { throw truncationError(live, size, path) }
    }

    /// True if a writer leaves files of this size: a multiple of the growth unit, or the size after recovery
    /// or closing. No file ends before the trailer's eight bytes, which are written with the last good commit.
    private func isPlausibleSize(_ size: Int, _ live: LiveSegment) -> Bool {
        let end = live.boundary + SkippableFrame.prefixBytes
        return size == end || size == live.boundary + CleanShutdownMarker.encodedBytes
            || size > end && size % FormatLimit.growthGranularityBytes == 0
    }

    private func truncationError(_ live: LiveSegment, _ size: Int, _ path: String) -> LogError {
        LogError(
            .corrupt, path: path, offset: size,
            positions: live.contents.next...live.contents.next,
            "the file was truncated: it ends where no writer ends a file. Nothing was changed; "
                + "positions from \(live.contents.next) on may be missing")
    }

    /// Distinguishes R5 from R6: whether later bytes prove that the damaged ones had been synced.
    private func classifyDamage(
        _ damage: ScanDamage, _ last: Int, _ live: LiveSegment, _ path: String
    ) throws(LogError) -> LastSegment {
        // Intact bytes of a torn commit may be followed by zeros only. The checksum at the end of a proof
        // may itself consist of zeros, so four more bytes are read.
        let suspect = try storage { () throws(FileError) in
            try live.file.read(
                at: damage.offset,
                count: max(0, last + 1 - damage.offset) + MemoryLayout<UInt32>.size)
        }
        if let proof = SyncProof.find(suspect.span.bytes, damage.context) {
            // A compacted segment without a readable footer looks like a damaged one, because of its holes.
            if let segment = try compactedWithoutFooter(live.file, path) { throw segment.error }
            throw LogError(
                .corrupt, path: path, offset: damage.offset,
                positions: live.contents.next...live.contents.next,
                damage.error.detail
                    + " (\(proof.name) at byte \(damage.offset + proof.offset) proves that it had "
                    + "been synced). Nothing was changed; positions from \(live.contents.next) on "
                    + "are affected")
        }
        let size = try storage { () throws(FileError) in try live.file.size() }
        guard size != live.fileBytes || isPlausibleSize(size, live) else {
            let isFooter = try storage { () throws(FileError) in
                guard damage.context == .frame else { return false }
                return try SegmentFooter.isExpected(at: damage.offset, of: live.file)
            }
            throw isFooter ? damagedFooter(damage, live, path) : truncationError(live, size, path)
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

    /// Checks the footer against the lines that were read. Removing a whole block from a file leaves all
    /// other checksums intact.
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
            "the segment has positions \(contents.lines?.lowerBound ?? .zero) to "
                + "\(next.rawValue - 1), \(contents.eventCount) lines; \(footer.linesDescription). Nothing "
                + "was changed")
    }

    private func requireZeros(
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

    /// The offset of the last nonzero byte at or after `offset`; nil if all are zeros.
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
            // Usually up to a megabyte of zeros: eight bytes at a time.
            while count >= 8, span.integer(at: count - 8, as: UInt64.self) == 0 { count -= 8 }
            while count > 0, span.byte(at: count - 1) == 0 { count -= 1 }
            if count > 0 { return start + count - 1 }
            end = start
        }
        return nil
    }

    // MARK: Recovering

    /// Recovers a live segment and syncs it, so that later commits follow durable bytes. Truncates a torn
    /// tail after copying it to the quarantine. A failed sync may have left pages that only look clean;
    /// therefore the last commit is rewritten with the same bytes, after a copy of it is durable.
    package func recover(
        _ live: LiveSegment, tornTail: TornTail?
    ) throws(LogError) -> (live: LiveSegment, tornTail: TornTail?) {
        var live = live
        var report = tornTail
        if let tornTail {
            report?.quarantinedAs = try quarantine(tornTail, live)
            try truncate(&live)
        }
        do throws(LogError) { try rewriteLastCommit(of: &live) } catch {
            // Preallocated space is the last that a full disk has for the copy.
            guard error.code == .diskFull, live.fileBytes > Self.end(of: live) else { throw error }
            try truncate(&live)
            try rewriteLastCommit(of: &live)
        }
        return (live, report)
    }

    /// The smallest size of the file: the space for end mark and trailer stays, so that a file that ends before
    /// them must have been truncated by another program.
    private static func end(of live: LiveSegment) -> Int {
        live.boundary + SkippableFrame.prefixBytes
    }

    /// Truncates the file after the last commit; durable on return.
    private func truncate(_ live: inout LiveSegment) throws(LogError) {
        let (file, end) = (live.file, Self.end(of: live))
        try storage { () throws(FileError) in
            try file.truncate(to: end)
            try file.sync()
        }
        live.fileBytes = end
    }

    /// Writes the last commit again, and end mark and trailer, whether or not they were intact.
    private func rewriteLastCommit(of live: inout LiveSegment) throws(LogError) {
        let start = live.lastCommit == live.dataEnd ? 0 : live.lastCommit
        let (file, count) = (live.file, live.dataEnd - start)
        let bytes = try storage { () throws(FileError) in try file.read(at: start, count: count) }
        var closing: [UInt8] = []
        if live.openFrame != nil { closing.append(littleEndian: UInt32(0)) }
        let size = max(live.fileBytes, Self.end(of: live))
        SkippableFrame.trailer.appendPrefix(
            contentBytes: size - Self.end(of: live), to: &closing)
        try RewriteJournal.rewrite(
            bytes, then: closing, at: start, of: live.file, segment: live.header.base,
            in: directory, fileSystem)
        live.fileBytes = size
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

extension ClosedRange<Position> {
    /// `position 5`, or `positions 5 to 7`.
    package var text: String {
        lowerBound == upperBound
            ? "position \(lowerBound)" : "positions \(lowerBound) to \(upperBound)"
    }
}
