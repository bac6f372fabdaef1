// Every storage applies the events of a batch together; the answer and the stored events are those of applying
// them one at a time to SQLite.

import DaybookTestKit
import EventSourcing
import Foundation
import SyncServerStorage
import Testing

@Suite struct BatchTests {
    private static let ids = (1...6).compactMap(id)
    private static let sources = (7...8).compactMap(id)

    private static func id(_ number: Int) -> UUID? {
        UUID(uuidString: "00000000-0000-4000-8000-00000000000\(number)")
    }

    @Test(
        .verifies("SYNC-16", "SYNC-22", "SYNC-23", "SYNC-27", "SYNC-29"), arguments: StorageKind.all
    )
    func `a batch has the verdicts of its events one at a time`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let reference = try await StorageKind.sqlite.open()
        var run = 0
        try await Property.check(
            "a batch has the verdicts of its events one at a time", runs: 150,
            covering: [
                "applied", "duplicate", "rejected", "conflict", "unprocessed", "source_fork",
                "id_reused", "invalid_event", "the head is new in the batch",
            ]
        ) { choices in
            run += 1
            let account = "account \(run)"
            for _ in 0..<choices.int(in: 1...3) {
                let batch = (0..<choices.int(in: 1...12)).map { _ in Self.event(&choices) }
                let verdicts = try await storage.append(batch, account: account)
                var heldLanes: Set<String> = []
                var expected: [SyncServerStorage.EventVerdict] = []
                for event in batch {
                    let lane = event.lane ?? ""
                    if heldLanes.contains(lane) {
                        expected.append(.init(event.id, .unprocessed))
                        continue
                    }
                    let verdict = try await reference.append([event], account: account)
                    if verdict.contains(where: { $0.status.holdsLane }) { heldLanes.insert(lane) }
                    expected += verdict
                }
                try #require(verdicts == expected)
                for verdict in verdicts {
                    choices.count(verdict.status.rawValue)
                    if let code = verdict.code { choices.count(code.rawValue) }
                    if Self.isNewInBatch(verdict.current, batch, verdicts) {
                        choices.count("the head is new in the batch")
                    }
                }
            }
            let stored = try await storage.all(account: account)
            try #require(stored == (try await reference.all(account: account)))
        }
    }

    /// Whether a line is of an event that the batch has once and has stored.
    private static func isNewInBatch(
        _ line: [UInt8]?, _ batch: [Sample], _ verdicts: [SyncServerStorage.EventVerdict]
    ) -> Bool {
        guard let line,
            let index = batch.firstIndex(where: { $0.line.utf8.elementsEqual(line) })
        else { return false }
        let event = batch[index]
        let same = batch.filter {
            $0.id == event.id || $0.source == event.source && $0.sequence == event.sequence
        }
        return verdicts[index].status == .applied && same.count == 1
    }

    /// An event with one of a few ids, sources, sequences and lanes.
    private static func event(_ choices: inout Choices) -> Sample {
        let sequence = UInt64(choices.int(in: 1...5))
        let name = choices.element(of: ["a", "b"])
        var event: Sample
        switch choices.int(in: 0...6) {
        case 0: event = Sample.note("added", name, sequence)
        case 1:
            event = Sample.note("updated", name, sequence, text: choices.element(of: ["x", "y"]))
        case 2: event = Sample.note("deleted", name, sequence)
        case 3:
            event = Sample(sequence: sequence, subject: name, lane: "city:ana:\(name)", data: "{}")
        case 4:
            // Unreadable.
            event = Sample(sequence: sequence, type: "", subject: name, lane: "city:ana:\(name)")
        default:
            event = Sample(
                sequence: sequence, subject: name, lane: "city:ana:\(name)",
                data: #"{"userId":"ana","cityId":"\#(name)"}"#)
        }
        event.id = choices.element(of: ids)
        event.source = choices.element(of: sources)
        if event.type.hasPrefix("daybook.note."), choices.bool() {
            event.base = choices.element(of: ids)
        }
        return event
    }
}
