// The differences between the rows of a view at two positions.

import EventSourcing

/// The rows that two states of a view do not have in common.
struct RowChanges {
    /// One row.
    struct Change {
        var key: String
        var before: ViewRow?
        var after: ViewRow?

        /// The row, after the change unless it was removed.
        var anyRow: ViewRow { after ?? before ?? ViewRow() }

        /// The names of the fields whose values differ.
        var members: [String] {
            guard let before, let after else { return [] }
            let old = Dictionary(
                before.fields.map { ($0.name, $0.json) }, uniquingKeysWith: { $1 })
            return after.fields.filter { old[$0.name] != $0.json }.map(\.name)
        }
    }

    private(set) var changes: [Change] = []

    /// Compares the rows of two states. O(rows).
    init(from before: [ViewRow], to after: [ViewRow]) {
        let count = Self.keyCount(before, after)
        func keyed(_ rows: [ViewRow]) -> [String: ViewRow] {
            Dictionary(rows.map { (Self.key($0, count), $0) }, uniquingKeysWith: { $1 })
        }
        let (old, new) = (keyed(before), keyed(after))
        for row in before {
            let key = Self.key(row, count)
            if new[key] == nil { changes.append(Change(key: key, before: row)) }
        }
        for row in after {
            let key = Self.key(row, count)
            if let previous = old[key] {
                if previous != row {
                    changes.append(Change(key: key, before: previous, after: row))
                }
            } else {
                changes.append(Change(key: key, after: row))
            }
        }
        changes.sort { $0.key < $1.key }
    }

    /// The number of leading fields that distinguish all rows: a view's key comes first.
    static func keyCount(_ lists: [ViewRow]...) -> Int {
        let fields = lists.joined().map(\.fields.count).max() ?? 0
        guard fields > 1 else { return fields }
        return (1..<fields).first { count in
            lists.allSatisfy { rows in
                var keys: Set<String> = []
                return rows.allSatisfy { keys.insert(key($0, count)).inserted }
            }
        } ?? fields
    }

    /// The values of the leading fields as one text.
    static func key(_ row: ViewRow, _ count: Int) -> String {
        RowKey(row, count).parts.map(\.string).joined(separator: " · ")
    }
}

/// The values of a row's leading fields.
struct RowKey: Hashable {
    var parts: [EntityID]

    init(_ row: ViewRow, _ count: Int) {
        parts = row.fields.prefix(count).map { field in
            EntityID(
                field.json.first == UInt8(ascii: "\"")
                    ? JSONText.string(field.json.span.bytes, 1..<max(1, field.json.count - 1))
                    : String(decoding: field.json, as: UTF8.self))
        }
    }
}
