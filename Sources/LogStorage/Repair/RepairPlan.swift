// Plans the repair of a damaged log from all its files together: the order of the segments, the positions
// that each covers, and the positions that are lost. Only reads; LogRepair carries the plan out. The rules
// are the table of Spec/format/repair.md, REP-2, in its order.

import LogFormat

/// The steps that make a log sound again.
struct RepairPlan {
    /// A segment to be written.
    struct Writing {
        /// The last position that the segment covers.
        var through: Position
        var header: SegmentHeader
        /// The file that the lines come from, and its intact frames; nil for an empty segment.
        var source: (name: String, salvage: SegmentSalvage)?
        /// True if the segment has the same first position as its source.
        var keepsBase = true
        /// The position before which states cannot be rebuilt; nil if no position is left out.
        var compactedThrough: Position?

        var positions: ClosedRange<Position> { header.base...through }
        var target: String { SegmentName.of(header.base) }
    }

    var actions: [RepairAction] = []
    /// The number of lines that the log has afterwards.
    private(set) var kept = 0
    private(set) var writings: [Writing] = []

    /// The header of new segments, except for the base.
    let fresh: SegmentHeader
    /// The last position that a checkpoint names, which proves that it was synced.
    let proven: Position
    /// The positions that a copied folder lacks, since a writer was at work when it was made.
    private(set) var missing: ClosedRange<Position>?
    private let claims: EndClaims
    /// The positions in the names of folders, links and pipes.
    private let unreadable: Set<Position>
    /// The position in the name of the last segment file.
    private let lastNamed: Position?
    private let salvage: (SurveyedFile) throws(LogError) -> SegmentSalvage
    /// The first position of the next segment.
    private var next = Position(1)
    /// True if the last segment can be appended to.
    private var isOpenEnded = false

    /// Plans the repair.
    ///
    /// - Parameters:
    ///   - files: the log's segments, in order of their names, and the files of an interrupted repair.
    ///   - claims: the positions that checkpoints and `lock` name.
    ///   - fresh: a header with a new log id, for a log without an intact one.
    ///   - salvage: reads the frames of a sound file that must be rewritten.
    init(
        _ files: [SurveyedFile], claims: EndClaims, fresh: SegmentHeader,
        salvage: @escaping (SurveyedFile) throws(LogError) -> SegmentSalvage
    ) throws(LogError) {
        // Without an intact header, the log's id comes from the newest checkpoint.
        let known = Self.identity(of: files)
        var identity = known ?? fresh
        if known == nil, let newest = claims.heads().first(where: { _ in true }) {
            identity.logID = newest.checkpoint.logID
        }
        self.fresh = identity
        lastNamed = files.compactMap(\.named).max()
        self.salvage = salvage
        self.claims = claims
        // In a copied folder the positions after the end were never acknowledged.
        proven =
            claims.isCopy
            ? .zero
            : claims.heads().map(\.checkpoint).filter { $0.logID == identity.logID }
                .map(\.position).max() ?? .zero
        unreadable = Set(files.filter(\.isUnreadable).compactMap(\.named))
        let (chain, useless, rivals) = selectChain(from: files, identity)
        for (index, file) in chain.enumerated() {
            let following = chain.dropFirst(index + 1).first?.base
            try plan(file, before: following)
        }
        closeChain(useless, rivals)
        markUnknown(useless)
        missing = claims.missing(from: next, of: identity.logID)
        // Without a footer, compaction may have relied on any state up to the last position.
        let last = Position(next.rawValue - 1)
        for (number, writing) in writings.enumerated() {
            guard let salvage = writing.source?.salvage, salvage.isCompacted,
                salvage.footer == nil
            else { continue }
            writings[number].compactedThrough = last
        }
    }

    /// The header of the log that most files belong to. The files of an interrupted repair count only if no
    /// segment has a header.
    private static func identity(of files: [SurveyedFile]) -> SegmentHeader? {
        let named = files.filter { $0.named != nil }.compactMap(\.header)
        return SegmentHeader.ofMost(named.isEmpty ? files.compactMap(\.header) : named)
    }

    // MARK: P1 and P2: the files of the log

