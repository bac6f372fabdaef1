// Random logs: own and foreign events, the server's verdicts, records that are wrong or late, new
// incarnations. For properties of the outbox.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A history that random steps extend.
package struct RandomLog: Sendable {
    /// The events so far.
    package private(set) var history = EventHistory(incarnation: UUID(integer: 1))
    /// The fold of the events.
    package private(set) var outbox = Outbox()
    /// An earlier state of the outbox, for records that are made too early.
    private var lateOutbox = Outbox()

    package init() {}

    /// The events so far.
    package var events: [Event] { history.events }

    /// Adds one event of any type.
    package mutating func step(_ choices: inout Choices) throws {
        switch choices.int(in: 0...13) {
        case 0...4: add(try choices.draft(), &choices)
        case 5...7: addForeign(try choices.draft(), &choices)
        case 8, 9: add(try EventDraft(reply(&choices)), &choices)
        case 10:
            if let record = outbox.foldedRecord(by: history.incarnation) {
                add(try EventDraft(record), &choices)
            }
        default: try addOddity(&choices)
        }
    }

    private mutating func add(_ draft: EventDraft, _ choices: inout Choices) {
        var draft = draft
        // Even times: foreign events, which may have this log's source, get odd ones, so that no two LWW
        // timestamps are equal.
        draft.time = Timestamp(milliseconds: Int64(2 * choices.int(in: 0...5)))
        outbox.fold(history.addOwn(draft))
    }

    private mutating func addForeign(_ draft: EventDraft, _ choices: inout Choices) {
        var draft = draft
        let source = UUID(integer: choices.element(of: [11, 12, 1]))
        draft.time = Timestamp(milliseconds: Int64(2 * choices.int(in: 0...5) + 1))
        outbox.fold(
            history.addForeign(draft, source: source, sequence: UInt64(choices.int(in: 1...40))))
    }

    /// Draws a valid record of a reply.
    private func reply(_ choices: inout Choices) -> SyncSettled {
        var record = SyncSettled(by: history.incarnation)
        var applied: Set<Position> = []
        var duplicate: Set<Position> = []
        for entry in outbox.entries {
            switch choices.int(in: 0...7) {
            case 0...3: applied.insert(entry.position)
            case 4: duplicate.insert(entry.position)
            case 5:
                record.entries.append(
                    SyncSettled.Entry(
                        position: entry.position.rawValue, id: entry.id,
                        outcome: choices.element(of: [.retry, .parked, .conflict]),
                        retryCount: choices.int(in: 0...5),
                        code: choices.bool() ? "code" : nil,
                        detail: choices.bool() ? detail(&choices) : nil,
                        isFinal: choices.bool(oneIn: 4),
                        failuresAlone: choices.element(of: [0, 0, 0, 1, 16])))
            default: break
            }
        }
        record.applied = outbox.ranges(of: applied)
        record.duplicate = outbox.ranges(of: duplicate)
        return record
    }

    /// Draws a verdict's detail: short, or too long for a record.
    private func detail(_ choices: inout Choices) -> String {
        String(repeating: "é\u{1}\"x", count: choices.element(of: [1, 50, 51, 200]))
    }

    /// Adds an event that a correct writer adds seldom or never.
    private mutating func addOddity(_ choices: inout Choices) throws {
        switch choices.int(in: 0...6) {
        case 0: history.incarnation = UUID(integer: UInt128(choices.int(in: 1...2)))
        case 1: lateOutbox = outbox
        case 2:  // A folded record of an earlier outbox.
            if let record = lateOutbox.foldedRecord(by: history.incarnation) {
                add(try EventDraft(record), &choices)
            }
        case 3: addForeign(try EventDraft(reply(&choices)), &choices)
        case 4:
            var record = reply(&choices)
            record.by = UUID(integer: 99)
            add(try EventDraft(record), &choices)
        case 5: add(EventDraft(type: SyncSettled.type, data: .json(Array("[]".utf8))), &choices)
        default:  // Ranges over any events, entries about the wrong event.
            var record = SyncSettled(by: history.incarnation)
            let first = UInt64(choices.int(in: 1...40))
            record.applied = [first...first + UInt64(choices.int(in: 0...9))]
            record.entries = [
                SyncSettled.Entry(
                    position: UInt64(choices.int(in: 1...40)),
                    id: outbox.entries.first { _ in true }?.id ?? UUID(integer: 5),
                    outcome: .parked, retryCount: 1)
            ]
            add(try EventDraft(record), &choices)
        }
    }
}
