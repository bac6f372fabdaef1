// A server's answer through all code that reads it: headers, verdicts, the replay state, the record in
// the log. Spec/protocol/replay.md and Spec/protocol/sync-records.md.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import Replay

/// The low four bits of the mode are the answer's status. With bit 4 the input is a record, with bit 5
/// the text of a header.
struct VerdictCheck {
    let mode: UInt8

    private static let statuses = [
        200, 200, 200, 200, 400, 401, 413, 422, 429, 503, 500, 302, 404, 0,
    ]
    private static let incarnation = UUID(integer: 7)

    func check(_ bytes: [UInt8]) throws {
        if mode & 16 != 0 { return try check(record: bytes) }
        if mode & 32 != 0 { return try check(header: bytes) }
        var state = ReplayState()
        state.tokenChanged()
        var waiting: [UUID: OutboxEntry] = [:]
        for entry in Self.outbox.entries {
            state.enqueue(entry)
            waiting[entry.id] = entry
        }
        let verdicts = Verdict.parse(bytes)
        let status = Self.statuses[Int(mode & 15) % Self.statuses.count]
        let reply = TransportReply(status: status, body: bytes, retryAfterSeconds: nil)
        var now: Int64 = 1_000
        var hasFailed = false
        for _ in 0..<4 {
            switch state.next(now: now) {
            case .send(.append(let items), let number):
                try expect(!items.isEmpty, "an empty batch is sent")
                let outcome = state.handleAnswer(
                    .reply(reply), to: number, now: now, random: 0.5
                ).settlement
                hasFailed = hasFailed || outcome.settled.isEmpty
                try check(outcome, items, status == 200 ? verdicts ?? [] : [])
                for position in outcome.settled.keys {
                    waiting = waiting.filter { $0.value.position != position }
                }
                try expect(
                    state.count == waiting.count, "an event is lost, or stays after it was settled")
            case .wait(let time):
                try expect(time > now, "it waits for a time in the past")
                now = time
            case .getToken, .refreshToken: state.tokenChanged()
            case .send(.read, let number):
                try expect(hasFailed, "it sends a read, and no batch has failed")
                let answer = state.handleAnswer(
                    .reply(reply), to: number, now: now, random: 0.5)
                try expect(
                    answer.settlement.settled.isEmpty && answer.settlement.entries.isEmpty,
                    "the answer to a read settles events")
                if let page = answer.page { state.pageRecorded(page, isLast: true) }
                state.pageRefused()
            case .busy: throw BrokenProperty(description: "it is busy without a request")
            case .paused: state.resume()
            case .idle: return
            }
        }
    }

    /// Checks that only events named by the server are settled, and no event of a lane before an
    /// earlier one.
    private func check(
        _ outcome: ReplayState.Settlement, _ items: [ReplayItem], _ verdicts: [Verdict]
    ) throws {
        let lanes = Dictionary(
            uniqueKeysWithValues: Self.outbox.entries.map { ($0.position, $0.lane) })
        var heldLanes: Set<String> = []
        for item in items {
            let lane = lanes[item.position] ?? ""
            guard let status = outcome.settled[item.position] else {
                heldLanes.insert(lane)
                continue
            }
            try expect(!heldLanes.contains(lane), "an event overtakes another of its lane")
            try expect(
                verdicts.contains { $0.id == item.id && $0.status == status }
                    && (status == .applied || status == .duplicate),
                "an event is settled without the server's verdict")
        }
        let sent = Set(items.map(\.position))
        try expect(sent.isSuperset(of: outcome.settled.keys), "an event is settled unsent")
        try expect(
            outcome.entries.allSatisfy { entry in
                items.contains { $0.id == entry.id && $0.position.rawValue == entry.position }
                    && outcome.settled[Position(entry.position)] == nil
            }, "a record is about an event that was not sent, or is settled")
        var record = SyncSettled(by: Self.incarnation)
        record.entries = outcome.entries
        try check(record)
    }

    private func check(record bytes: [UInt8]) throws {
        guard let record = try? SyncSettled(json: bytes) else { return }
        try check(record)
    }

    /// Checks that a record can be encoded and decoded, and that encoding it again gives the same bytes.
    private func check(_ record: SyncSettled) throws {
        let stored = record.json()
        guard let once = try? SyncSettled(json: stored) else {
            throw BrokenProperty(description: "a written record is refused")
        }
        try expect(once.json() == stored, "a record changes each time it is written")
        try expect(
            once.applied == record.applied && once.duplicate == record.duplicate
                && once.replaces == record.replaces
                && once.entries.map(\.id) == record.entries.map(\.id),
            "a record changes when it is written and read")
        var outbox = Self.outbox
        let count = outbox.entries.reduce(0) { count, _ in count + 1 }
        var event = EventDraft(type: SyncSettled.type, data: .json(stored))
        event.lane = "sync"
        event.time = Timestamp(milliseconds: 0)
        outbox.fold(
            Event(
                LinePrefix(own: 99, source: Self.incarnation.integer, at: Position(100)),
                content: event, catalogue: OfflineModel.catalogue, lineBytes: stored.count))
        let remaining = outbox.entries.reduce(0) { count, _ in count + 1 }
        try expect(remaining <= count, "a record adds an event to the outbox")
    }

    private func check(header bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        _ = HTTPDate.parse(text)
        if let seconds = HTTPDate.retryAfterSeconds(
            text, now: "Sun, 22 Feb 2026 10:30:14 GMT")
        {
            try expect(seconds >= 0 && seconds.isFinite, "Retry-After is negative or not finite")
        }
    }

    /// Six events in three lanes; their ids are their positions.
    static let outbox: Outbox = {
        var outbox = Outbox()
        for number in 1...6 as ClosedRange<UInt64> {
            let id = UUID(integer: 0x4000_8000_0000_0000_0000 + UInt128(number))
            let draft = EventDraft(
                id: id, type: "daybook.city.saved", subject: "s", lane: "lane-\(number % 3)",
                time: Timestamp(milliseconds: 0))
            outbox.fold(
                Event(
                    LinePrefix(
                        own: id.integer, source: incarnation.integer, at: Position(number)),
                    content: draft, catalogue: OfflineModel.catalogue, lineBytes: 200))
        }
        return outbox
    }()
}
