// Looks up many ids at once, without the writer's lock: which of its events a companion finds in the main log.
// Spec/format/companions.md, COMP-6.

import LogFormat

extension LogReader {
    /// What a log knows of an id.
    package enum KnownID: Hashable, Sendable {
        case line(Position)
        case removed(RemovedID)

        package var position: Position {
            switch self {
            case .line(let position): position
            case .removed(let removed): removed.position
            }
        }
    }

    /// The ids that the log knows, of those given: of its lines, and of lines that compaction has removed.
    ///
    /// - Parameter now: the time, in milliseconds since 1970, at which removed ids may have expired.
    /// - Throws: `LogError`; a segment that is compacted during the call may be reported as damaged.
    /// - Complexity: O(ids · segments · log ids), and O(bytes) of a segment that is not sealed.
    package func known(_ ids: Set<UInt128>, now: Int64) throws -> [UInt128: KnownID] {
        var found: [UInt128: KnownID] = [:]
        guard !ids.isEmpty else { return found }
        let outline = try outline()
        for segment in outline where segment.isSealed {
            try find(ids, in: segment, now: now, &found)
        }
        guard let live = outline.last, !live.isSealed else { return found }
        var cursor = cursor(after: live.base.advanced(by: -1))
        try cursor.poll { prefix, _ in
            if ids.contains(prefix.id) { found[prefix.id] = .line(prefix.position) }
            return true
        }
        return found
    }

    private func find(
        _ ids: Set<UInt128>, in outline: SegmentOutline, now: Int64,
        _ found: inout [UInt128: KnownID]
    ) throws(LogError) {
        let segment = try open(outline)
        let removed =
            outline.compactedThrough > .zero
            ? try segment.removedIDs().filter { !$0.list.isExpired(now: now) } : []
        for id in ids {
            for entry in try segment.candidateFrames(id: id) {
                let line = try LineSearch.line(
                    id: id, in: segment.file, path: segment.path, entry,
                    allowsHoles: segment.footer.isCompacted)
                if let line { found[id] = .line(line.position) }
            }
            for list in removed where found[id] == nil {
                if let entry = try segment.find(id, in: list) { found[id] = .removed(entry) }
            }
        }
    }
}
