// The outbox as rows with the fields of `SyncAction`. Spec/protocol/sync-records.md.

import EventSourcing
import Foundation

extension Outbox: KeyedView {
    public static let keyNames = ["id"]
    public static let columns = [
        "id", "actionType", "entityId", "actionData", "timestamp", "syncStatus", "retryCount",
        "lastAttemptAt", "errorMessage", "parked", "position",
    ]

    /// One row for each entry, by position: its state as the log records it. The event's data, `actionData`, are
    /// in the event.
    public func rows() -> ViewRows { ViewRows(Array(entries)) { $0.row } }

    /// Of an own event, its id; of a record, any rows.
    public func rowKeys(changedBy event: Event) -> [[String]]? {
        guard !LogRecord.isType(event.type) else { return nil }
        return event.isOwn ? [[event.id.text]] : []
    }

    /// - Complexity: O(entries) from the last one back to the key's.
    public func row(key: [String]) -> ViewRow? { rows(keys: [key])[key] }

    public func rows(keys: Set<[String]>) -> [[String]: ViewRow] {
        var missing = Set(keys.compactMap { UUID(text: $0[0]) })
        var rows: [[String]: ViewRow] = [:]
        var entries = entries.reversed().makeIterator()
        while !missing.isEmpty, let entry = entries.next() {
            if missing.remove(entry.id) != nil { rows[[entry.id.text]] = entry.row }
        }
        return rows
    }
}
