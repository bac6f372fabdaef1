// The server's clock: one wrong `Date` moves nothing, two that agree do, and later ones take it back.
// Spec/protocol/replay.md, CLOCK-1 to CLOCK-3.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// Applies every event, and answers with the given dates, the last one again and again.
private final class DatedServer: Transport {
    private let dates: Mutex<[Int64]>

    init(_ dates: Int64...) { self.dates = Mutex(dates) }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request,
            case .array(let events) = try JSONValue(batch.span.bytes)
        else { return TransportReply(status: 200, body: Array("[]".utf8)) }
        let verdicts = events.compactMap { event -> String? in
            guard case .object(let event) = event, let id = event["id"]?.stringValue else {
                return nil
            }
            return #"{"id":"\#(id)","status":"applied"}"#
        }
        let body = Array("{\"verdicts\":[\(verdicts.joined(separator: ","))]}".utf8)
        let date = dates.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
        return TransportReply(status: 200, body: body, date: date)
    }
}

/// A device with a clock of its own, and a log that is opened again and again.
private struct Device {
    let files = InMemoryFileSystem()
    let clock: VirtualClock

    func open() async throws -> EventStore {
        let clock = clock
        let store = try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: LogEnvironment(fileSystem: files, now: { clock.milliseconds }))
        await store.restoreClock()
        return store
    }

    /// Records an event and ships it, in one run. Returns the event's time.
    @discardableResult
    func ship(_ store: EventStore, to server: DatedServer) async throws -> Int64 {
        clock.advance(by: .seconds(1))
        let saved = try await store.append(CitySaved(userId: "u", cityId: "c"))
        #expect(try await Replayer(store, transport: server).run().pending == 0)
        return try #require(try await store.event(at: saved.position)).time.milliseconds
    }
}

@Suite struct ServerClockTests {
    private static let day: Int64 = 86_400_000
    private static let year = 365 * day
    /// A day in 2026, and one in 2098.
    private static let present: Int64 = 1_771_752_661_000
    private static let future: Int64 = 4_052_361_600_000

    @Test(.verifies("CLOCK-3"))
    func `one answer with a date of 2098 moves no event there, also after a restart`() async throws
    {
        let device = Device(clock: VirtualClock(milliseconds: Self.present))
        var store = try await device.open()
        try await device.ship(store, to: DatedServer(Self.future))
        for isRestarted in [false, true] {
            if isRestarted {
                try await store.close()
                store = try await device.open()
            }
            let time = try await device.ship(store, to: DatedServer(device.clock.milliseconds))
            #expect(time == device.clock.milliseconds)
            #expect(await store.clockOffset == 0)
        }
        // An answer between two wrong ones that do not follow each other refutes the first.
        try await device.ship(store, to: DatedServer(Self.future))
        #expect(await store.clockOffset == 0)
        #expect(store.view(Outbox.self).clockOffset == 0)
        try await store.close()
    }

    @Test(.verifies("CLOCK-3", "LINE-5"))
    func `two answers of 2098 are taken back by two others, and later events leave 2098`()
        async throws
    {
        let device = Device(clock: VirtualClock(milliseconds: Self.present))
        var store = try await device.open()
        let wrong = DatedServer(Self.future)
        try await device.ship(store, to: wrong)
        try await device.ship(store, to: wrong)
        #expect(try await device.ship(store, to: wrong) >= Self.future)
        // One process an answer: the step back is remembered, too.
        for _ in 0..<2 {
            try await store.close()
            store = try await device.open()
            try await device.ship(store, to: DatedServer(device.clock.milliseconds + 1_000))
        }
        #expect(await store.clockOffset == 0)
        try await store.close()
        store = try await device.open()
        let time = try await device.ship(store, to: DatedServer(device.clock.milliseconds))
        #expect(time == device.clock.milliseconds)
        try await store.close()
    }

    @Test(.verifies("CLOCK-2", "CLOCK-3"), arguments: [-1_771_752_661_000, 365 * 86_400_000])
    func
        `a phone at 1970 or a year ahead is set right by two answers, each of a process of its own`(
            error: Int64
        ) async throws
    {
        let device = Device(clock: VirtualClock(milliseconds: Self.present + error))
        for _ in 0..<2 {
            let store = try await device.open()
            let now = device.clock.milliseconds - error
            try await device.ship(store, to: DatedServer((now + 1_000) / 1_000 * 1_000))
            try await store.close()
        }
        let store = try await device.open()
        #expect(abs(await store.clockOffset + error) <= 1_000)
        try await store.close()
    }

    @Test(.verifies("CLOCK-3"))
    func `a step within a day is taken at once, a larger one needs two answers that agree`() {
        var clock = ServerClock(offset: 0)
        clock.handleOffset(Self.day)
        #expect(clock == ServerClock(offset: Self.day))
        clock.handleOffset(2 * Self.day + 1)
        #expect(clock == ServerClock(offset: Self.day, candidate: 2 * Self.day + 1))
        // One that agrees with neither replaces the candidate.
        clock.handleOffset(Self.year)
        #expect(clock == ServerClock(offset: Self.day, candidate: Self.year))
        clock.handleOffset(Self.year + ServerClock.agreementMax)
        #expect(clock == ServerClock(offset: Self.year + ServerClock.agreementMax))
        // One that agrees with the offset in use drops it.
        clock.handleOffset(0)
        clock.handleOffset(Self.year)
        clock.handleOffset(0)
        #expect(clock == ServerClock(offset: Self.year, candidate: 0))
    }

    @Test(.verifies("CLOCK-1"))
    func `the clock offset follows the server's clock, but not within a header's resolution`() {
        #expect(ServerClock.offset(serverDate: 10_000, sent: 10_100, received: 10_300) == 0)
        #expect(ServerClock.offset(serverDate: 100_000, sent: 9_000, received: 11_000) == 90_500)
        // The device slept, or its clock was set, during the exchange.
        #expect(ServerClock.offset(serverDate: 100_000, sent: 9_000, received: 129_001) == nil)
        #expect(ServerClock.offset(serverDate: 100_000, sent: 9_000, received: 8_999) == nil)
        // The last moment that a header can have, and what a transport of the app may say.
        for date in [253_402_300_799_000, Int64.max, Int64.min] {
            #expect(ServerClock.offset(serverDate: date, sent: 0, received: 0) == nil)
        }
    }
}
