// The arguments and the result of the SQL function append_batch. Spec/sql defines them.

import EventSourcing
import Foundation
import SyncServerStorage
import SyncWire

/// A batch for append_batch.
struct PostgreSQLBatch {
    private let batch: [ReceivedEvent]

    init(_ batch: [ReceivedEvent]) { self.batch = batch }

    /// The call of the function, with the account as the first argument.
    static let call = """
        SELECT id, status, code, detail, current FROM daybook.append_batch(
            $1, $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::bigint[], $7::bigint[],
            $8::boolean[], $9::boolean[], $10::text[], NULL, $11::text[], $12::text[], $13::boolean[])
        """

    /// The arguments after the account.
    var arguments: [PostgreSQLArray] {
        // The database need not know the names of lanes, only which events share one. A name may
        // contain U+0000, which text cannot represent.
        var lanes: [EntityID: Int] = [:]
        let effects = batch.map { $0.content.flatMap(NoteEffect.init) }
        return [
            PostgreSQLArray(uuids: batch.map { $0.id }),
            PostgreSQLArray(
                texts: batch.map { event in
                    let number = lanes[event.lane] ?? lanes.count
                    lanes[event.lane] = number
                    return Array("\(number)".utf8)
                }),
            PostgreSQLArray(texts: batch.map { $0.content?.line }),
            PostgreSQLArray(uuids: batch.map { $0.content?.source }),
            PostgreSQLArray(integers: batch.map { $0.content?.sequence }),
            PostgreSQLArray(integers: batch.map { $0.content?.lwwTimestamp.time.milliseconds }),
            PostgreSQLArray(booleans: batch.map { $0.content.map { $0.draft.lane != nil } }),
            PostgreSQLArray(booleans: batch.map { $0.content.map { $0.draft.time != nil } }),
            PostgreSQLArray(texts: batch.map { $0.fault.map { Array($0.code.rawValue.utf8) } }),
            PostgreSQLArray(
                texts: effects.map { $0.map { Array($0.note.utf8.hexadecimalDigits.utf8) } }),
            // A base that is not a UUID matches no head, whatever its text.
            PostgreSQLArray(
                texts: effects.map { effect in
                    effect?.base.map { Array((UUID(text: $0)?.text ?? "none").utf8) }
                }),
            PostgreSQLArray(booleans: effects.map { $0?.head.isDeletion }),
        ]
    }

    /// Reads the function's result.
    ///
    /// - Throws: `StorageError` unless there is one row for each event, in the same order.
    func verdicts(_ rows: [[String?]]) throws -> [EventVerdict] {
        guard rows.count == batch.count else { throw Self.unexpectedAnswer }
        return try zip(batch, rows).map { event, row in
            guard row.count == 5, let text = row[0], UUID(text: text) == event.id,
                let status = row[1].flatMap(Verdict.Status.init)
            else { throw Self.unexpectedAnswer }
            var verdict = EventVerdict(
                event.id, status, code: row[2].flatMap(Verdict.Code.init), detail: row[3],
                current: row[4].map { Array($0.utf8) })
            if let fault = event.fault, verdict.code == fault.code { verdict.detail = fault.detail }
            return verdict
        }
    }

    private static let unexpectedAnswer = StorageError(
        .failed, "PostgreSQL: append_batch has not returned what Spec/sql specifies")
}
