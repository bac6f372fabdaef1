// The values of views that only the events contain, for commands that print rows.

import DaybookOffline
import Foundation
import LogFormat
import LogStorage

enum EventData {
    /// Inserts the values that are stored in events, with one pass over the log if there are any.
    ///
    /// - Parameter next: the position at which the pass begins, and afterwards the one after the last event that was
    ///   used: portions of rows often continue there.
    /// - Returns: nil if an event is no longer in the log.
    static func insert(
        into rows: [ViewRow], _ reader: LogReader, from next: inout Position
    ) throws -> [ViewRow]? {
        let wanted = Set(rows.flatMap { $0.fields.compactMap(\.source?.event) })
        guard !wanted.isEmpty else { return rows }
        var data: [UUID: [UInt8]] = [:]
        let (first, catalogue) = (next, OfflineModel.catalogue)
        func search(from start: Position, before end: Position?) throws {
            try reader.forEachEvent(from: start, catalogue: catalogue) { event in
                try Task.checkCancellation()
                if let end, event.position >= end { return false }
                if wanted.contains(event.id) {
                    data[event.id] = catalogue.newestForm(of: event).content.json
                    next = event.position.next
                }
                return data.count < wanted.count
            }
        }
        try search(from: first, before: nil)
        if data.count < wanted.count, first > Position(1) {
            try search(from: Position(1), before: first)
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