    /// Selects one file for each first position and quarantines the others.
    ///
    /// - Returns: the selected files in order, the useless ones, and those of whose positions a better file
    ///   exists.
    private mutating func selectChain(
        from files: [SurveyedFile], _ identity: SegmentHeader
    ) -> (chain: [SurveyedFile], useless: [SurveyedFile], rivals: [SurveyedFile]) {
        var candidates: [Position: [SurveyedFile]] = [:]
        var useless: [SurveyedFile] = []
        func quarantine(_ file: SurveyedFile, _ reason: String) {
            // The files of an interrupted repair are removed at the end in any case.
            guard file.named != nil else { return }
            actions.append(
                RepairAction(
                    verb: .quarantine, name: file.name, bytes: file.bytes, reason: reason))
        }
        for file in files {
            if let header = file.header, !header.isOfOneLog(with: identity) {
                useless.append(file)
                quarantine(file, "the segment belongs to another log")
            } else if file.isUnreadable {
                useless.append(file)
                quarantine(file, file.reason)
            } else if let base = file.base {
                candidates[base, default: []].append(file)
            } else {
                useless.append(file)
                quarantine(file, "nothing in the file can be read; \(file.reason)")
            }
        }
        var chain: [SurveyedFile] = []
        var rivals: [SurveyedFile] = []
        for base in candidates.keys.sorted() {
            guard let all = candidates[base], let best = all.max(by: { $0.isWorse(than: $1) })
            else { continue }
            chain.append(best)
            for file in all where file.name != best.name {
                rivals.append(file)
                quarantine(file, "\(best.name) begins at the same position and is as complete")
            }
        }
        return (chain, useless, rivals)
    }

    // MARK: P3 to P6: the positions of each file

    private mutating func plan(
        _ file: SurveyedFile, before following: Position?
    ) throws(LogError) {
        guard let base = file.base else { return }
        if base > next {
            create(through: Position(base.rawValue - 1), "no segment has these positions")
        }
        let isInPlace = file.named == base && base == next
        switch file.state {
        case .sealed(let through, let hasTrailingZeros)
        where isInPlace
            && (!hasTrailingZeros
                || following == nil && file.named == lastNamed && end(at: through.next) <= through):
            next = through.next
            kept += file.events
            return
        case .appendable(let after) where isInPlace && following == nil && end(at: after) < after:
            next = after
            kept += file.events
            isOpenEnded = true
            return
        case .unfinished where isInPlace && following == nil && end(at: base) < base:
            isOpenEnded = true
            return
        case .unfinished, .unreadable:
            drop(file, "the segment is empty although later lines exist")
            return
        case .sealed, .appendable, .damaged: break
        }
        let salvage = try read(file)
        let (through, isKnown) = end(of: file, salvage, before: following)
        guard through >= next else {
            return drop(
                file, "it has no lines, or other segments cover its positions; \(file.reason)")
        }
        rewrite(file, salvage, next...through, endIsKnown: isKnown)
    }

    private func read(_ file: SurveyedFile) throws(LogError) -> SegmentSalvage {
        if case .damaged(let salvage) = file.state { return salvage }
        return try salvage(file)
    }

    /// The last position that a file covers. An acknowledged position must never be reused: if the number of
    /// lost lines is not known, this is the last position that the file can have contained.
    private func end(
        of file: SurveyedFile, _ salvage: SegmentSalvage, before following: Position?
    ) -> (position: Position, isKnown: Bool) {
        let start = file.base ?? next
        let read = salvage.last ?? Position(start.rawValue - 1)
        if let footer = salvage.footer, footer.coveredThrough < following ?? .init(.max) {
            return (max(footer.coveredThrough, read), true)
        }
        // A footer that covers positions of the next segment is wrong.
        if let following { return (max(read, Position(following.rawValue - 1)), true) }
        if let end = salvage.end, max(end, read) >= proven { return (max(end, read), true) }
        let bound =
            salvage.isTruncated || read < proven
            ? start.advanced(capped: FormatLimit.segmentEventsMax)
            : read.advanced(capped: salvage.lostTailBytes * Self.linesPerByteMax)
        // Compaction may have removed lines after a compacted segment's last one. None is lost there if the
        // damaged footer follows directly.
        return (max(bound, read, proven), salvage.isCompacted && salvage.hasDamagedEnding)
    }

    /// LZ4 decodes one byte to at most 255; a line has at least 164.
    private static let linesPerByteMax = 255 / FormatLimit.lineBytesMin + 1

