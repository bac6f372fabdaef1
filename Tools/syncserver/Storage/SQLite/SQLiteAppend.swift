// One batch inside its transaction: looks at each event in turn, stores it with its effect, and
// says what became of it. Called by SQLiteEventStorage. Spec/sync-protocol.md, SYNC-16 to SYNC-28.

import EventSourcing
import Foundation
import GRDB
import LogFormat

/// The taking in of one batch.
struct SQLiteAppend {
    private let catalogue: EventCatalogue
    private let account: Int64
    private let firstSerial: Int64
    private var lastSerial: Int64
    private let findID: Statement
    private let findSequence: Statement
    private let insertEvent: Statement
    private let findHead: Statement
    private let setHead: Statement
    private let setLastSerial: Statement

    /// Finds the account, or enters it, and prepares the statements.
    init(_ db: Database, account name: String, _ catalogue: EventCatalogue) throws {
        self.catalogue = catalogue
        let find = try db.cachedStatement(
            sql: "SELECT number, last_serial FROM account WHERE name = ?")
        if let row = try Row.fetchOne(find, arguments: [name]) {
            account = row[0]
            firstSerial = row[1]
        } else {
            try db.execute(
                sql: "INSERT INTO account (name, last_serial) VALUES (?, 0)", arguments: [name])
            account = db.lastInsertedRowID
            firstSerial = 0
        }
        lastSerial = firstSerial
        findID = try db.cachedStatement(
            sql: "SELECT line FROM event WHERE account = ? AND id = ?")
        findSequence = try db.cachedStatement(
            sql: "SELECT 1 FROM event WHERE account = ? AND source = ? AND sequence = ?")
        insertEvent = try db.cachedStatement(
            sql: """
                INSERT INTO event (account, serial, id, source, sequence, line)
                VALUES (?, ?, ?, ?, ?, ?)
                """)
        findHead = try db.cachedStatement(
            sql: "SELECT event FROM note_head WHERE account = ? AND note = ?")
        setHead = try db.cachedStatement(
            sql: """
                INSERT INTO note_head (account, note, event) VALUES (?, ?, ?)
                ON CONFLICT (account, note) DO UPDATE SET event = excluded.event
                """)
        setLastSerial = try db.cachedStatement(
            sql: "UPDATE account SET last_serial = ? WHERE number = ?")
    }

    /// Takes in the events in their order. An event that is not taken in holds its lane: nothing
    /// overtakes it.
    mutating func take(_ batch: [ReceivedEvent]) throws -> [Verdict] {
        var heldLanes: Set<String> = []
        var verdicts: [Verdict] = []
        verdicts.reserveCapacity(batch.count)
        for event in batch {
            if heldLanes.contains(event.lane) {
                verdicts.append(Verdict(event.id, .unprocessed))
                continue
            }
            let verdict = try take(event)
            if !verdict.status.keepsLaneOpen { heldLanes.insert(event.lane) }
            verdicts.append(verdict)
        }
        return verdicts
    }

    /// Records how far the account's order has come.
    func finish() throws {
        guard lastSerial != firstSerial else { return }
        try setLastSerial.execute(arguments: [lastSerial, account])
    }

    private mutating func take(_ event: ReceivedEvent) throws -> Verdict {
        if let content = event.content, let stored = try line(of: event.id) {
            return isSame(stored, content)
                ? Verdict(event.id, .duplicate)
                : Verdict(
                    event.id, .rejected, code: .idReused,
                    detail: "the account has another event with this id")
        }
        if let fault = event.fault {
            return Verdict(event.id, .rejected, code: fault.code, detail: fault.detail)
        }
        guard let content = event.content else {
            preconditionFailure("an event without content has a fault")
        }
        let note = NoteEffect(content.draft)
        if let note, let base = note.base {
            let head = try UUID.fetchOne(findHead, arguments: [account, note.id])
            guard base == head?.text else {
                return Verdict(
                    event.id, .conflict,
                    detail: head == nil
                        ? "the note has no events here"
                        : "the note has a newer event than the base",
                    current: try head.flatMap(line))
            }
        }
        let isFork =
            try Int.fetchOne(
                findSequence, arguments: [account, content.source, content.sequence]) != nil
        lastSerial += 1
        try insertEvent.execute(arguments: [
            account, lastSerial, event.id, content.source, content.sequence, Data(content.line),
        ])
        if let note { try setHead.execute(arguments: [account, note.id, event.id]) }
        return isFork
            ? Verdict(
                event.id, .applied, code: .sourceFork,
                detail: "the account has another event with this source and sequence")
            : Verdict(event.id, .applied)
    }

    private func line(of id: UUID) throws -> [UInt8]? {
        try Data.fetchOne(findID, arguments: [account, id]).map { [UInt8]($0) }
    }

    /// Whether a newcomer is the stored event with its id.
    private func isSame(_ stored: [UInt8], _ newcomer: ReceivedEvent.Content) -> Bool {
        if stored == newcomer.line { return true }
        guard var draft = try? LineDecoder.decode(stored.span.bytes).draft else { return false }
        // An event accepted under older rules keeps the form it had then.
        try? catalogue.normalise(&draft)
        return draft.isSameContent(as: newcomer.draft)
    }
}
