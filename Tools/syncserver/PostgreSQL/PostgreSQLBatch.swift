// A batch as the SQL function append_events takes it, and its answer. Used by
// PostgreSQLEventStorage; Spec/sql/0001_events.sql says what the members mean.

import EventSourcing
import Foundation
import SyncServerStorage

/// A batch on its way to the database.
struct PostgreSQLBatch {
    private let batch: [ReceivedEvent]

    init(_ batch: [ReceivedEvent]) { self.batch = batch }

    /// The argument of the function.
    var json: String {
        // The database need not know the name of a lane, only which events share one. A name may
        // hold U+0000, which its JSON type has no place for.
        var lanes: [EntityID: Int] = [:]
        let events = batch.map { event in
            let number = lanes[event.lane] ?? lanes.count
            lanes[event.lane] = number
            return Self.json(event, lane: number)
        }
        return String(decoding: JSONObjectWriter.array(events), as: UTF8.self)
    }

    private static func json(_ event: ReceivedEvent, lane: Int) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("id", event.id.text)
        writer.add("lane", lane)
        if let fault = event.fault { writer.add("code", fault.code.rawValue) }
        guard let content = event.content else { return writer.finished() }
        writer.add("line", String(decoding: content.line, as: UTF8.self))
        writer.add("source", content.source.text)
        writer.add("sequence", Int(content.sequence))
        writer.add("time", Int(content.stamp.time.milliseconds))
        writer.add("lane_given", content.draft.lane != nil)
        writer.add("time_given", content.draft.time != nil)
        if let effect = NoteEffect(content) {
            let digits = effect.note.utf8.map {
                String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
            }
            writer.add("note", digits.joined())
            // What is no UUID is no head's id, and need not reach the database.
            if let base = effect.base { writer.add("base", UUID(text: base)?.text ?? "none") }
            writer.add("deletes", effect.head.isDeletion)
        }
        return writer.finished()
    }

    /// Reads the function's answer.
    ///
    /// - Throws: `StorageError` for anything but one row an event, in the same order.
    func verdicts(_ rows: [[String?]]) throws -> [Verdict] {
        guard rows.count == batch.count else { throw Self.strange }
        return try zip(batch, rows).map { event, row in
            guard row.count == 5, let text = row[0], UUID(text: text) == event.id,
                let status = row[1].flatMap(Verdict.Status.init)
            else { throw Self.strange }
            var verdict = Verdict(
                event.id, status, code: row[2].flatMap(Verdict.Code.init), detail: row[3],
                current: row[4].map { Array($0.utf8) })
            if let fault = event.fault, verdict.code == fault.code { verdict.detail = fault.detail }
            return verdict
        }
    }

    private static let strange = StorageError(
        .failed, "PostgreSQL: append_events does not answer as Spec/sql says")
}
