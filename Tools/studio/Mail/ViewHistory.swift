// The rows of the views through time, as the changes from one position to the next, for a page without a
// server.

import DaybookOffline
import EventSourcing
import LogFormat

/// The history of views.
enum ViewHistory {
    /// The most positions of a view's history. With more events the history has evenly chosen ones.
    private static let positionsMax = 2_000

    /// The histories of all built-in views that have rows at some time.
    static func all(of api: API, _ log: FollowedLog) throws -> [JSONObjectWriter] {
        try ViewTimeline.names.indices.map { view in
            let positions = log.withState { state in
                let through = state.compactedThrough
                // Of a compacted log the first state is the one at that position.
                return (through > .zero ? [through.rawValue] : [])
                    + state.fold.changes(of: view, after: through, through: state.last)
            }
            var history = try history(of: view, at: chosen(positions), api)
            history.appendMember(
                "changes", numbers: log.withState { $0.changes(of: view).map { Int(clamping: $0) } }
            )
            return history
        }
    }

    private static func chosen(_ positions: [UInt64]) -> [UInt64] {
        guard positions.count > positionsMax, let last = positions.last else { return positions }
        let spacing = (positions.count + positionsMax - 1) / positionsMax
        return positions.indices.filter { $0 % spacing == 0 }.map { positions[$0] } + [last]
    }

    private static func history(
        of view: Int, at positions: [UInt64], _ api: API
    ) throws -> JSONObjectWriter {
        // As many leading fields as distinguish the rows of each state.
        let count =
            try positions.map {
                RowChanges.keyCount(try api.views.rows(of: view, at: Position($0)))
            }.max() ?? 0
        var known: [String: ViewRow] = [:]
        var columns: [String] = []
        var history: [JSONObjectWriter] = []
        for position in positions {
            let rows = try api.views.rows(of: view, at: Position(position))
            var (set, now) = (JSONObjectWriter(), [String: ViewRow]())
            var isChanged = false
            for row in rows {
                let key = RowChanges.key(row, count)
                now[key] = row
                if row.fields.count > columns.count { columns = row.fields.map(\.name) }
                guard known[key] != row else { continue }
                set.appendMember(key, raw: row.json)
                isChanged = true
            }
            let removed = known.keys.filter { now[$0] == nil }.sorted()
            known = now
            guard isChanged || !removed.isEmpty else { continue }
            history.append(
                .object {
                    $0.appendMember("position", Int(clamping: position))
                    $0.appendMember("set", raw: set.finished())
                    $0.appendMember("removed", strings: removed)
                })
        }
        return .object {
            $0.appendMember("name", ViewTimeline.names[view])
            $0.appendMember(
                "types",
                raw: OfflineModel.views[view].eventTypes.map {
                    JSONObjectWriter.array($0.sorted().map(JSONObjectWriter.string))
                } ?? Array("null".utf8))
            $0.appendMember("columns", strings: columns)
            $0.appendMember("history", list: history)
        }
    }
}
