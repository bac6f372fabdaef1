// The argument and the result of the SQL function append_events. Spec/sql/0001_events.sql defines the
// members.

import EventSourcing
import Foundation
import SyncServerStorage

/// A batch for append_events.
struct PostgreSQLBatch {
    private let batch: [ReceivedEvent]

    init(_ batch: [ReceivedEvent]) { self.batch = batch }

    /// The argument of the function.
    var json: String {
        // The database need not know the names of lanes, only which events share one. A name may
        // contain U+0000, which jsonb cannot represent.
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
        writer.appendMember("id", event.id.text)
        writer.appendMember("lane", lane)
        if let fault = event.fault { writer.appendMember("code", fault.code.rawValue) }
        guard let content = event.content else { return writer.finished() }
        writer.appendMember("line", String(decoding: content.line, as: UTF8.self))
        writer.appendMember("source", content.source.text)
        writer.appendMember("sequence", Int(content.sequence))
        writer.appendMember("time", Int(content.lwwTimestamp.time.milliseconds))
        writer.appendMember("lane_given", content.draft.lane != nil)
        writer.appendMember("time_given", content.draft.time != nil)
        if let effect = NoteEffect(content) {
            writer.appendMember("note", effect.note.utf8.hexadecimalDigits)
            // A base that is not a UUID matches no head, whatever its text.
            if let base = effect.base {
                writer.appendMember("base", UUID(text: base)?.text ?? "none")
            }
            writer.appendMember("deletes", effect.head.isDeletion)
        }
        return writer.finished()
    }

    /// Reads the function's result.
    ///
    /// - Throws: `StorageError` unless there is one row for each event, in the same order.
    func verdicts(_ rows: [[String?]]) throws -> [EventVerdict] {
        guard rows.count == batch.count else { throw Self.unexpectedAnswer }
        return try zip(batch, rows).map { event, row in
            guard row.count == 5, let text = row[0], UUID(text: text) == event.id,
                let status = row[1].flatMap(EventVerdict.Status.init)
            else { throw Self.unexpectedAnswer }
            var verdict = EventVerdict(
                event.id, status, code: row[2].flatMap(EventVerdict.Code.init), detail: row[3],
                current: row[4].map { Array($0.utf8) })
            if let fault = event.fault, verdict.code == fault.code { verdict.detail = fault.detail }
            return verdict
        }
    }

    private static let unexpectedAnswer = StorageError(
        .failed, "PostgreSQL: append_events has not returned what Spec/sql specifies")
}
