// Finds the event that last changed each of some rows between two positions.

import EventSourcing
import LogFormat

/// The causes of changes to the rows of a view.
struct ChangeCauses {
    /// The positions of the events, by the row's key.
    private(set) var found: [String: UInt64] = [:]

    private let view: Int
    private let timeline: ViewTimeline
    /// The positions of the events that the view folds, ascending.
    private let positions: [UInt64]
    private var keyCount = 1

    /// Bisects the events between the positions until each change has one event left, after which the row is
    /// what it is at the end. The row may have been changed and set again later: of the last 64 later events
    /// with the same subject, the last one that changed the row is the cause then.
    ///
    /// - Complexity: O(changes · (log events + later events of the subject)) states, each folded from a near
    ///   one.
    init(
        of changes: [RowChanges.Change], view: Int, from: Position, to: Position,
        _ timeline: ViewTimeline, _ log: FollowedLog
    ) throws {
        self.view = view
        self.timeline = timeline
        positions = log.withState { state in
            let folds = ViewTimeline.folds(view, state.index)
            let range =
                state.index.ordinal(
                    from: from.rawValue + 1)..<state.index.ordinal(
                    from: to.rawValue + 1)
            return range.filter(folds).map { state.index.positions[$0] }
        }
        guard !positions.isEmpty, !changes.isEmpty else { return }
        let (before, after) = (
            try timeline.rows(of: view, at: from), try timeline.rows(of: view, at: to)
        )
        keyCount = RowChanges.keyCount(before, after)
        let last = keyed(after)
        let keys = Set(changes.map(\.key))
        try search(
            for: keys, in: 0..<positions.count, end: last.filter { keys.contains($0.key) })
        for (key, position) in found {
            let later = log.withState { state in
                Self.positions(after: position, through: to.rawValue, state.index)
            }
            found[key] =
                try later.suffix(Self.laterMax).last {
                    try row(key, at: $0 - 1) != row(key, at: $0)
                } ?? position
        }
    }

    /// The most later events of a subject that are looked at.
    private static let laterMax = 64

    /// The positions of the later events about the subject of the event at a position.
    private static func positions(
        after position: UInt64, through last: UInt64, _ index: EventIndex
    ) -> [UInt64] {
        guard let ordinal = index.ordinal(at: position),
            index.subjects[ordinal] != NameTable.none
        else { return [] }
        let subject = index.subjects[ordinal]
        return (ordinal + 1..<max(ordinal + 1, index.ordinal(from: last + 1))).filter {
            index.subjects[$0] == subject
        }
        .map { index.positions[$0] }
    }

    private func row(_ key: String, at position: UInt64) throws -> ViewRow? {
        try timeline.rows(of: view, at: Position(position))
            .first { RowChanges.key($0, keyCount) == key }
    }

    private func keyed(_ rows: [ViewRow]) -> [String: ViewRow] {
        Dictionary(
            rows.map { (RowChanges.key($0, keyCount), $0) }, uniquingKeysWith: { $1 })
    }

    /// - Parameters:
    ///   - range: the events among which the last change of each key is.
    ///   - end: the rows of the keys after the last of them.
    private mutating func search(
        for keys: Set<String>, in range: Range<Int>, end: [String: ViewRow]
    ) throws {
        guard range.count > 1 else {
            for key in keys { found[key] = positions[range.lowerBound] }
            return
        }
        let middle = (range.lowerBound + range.upperBound) / 2
        let rows = keyed(
            try timeline.rows(of: view, at: Position(positions[middle - 1])))
        let later = keys.filter { rows[$0] != end[$0] }
        let earlier = keys.subtracting(later)
        if !later.isEmpty {
            try search(for: later, in: middle..<range.upperBound, end: end)
        }
        if !earlier.isEmpty {
            try search(
                for: earlier, in: range.lowerBound..<middle,
                end: rows.filter { earlier.contains($0.key) })
        }
    }
}
