// The values of views that only the events contain, for commands that print rows.

import DaybookOffline
import Foundation
import LogFormat
import LogStorage

enum EventData {
    /// Inserts the values that are stored in events, with one pass over the log if there are any.
    ///
    /// - Returns: nil if an event is no longer in the log.
    static func insert(into rows: [ViewRow], _ reader: LogReader) throws -> [ViewRow]? {
        let wanted = Set(rows.flatMap { $0.fields.compactMap(\.source?.event) })
        guard !wanted.isEmpty else { return rows }
        var data: [UUID: [UInt8]] = [:]
        try reader.forEachEvent(from: Position(1), catalogue: OfflineModel.catalogue) { event in
            if wanted.contains(event.id) {
                data[event.id] = OfflineModel.catalogue.newestForm(of: event).content.json
            }
            return data.count < wanted.count
        }
        return data.count == wanted.count ? rows.map { $0.filled { data[$0] } } : nil
    }

    /// Calls a closure with the entries of an outbox and the data of their events, which the view does not
    /// contain.
    static func forEachEntry(
        of outbox: Outbox, _ reader: LogReader, _ body: (OutboxEntry, [UInt8]?) -> Void
    ) throws {
        var entries = outbox.entries.makeIterator()
        guard var entry = entries.next() else { return }
        try reader.forEachEvent(
            from: entry.position, catalogue: OfflineModel.catalogue
        ) { event in
            // An entry whose event compaction has removed meanwhile is settled.
            while entry.position < event.position {
                guard let next = entries.next() else { return false }
                entry = next
            }
            guard event.position == entry.position else { return true }
            body(entry, event.content.json)
            guard let next = entries.next() else { return false }
            entry = next
            return true
        }
    }

    /// Refuses a position for which the views cannot be rebuilt: one before the compacted ones, whose state would
    /// lack values that were replaced since then.
    static func refuseCompacted(_ position: UInt64?, _ reader: LogReader) throws {
        guard let position else { return }
        let through = try reader.compactedThrough()
        guard position < through.rawValue else { return }
        Message.error(
            "the log is compacted through position \(through); the state at \(position) can no longer be "
                + "rebuilt")
        throw Exit.badData
    }
}
