// The rows of the views through time, as the changes from one position to the next, for a page without a server.

import DaybookOffline
import EventSourcing
import LogFormat

/// The rows of one view at the positions of its history.
struct ViewRowsHistory {
    /// The rows that changed from the step before to this one.
    private struct Step {
        var position: Position
        var set: [(key: String, row: ViewRow)] = []
        var removed: [String] = []
    }

    private let view: Int
    private var steps: [Step] = []

    /// The most rows that are compared. The history of a view without keys has so many steps that it stays below.
    private static let comparedRowsMax = 200_000

    /// - Complexity: O(changed rows) for a view with keys, else O(`comparedRowsMax`).
    init(of view: Int, _ points: [ViewHistory.Point]) {
        self.view = view
        if let type = OfflineModel.views[view] as? any KeyedView.Type,
            points.allSatisfy({ $0.keys != nil })
        {
            compare(points, keyCount: type.keyNames.count)
        } else {
            let rows = points.last?.state.rows().count ?? 0
            let spacing = (points.count * rows + Self.comparedRowsMax) / Self.comparedRowsMax
            compareAll(ViewHistory.thinned(points, spacing: max(1, spacing)))
        }
    }

    private mutating func compare(_ points: [ViewHistory.Point], keyCount: Int) {
        // Strings that differ in their Unicode form only are different keys.
        var known: [[EntityID]: ViewRow] = [:]
        for point in points {
            guard let state = point.state as? any KeyedView else { continue }
            var step = Step(position: point.position)
            let keys = (point.keys ?? []).sorted { $0.lexicographicallyPrecedes($1) }
            let rows = state.rows(keys: keys.map { $0.map(\.string) })
            for (key, row) in zip(keys, rows) where known[key] != row {
                if let row {
                    step.set.append((RowChanges.key(row, keyCount), row))
                } else if let row = known[key] {
                    step.removed.append(RowChanges.key(row, keyCount))
                }
                known[key] = row
            }
            append(step)
        }
    }

    private mutating func compareAll(_ points: [ViewHistory.Point]) {
        // As many leading fields as distinguish the rows of each state.
        let count = points.map { RowChanges.keyCount(Array($0.state.rows())) }.max() ?? 0
        var known: [String: ViewRow] = [:]
        for point in points {
            var (step, now) = (Step(position: point.position), [String: ViewRow]())
            for row in point.state.rows() {
                let key = RowChanges.key(row, count)
                now[key] = row
                if known[key] != row { step.set.append((key, row)) }
            }
            step.removed = known.keys.filter { now[$0] == nil }.sorted()
            known = now
            append(step)
        }
    }

    private mutating func append(_ step: Step) {
        guard !step.set.isEmpty || !step.removed.isEmpty else { return }
        steps.append(step)
    }

    /// The history in the file, with the values that are stored in events.
    ///
    /// - Throws: `LogError`.
    func json(_ views: ViewTimeline, changes: [Int]) throws -> JSONObjectWriter {
        var filled = try views.inserting(valuesOf: steps.flatMap { $0.set.map(\.row) })[...]
        let history = steps.map { step in
            JSONObjectWriter.object {
                $0.appendMember("position", Int(clamping: step.position.rawValue))
                var set = JSONObjectWriter()
                for (change, row) in zip(step.set, filled) {
                    set.appendMember(change.key, raw: row.json)
                }
                filled = filled.dropFirst(step.set.count)
                $0.appendMember("set", raw: set.finished())
                $0.appendMember("removed", strings: step.removed)
            }
        }
        return .object {
            $0.appendMember("name", ViewTimeline.names[view])
            $0.appendMember(
                "types",
                raw: OfflineModel.views[view].eventTypes.map {
                    JSONObjectWriter.array($0.sorted().map(JSONObjectWriter.string))
                } ?? Array("null".utf8))
            $0.appendMember("history", list: history)
            $0.appendMember("changes", numbers: changes)
        }
    }
}