    private mutating func rewrite(
        _ file: SurveyedFile, _ salvage: SegmentSalvage, _ range: ClosedRange<Position>,
        endIsKnown: Bool
    ) {
        var header = file.header ?? fresh
        header.base = range.lowerBound
        var reason = file.reason
        if reason.isEmpty, !endIsKnown {
            reason = "a checkpoint names position \(proven), which had been synced"
        } else if reason.isEmpty, case .sealed(_, hasTrailingZeros: true) = file.state {
            reason = "zeros follow the segment's footer, and other segments follow"
        } else if reason.isEmpty {
            reason =
                header.base == file.base
                ? "the segment is not sealed, and other segments follow"
                : "the segment begins at position \(file.base ?? .zero), expected "
                    + "\(range.lowerBound)"
        }
        let lost = salvage.lostPositions(in: range)
        kept += salvage.lineCount(in: range)
        let isLeftover = file.named == nil
        actions.append(
            RepairAction(
                verb: .rewrite, name: isLeftover ? SegmentName.of(header.base) : file.name,
                positions: range, lost: lost, endIsKnown: endIsKnown,
                bytes: isLeftover ? nil : file.bytes,
                reason: isLeftover ? "an interrupted repair has written it" : reason))
        writings.append(
            Writing(
                through: range.upperBound, header: header, source: (file.name, salvage),
                keepsBase: header.base == file.base,
                compactedThrough: salvage.isCompacted || !lost.isEmpty
                    ? salvage.footer?.compaction?.through ?? .zero : nil))
        if let second = salvage.secondWriter {
            actions[actions.count - 1].secondWriter = second.positions
            actions[actions.count - 1].reason +=
                "; from byte \(second.offset) on it has lines of a second writer, with positions that "
                + "the lines before have; they are kept in the quarantined file only"
        }
        next = range.upperBound.next
    }

    private mutating func create(
        through: Position, _ reason: String, endIsKnown: Bool = true
    ) {
        var header = fresh
        header.base = next
        let range = next...through
        actions.append(
            RepairAction(
                verb: .create, name: SegmentName.of(next), positions: range, lost: [range],
                endIsKnown: endIsKnown, reason: reason))
        writings.append(
            Writing(through: through, header: header, source: nil, compactedThrough: .zero))
        next = through.next
    }

    private mutating func drop(_ file: SurveyedFile, _ reason: String) {
        guard file.named != nil else { return }
        actions.append(
            RepairAction(verb: .quarantine, name: file.name, bytes: file.bytes, reason: reason))
    }

    // MARK: P7: the end

    /// The last position that the log is known to have had if its segments end before `next`; less than `next` if
    /// none is known. An entry that is no file, but is named as the next segment, shows also in a copy that there
    /// was one.
    private func end(at next: Position) -> Position {
        let named = claims.end(notBefore: next, of: fresh.logID)?.position ?? .zero
        if unreadable.contains(next) { return max(next, named) }
        return claims.isCopy ? .zero : named
    }

    /// Creates an empty segment for positions after a sealed end that were acknowledged: those that a
    /// checkpoint or `lock` names, or that a removed file had. Such a file has no readable header, or its name is
    /// the position at which the log continues.
    private mutating func closeChain(_ useless: [SurveyedFile], _ rivals: [SurveyedFile]) {
        guard !isOpenEnded else { return }
        let missingBases =
            useless.compactMap { file -> Position? in
                // A folder or a link with another name proves nothing: `end(at:)`.
                guard !file.isUnreadable else { return nil }
                return file.header == nil || file.named == next ? file.named : nil
            } + rivals.compactMap { $0.named == next ? $0.named : nil }
        guard let furthest = (missingBases + [end(at: next)]).max(), furthest >= next else {
            return
        }
        let through = max(next, furthest).advanced(capped: FormatLimit.segmentEventsMax)
        guard through >= next else { return }
        create(through: through, "the last segment is lost", endIsKnown: false)
    }

    /// Marks the actions for entries that are no files and are named after the end: whether there were such
    /// positions is not known.
    private mutating func markUnknown(_ useless: [SurveyedFile]) {
        let names = useless.filter { $0.isUnreadable && $0.named ?? .zero >= next }.map(\.name)
        for index in actions.indices where names.contains(actions[index].name) {
            actions[index].endIsKnown = false
        }
    }
}

extension SurveyedFile {
    /// True if `other`, with the same first position, is the better source.
    fileprivate func isWorse(than other: SurveyedFile) -> Bool {
        if isSoundInPlace != other.isSoundInPlace { return other.isSoundInPlace }
        if lineCount != other.lineCount { return lineCount < other.lineCount }
        if isWhole != other.isWhole { return other.isWhole }
        return (named == base ? 1 : 0) < (other.named == other.base ? 1 : 0)
    }

    /// True for a sealed segment under its own name. A live segment may have been truncated, so that another
    /// file has more of its lines.
    private var isSoundInPlace: Bool {
        if case .sealed = state { return named == base }
        return false
    }
}

extension Position {
    /// The position `count` lines further, at most `FormatLimit.positionMax`.
    fileprivate func advanced(capped count: Int) -> Position {
        let (sum, isHuge) = rawValue.addingReportingOverflow(UInt64(count))
        let max = FormatLimit.positionMax
        return Position(isHuge ? max : min(sum, max))
    }
}
