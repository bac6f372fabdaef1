// Judges the files of a damaged log together: which belongs where, which positions each answers for,
// what is missing. Reads and decides only; LogRepair carries it out. The rules are the table of
// Spec/format/repair.md, REP-2, in its order.

import LogFormat

/// What has to be done so that a log is sound again.
struct RepairPlan {
    /// A segment to be written.
    struct Writing {
        /// The last position that it answers for.
        var through: Position
        var header: SegmentHeader
        /// The file its lines come from, and what is left of it; nil for an empty segment.
        var source: (name: String, salvage: SegmentSalvage)?
        /// Whether the segment begins where its source does.
        var keepsBase = true
        /// States before it cannot be rebuilt; nil if no position is left out.
        var compactedThrough: Position?

        var positions: ClosedRange<Position> { header.base...through }
        var target: String { SegmentName.of(header.base) }
    }

    var actions: [RepairAction] = []
    private(set) var writings: [Writing] = []

    /// What new segments have in their headers, but for the base.
    let fresh: SegmentHeader
    /// The last position that a checkpoint names: it had been synced.
    let proven: Position
    /// The name of the last segment file.
    private let lastNamed: Position?
    private let salvage: (SurveyedFile) throws(LogError) -> SegmentSalvage
    /// The position that the next segment begins with.
    private var next = Position(1)
    /// Whether the last segment can be appended to.
    private var isOpenEnded = false

    /// Judges files.
    ///
    /// - Parameters:
    ///   - files: the log's segments, in order of their names, and what an interrupted repair left.
    ///   - checkpoints: the log ids and positions that stored views name, the newest first.
    ///   - fresh: a header with a new log id, for a log that has none left.
    ///   - salvage: reads a file that is sound but has to be written anew.
    init(
        _ files: [SurveyedFile], checkpoints: [(logID: UInt128, position: Position)],
        fresh: SegmentHeader, salvage: @escaping (SurveyedFile) throws(LogError) -> SegmentSalvage
    ) throws(LogError) {
        // Where no header is left, the log is known from what was stored of it.
        let known = Self.identity(of: files)
        var identity = known ?? fresh
        if known == nil, let newest = checkpoints.first { identity.logID = newest.logID }
        self.fresh = identity
        lastNamed = files.compactMap(\.named).max()
        self.salvage = salvage
        proven = checkpoints.filter { $0.logID == identity.logID }.map(\.position).max() ?? .zero
        let (chain, useless, rivals) = sort(files, identity)
        for (index, file) in chain.enumerated() {
            let following = chain.dropFirst(index + 1).first?.base
            try place(file, before: following)
        }
        closeChain(useless, rivals)
        // Compaction may have gone by any state up to now where only the lines tell of it.
        let last = Position(next.rawValue - 1)
        for (number, writing) in writings.enumerated() {
            guard let salvage = writing.source?.salvage, salvage.isCompacted,
                salvage.footer == nil
            else { continue }
            writings[number].compactedThrough = last
        }
    }

    /// The header of the log that most files are of; of two that are equal, the first in order. What
    /// an interrupted repair left counts only where nothing else does.
    private static func identity(of files: [SurveyedFile]) -> SegmentHeader? {
        let named = files.filter { $0.named != nil }.compactMap(\.header)
        let headers = named.isEmpty ? files.compactMap(\.header) : named
        func count(_ header: SegmentHeader) -> Int {
            headers.count { $0.isOfOneLog(with: header) }
        }
        return headers.reduce(nil) { best, header in
            guard let best else { return header }
            return count(header) > count(best) ? header : best
        }
    }

    // MARK: P1 and P2: what belongs to the log

    /// Takes out what is of no use, and gives one file for each place, in order.
    ///
    /// - Returns: that chain, what is of no use, and the files whose positions a better one has.
    private mutating func sort(
        _ files: [SurveyedFile], _ identity: SegmentHeader
    ) -> (chain: [SurveyedFile], useless: [SurveyedFile], rivals: [SurveyedFile]) {
        var places: [Position: [SurveyedFile]] = [:]
        var useless: [SurveyedFile] = []
        func quarantine(_ file: SurveyedFile, _ reason: String) {
            // What an interrupted repair left is removed at the end in any case.
            guard file.named != nil else { return }
            actions.append(
                RepairAction(
                    verb: .quarantine, name: file.name, bytes: file.bytes, reason: reason))
        }
        for file in files {
            if let header = file.header, !header.isOfOneLog(with: identity) {
                useless.append(file)
                quarantine(file, "the segment is of another log")
            } else if case .unreadable = file.state {
                useless.append(file)
                quarantine(file, file.reason)
            } else if let base = file.base {
                places[base, default: []].append(file)
            } else {
                useless.append(file)
                quarantine(file, "nothing in the file can be read; \(file.reason)")
            }
        }
        var chain: [SurveyedFile] = []
        var rivals: [SurveyedFile] = []
        for base in places.keys.sorted() {
            guard let all = places[base], let best = all.max(by: { $0.isWorse(than: $1) })
            else { continue }
            chain.append(best)
            for file in all where file.name != best.name {
                rivals.append(file)
                quarantine(file, "\(best.name) has the same positions and is as good or better")
            }
        }
        return (chain, useless, rivals)
    }

    // MARK: P3 to P6: each file's place

