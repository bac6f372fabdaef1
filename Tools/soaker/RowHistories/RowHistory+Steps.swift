// What happens in a history while its process lives: appends, events of other devices, retractions, a full disk.

import Daybook
import DaybookSQL
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import GRDB

extension RowHistory {
    /// Does one step.
    func step(_ choices: inout Choices) async throws {
        guard let store, let rows, let database else { return }
        switch choices.int(in: 0...18) {
        case 0...5:
            try await append(&choices, to: store, .durable)
            if !choices.bool(oneIn: 4) { try await reach(await store.lastDurable, rows) }
        case 6:
            try await append(&choices, to: store, .relaxed)
            if choices.bool() { try await store.flush() }
        case 7: try await receive(&choices, into: store)
        case 8, 9, 10: try await retractOrReinstate(&choices, in: store)
        case 11:
            choices.note("close and open")
            choices.count("closed and opened")
            version = choices.int(in: 1...2)
            await close()
            guard !isDead else { throw CancellationError() }
            try await open(&choices)
        case 12:
            choices.note("full disk")
            choices.count("disk full")
            databaseFiles.setBytesLeft(choices.int(in: 0...12) * 2_048)
            defer { databaseFiles.setBytesLeft(nil) }
            try await append(&choices, to: store, .durable)
            try? await rows.reach(await store.lastDurable)
        case 13:
            choices.note("compact")
            choices.count("compacted")
            try await store.compact()
        case 14:
            choices.note("interrupt")
            try await append(&choices, to: store, .durable)
            database.interrupt()
        case 15:
            // While the rows follow.
            try await append(&choices, to: store, .durable)
            try await checkRecorded(database)
        case 16, 17: try await keepOrRestore(&choices, database, store, rows)
        default: try await check()
        }
        await acknowledge()
    }

    /// Copies the open database, or restores the copy, as another process may do. The next batch finds it.
    private func keepOrRestore(
        _ choices: inout Choices, _ database: DatabaseQueue, _ store: EventStore,
        _ rows: ProjectedRows
    ) async throws {
        guard !isLogReplaced else { return }
        guard let copy = snapshot else {
            let copy = try DatabaseQueue()
            try database.backup(to: copy)
            snapshot = copy
            return
        }
        choices.note("another process restores a copy")
        choices.count("changed by another")
        snapshot = nil
        try copy.backup(to: database)
        let added = try await store.append(AmountAdded(amount: 1))
        try await reach(added.position, rows)
    }

    private func append(
        _ choices: inout Choices, to store: EventStore, _ durability: Durability
    ) async throws {
        let drafts = try choices.array(1...8) { choices in
            var draft: EventDraft
            if choices.bool(oneIn: 3) {
                draft = try EventDraft(AmountAdded(amount: choices.int(in: 1...9)))
            } else {
                let note = NoteWritten(
                    note: choices.element(of: ["a", "b", "c"]),
                    text: choices.element(of: ["one", nil, "unwanted", "longer text"]))
                if note.text == "unwanted" { choices.count("parked") }
                draft = try EventDraft(note)
            }
            draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...50)))
            return draft
        }
        choices.note("append \(drafts.count)")
        try await store.append(contentsOf: drafts, durability: durability)
    }

    /// Records an event of another device, whose time may be before that of all others.
    private func receive(_ choices: inout Choices, into store: EventStore) async throws {
        foreignCount += 1
        let time = Timestamp(milliseconds: Int64(choices.int(in: 0...50)))
        let id = UUID(integer: UInt128(foreignCount) | 0x4000 << 64 | 0x8000 << 48)
        let json = """
            {"specversion":"1.0","id":"\(id.text)",\
            "source":"urn:uuid:ffffffff-0000-4000-bfff-ffffffffffff","sequence":"\(foreignCount)",\
            "type":"\(NoteWritten.type)","subject":"a","time":"\(time)",\
            "data":{"note":"a","text":"late \(foreignCount)"}}
            """
        let received = try await store.receive([ForeignEvent(Array(json.utf8).span.bytes)])
        choices.count("received", by: received.new.count)
    }

    private func retractOrReinstate(_ choices: inout Choices, in store: EventStore) async throws {
        let last = await store.lastDurable
        guard last > .zero else { return }
        let position = Position(UInt64(choices.int(in: 1...Int(last.rawValue))))
        guard let isReinstated = try await store.retractOrReinstate(at: position) else { return }
        choices.note("\(isReinstated ? "reinstate" : "retract") \(position)")
        choices.count(isReinstated ? "reinstated" : "retracted")
    }
}
