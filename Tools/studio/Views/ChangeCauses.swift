// Finds the event that last changed each of some rows between two positions.

import EventSourcing
import LogFormat

/// The causes of changes to the rows of a view.
struct ChangeCauses {
    /// The positions of the events, by the row's key.
    private(set) var found: [String: UInt64] = [:]

    private let view: Int
    private let timeline: ViewTimeline
    /// The positions of the events that changed the view, ascending.
    private let positions: [UInt64]
    private var keyCount = 1

    /// Considers the last 64 events whose subject is in the row's key: the cause is the last one after which the
    /// row is what it is at the end, and before which it was not. For the changes that no such event explains, bisects all
    /// events between the positions until each change has one left; if later events with the same subject
    /// changed the row again, the last of them is the cause.
    ///
    /// - Complexity: O(changes · events of the subject) states, or O(changes · (log events + later events of
    ///   the subject)) for the others, each folded from a near one.
    init(
        of changes: [RowChanges.Change], view: Int, from: Position, to: Position,
        _ timeline: ViewTimeline, _ log: FollowedLog
    ) throws {
        self.view = view
        self.timeline = timeline
        positions = log.withState { Array($0.fold.changes(of: view, after: from, through: to)) }
        guard !positions.isEmpty, !changes.isEmpty else { return }
        let (before, after) = (
            try timeline.rows(of: view, at: from), try timeline.rows(of: view, at: to)
        )
        keyCount = RowChanges.keyCount(before, after)
        let rowKeys = changes.map { RowKey($0.anyRow, keyCount) }
        let candidates = log.withState { state in
            let subjects = rowKeys.map { key in
                key.parts.compactMap { state.index.names.existingNumber(of: $0.string) }
            }
            return Self.positions(ofSubjects: subjects, among: positions, state.index)
        }
        for ((change, key), candidates) in zip(zip(changes, rowKeys), candidates) {
            found[change.key] = try candidates.last {
                try row(key, at: $0) == change.after && row(key, at: $0 - 1) != change.after
            }
        }
        let keys = Set(changes.map(\.key)).subtracting(found.keys)
        guard !keys.isEmpty else { return }
        try search(
            for: keys, in: 0..<positions.count,
            end: keyed(after).filter { keys.contains($0.key) })
        for (change, key) in zip(changes, rowKeys) where keys.contains(change.key) {
            guard let position = found[change.key] else { continue }
            let later = log.withState { state in
                Self.positions(after: position, through: to.rawValue, state.index)
            }
            found[change.key] =
                try later.suffix(Self.subjectEventsMax).last {
                    try row(key, at: $0 - 1) != row(key, at: $0)
                } ?? position
        }
    }

    /// The greatest number of events of a subject that are considered.
    private static let subjectEventsMax = 64

    /// The positions of the last events with one of some subjects, ascending, for each list of subjects.
    private static func positions(
        ofSubjects lists: [[UInt32]], among positions: [UInt64], _ index: EventIndex
    ) -> [[UInt64]] {
        var found = lists.map { _ in [UInt64]() }
        var wanting: [UInt32: [Int]] = [:]
        for (number, list) in lists.enumerated() {
            for subject in Set(list) where subject != NameTable.none {
                wanting[subject, default: []].append(number)
            }
        }
        for position in positions.reversed() {
            guard let ordinal = index.ordinal(at: position) else { continue }
            for number in wanting[index.subjects[ordinal]] ?? []
            where found[number].count < subjectEventsMax {
                found[number].append(position)
            }
        }
        return found.map { $0.reversed() }
    }

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

    private func row(_ key: RowKey, at position: UInt64) throws -> ViewRow? {
        let list = try timeline.list(of: view, at: Position(position))
        if keyCount == 1, list.isSortedByFirstField, let id = key.parts.first {
            let offset = list.partitioningIndex { RowKey($0, 1).parts.first ?? id >= id }
            guard offset < list.count, RowKey(list[offset], 1) == key else { return nil }
            return try timeline.inserting(valuesOf: [list[offset]]).first
        }
        return try timeline.rows(of: view, at: Position(position))
            .first { RowKey($0, keyCount) == key }
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