    private mutating func place(
        _ file: SurveyedFile, before following: Position?
    ) throws(LogError) {
        guard let base = file.base else { return }
        if base > next {
            create(through: Position(base.rawValue - 1), "no segment has these positions")
        }
        let isInPlace = file.named == base && base == next
        switch file.state {
        case .sealed(let through, let hasRoom)
        where isInPlace
            && (!hasRoom
                || following == nil && file.named == lastNamed && proven <= through):
            next = through.next
            return
        case .appendable(let after) where isInPlace && following == nil && proven < after:
            next = after
            isOpenEnded = true
            return
        case .unfinished where isInPlace && following == nil && proven < base:
            isOpenEnded = true
            return
        case .unfinished, .unreadable:
            drop(file, "the segment holds nothing and yet lines followed")
            return
        case .sealed, .appendable, .damaged: break
        }
        let salvage = try read(file)
        let (through, isKnown) = end(of: file, salvage, before: following)
        guard through >= next else {
            return drop(
                file, "it has no lines, or other segments have its positions; \(file.reason)")
        }
        rewrite(file, salvage, next...through, endIsKnown: isKnown)
    }

    private func read(_ file: SurveyedFile) throws(LogError) -> SegmentSalvage {
        if case .damaged(let salvage) = file.state { return salvage }
        return try salvage(file)
    }

    /// The last position that a file answers for. Never one that was acknowledged is given away:
    /// where nobody can tell how many lines were lost, it is as far as any can have reached.
    private func end(
        of file: SurveyedFile, _ salvage: SegmentSalvage, before following: Position?
    ) -> (position: Position, isKnown: Bool) {
        let start = file.base ?? next
        let read = salvage.last ?? Position(start.rawValue - 1)
        if let footer = salvage.footer, footer.coveredThrough < following ?? .init(.max) {
            return (max(footer.coveredThrough, read), true)
        }
        // A footer that covers what the next segment holds is wrong.
        if let following { return (max(read, Position(following.rawValue - 1)), true) }
        if let end = salvage.end, max(end, read) >= proven { return (max(end, read), true) }
        let bound =
            salvage.isCut || read < proven
            ? start.advanced(capped: FormatLimit.segmentEventsMax)
            : read.advanced(capped: salvage.lostTailBytes * Self.linesPerByteMax)
        return (max(bound, read, proven), false)
    }

    /// LZ4 makes at most 255 bytes of one; a line has at least 164.
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
        } else if reason.isEmpty, case .sealed(_, hasRoom: true) = file.state {
            reason = "zeros follow the footer of a segment that others follow"
        } else if reason.isEmpty {
            reason =
                header.base == file.base
                ? "the segment is not sealed and others follow it"
                : "the segment begins at position \(file.base ?? .zero) where "
                    + "\(range.lowerBound) belongs"
        }
        let lost = salvage.missing(in: range)
        let isLeftover = file.named == nil
        actions.append(
            RepairAction(
                verb: .rewrite, name: isLeftover ? SegmentName.of(header.base) : file.name,
                positions: range, lost: lost, endIsKnown: endIsKnown,
                bytes: isLeftover ? nil : file.bytes,
                reason: isLeftover ? "an interrupted repair had written it" : reason))
        writings.append(
            Writing(
                through: range.upperBound, header: header, source: (file.name, salvage),
                keepsBase: header.base == file.base,
                compactedThrough: salvage.isCompacted || !lost.isEmpty
                    ? salvage.footer?.compaction?.through ?? .zero : nil))
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

    /// Positions behind a sealed end were acknowledged if a checkpoint names them, or if a file stood
    /// for them of which nothing can be read, or which takes the very place where the log goes on.
    private mutating func closeChain(_ useless: [SurveyedFile], _ rivals: [SurveyedFile]) {
        guard !isOpenEnded else { return }
        let places =
            useless.compactMap { file -> Position? in
                // A folder or a link proves nothing, whatever its name says.
                if case .unreadable = file.state { return nil }
                return file.header == nil || file.named == next ? file.named : nil
            } + rivals.compactMap { $0.named == next ? $0.named : nil }
        guard let furthest = (places + [proven]).max(), furthest >= next else { return }
        let through = max(next, furthest).advanced(capped: FormatLimit.segmentEventsMax)
        guard through >= next else { return }
        create(through: through, "the last segment is lost", endIsKnown: false)
    }
}

extension SegmentHeader {
    fileprivate func isOfOneLog(with other: SegmentHeader) -> Bool {
        logID == other.logID && account == other.account
    }
}

extension SurveyedFile {
    /// Whether another file with the same positions is rather to be taken.
    fileprivate func isWorse(than other: SurveyedFile) -> Bool {
        if isSoundInPlace != other.isSoundInPlace { return other.isSoundInPlace }
        if lineCount != other.lineCount { return lineCount < other.lineCount }
        if isWhole != other.isWhole { return other.isWhole }
        return (named == base ? 1 : 0) < (other.named == other.base ? 1 : 0)
    }

    /// True for a sealed segment in its place. One that can be appended to may have been truncated, so
    /// that another file has more of its lines.
    private var isSoundInPlace: Bool {
        if case .sealed = state { return named == base }
        return false
    }
}

extension Position {
    /// The place so many lines further, but never the last number there is.
    fileprivate func advanced(capped count: Int) -> Position {
        let (sum, isHuge) = rawValue.addingReportingOverflow(UInt64(count))
        let max = FormatLimit.positionMax
        return Position(isHuge ? max : min(sum, max))
    }
}
