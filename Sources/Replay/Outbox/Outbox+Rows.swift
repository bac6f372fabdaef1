// The outbox as rows with the fields of `SyncAction`. Spec/protocol/sync-records.md.

import EventSourcing
import Foundation
import LogFormat

extension Outbox: KeyedView {
    public static let keyNames = ["id"]
    public static let columns = [
        "id", "actionType", "entityId", "actionData", "timestamp", "syncStatus", "retryCount",
        "lastAttemptAt", "errorMessage", "parked", "position",
    ]

    /// One row for each entry, by position: its state as the log records it. The event's data, `actionData`, are
    /// in the event.
    public func rows() -> ViewRows { ViewRows(Array(entries)) { $0.row } }

    /// Of an own event, its id; of an answer that is not yet folded, the ids of its entries.
    public func rowKeys(changedBy event: Event) -> [[String]]? {
        guard LogRecord.isType(event.type) else { return event.isOwn ? [[event.id.text]] : [] }
        guard event.type != SyncPulled.type else { return [] }
        guard event.type == SyncSettled.type, event.position > through,
            let record = try? SyncSettled(json: event.content.json ?? []), record.replaces == nil
        else { return nil }
        let settled = (record.applied + record.duplicate).flatMap { range in
            entries(from: Position(range.lowerBound))
                .prefix { $0.position.rawValue <= range.upperBound }.map { [$0.id.text] }
        }
        return settled + record.entries.map { [$0.id.text] }
    }

    /// - Complexity: O(entries) from the last one back to the key's.
    public func row(key: [String]) -> ViewRow? { rows(keys: [key])[0] }

    public func rows(keys: [[String]]) -> [ViewRow?] {
        var missing: [UUID: Int] = [:]
        for (index, key) in keys.enumerated() { missing[UUID(text: key[0]) ?? UUID()] = index }
        var rows: [ViewRow?] = Array(repeating: nil, count: keys.count)
        var entries = entries.reversed().makeIterator()
        while !missing.isEmpty, let entry = entries.next() {
            if let index = missing.removeValue(forKey: entry.id) { rows[index] = entry.row }
        }
        return rows
    }
}
