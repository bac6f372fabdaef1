// Rows whose values do not depend on the order of events: last writer wins, as in a register of a view.
// Spec/model/sql.md, SQL-6.

import Daybook
import Foundation
import GRDB

extension Database {
    /// Sets values of the row with a key, and creates it if it is missing, unless a later event has set them:
    /// one with a greater LWW timestamp (time, source, sequence). So events of other devices, which may arrive
    /// late, give the same rows in any order.
    ///
    /// A row that a later event may bring back, or an older one must not, cannot be deleted: mark it as deleted
    /// with a value. Values that different events set apart from each other need a column of timestamps each.
    ///
    /// - Parameters:
    ///   - table: the table. The key's columns are its primary key, or have a unique index.
    ///   - key: the key's columns and their values.
    ///   - values: the columns to set and their values.
    ///   - event: the event that sets them.
    ///   - lwwColumn: the column of the LWW timestamps of `values`, of type `BLOB`.
    /// - Returns: true if the values were set; false if a later event has set them.
    /// - Throws: `DatabaseError`.
    /// - Complexity: O(log rows).
    @discardableResult
    public func upsert(
        into table: String, _ key: KeyValuePairs<String, any DatabaseValueConvertible>,
        set values: KeyValuePairs<String, (any DatabaseValueConvertible)?>, by event: Event,
        lwwColumn: String = "lww"
    ) throws -> Bool {
        let keys = key.map(\.key.quotedDatabaseIdentifier)
        let columns =
            values.map(\.key.quotedDatabaseIdentifier) + [lwwColumn.quotedDatabaseIdentifier]
        let (table, lww) = (table.quotedDatabaseIdentifier, lwwColumn.quotedDatabaseIdentifier)
        let changes = columns.map { "\($0) = excluded.\($0)" }
        let places = Array(repeating: "?", count: keys.count + columns.count)
        let statement = try cachedStatement(
            sql: """
                INSERT INTO \(table) (\((keys + columns).joined(separator: ", ")))
                VALUES (\(places.joined(separator: ", ")))
                ON CONFLICT (\(keys.joined(separator: ", ")))
                DO UPDATE SET \(changes.joined(separator: ", "))
                WHERE \(table).\(lww) IS NULL OR excluded.\(lww) >= \(table).\(lww)
                """)
        try statement.execute(
            arguments: StatementArguments(
                key.map { $0.value as (any DatabaseValueConvertible)? } + values.map(\.value)
                    + [event.lwwTimestamp]))
        return changesCount > 0
    }
}

/// A BLOB of 32 bytes, whose order is that of the timestamps: the milliseconds since 1970 with the sign bit
/// inverted (8 bytes), source (16), sequence (8), each with the most significant byte first.
extension LWWTimestamp: DatabaseValueConvertible {
    public var databaseValue: DatabaseValue {
        var data = Data(capacity: 32)
        func append(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.bigEndian) { data.append(contentsOf: $0) }
        }
        append(UInt64(bitPattern: time.milliseconds) ^ 1 << 63)
        append(source)
        append(sequence)
        return data.databaseValue
    }

    public static func fromDatabaseValue(_ value: DatabaseValue) -> LWWTimestamp? {
        guard let data = Data.fromDatabaseValue(value), data.count == 32 else { return nil }
        func integer<Value: FixedWidthInteger>(_ range: Range<Int>, as type: Value.Type) -> Value {
            data.dropFirst(range.lowerBound).prefix(range.count)
                .reduce(0) { $0 << 8 | Value(truncatingIfNeeded: $1) }
        }
        let milliseconds = Int64(bitPattern: integer(0..<8, as: UInt64.self) ^ 1 << 63)
        guard Timestamp.range.contains(milliseconds) else { return nil }
        return LWWTimestamp(
            time: Timestamp(milliseconds: milliseconds), source: integer(8..<24, as: UInt128.self),
            sequence: integer(24..<32, as: UInt64.self))
    }
}
