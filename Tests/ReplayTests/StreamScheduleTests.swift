// When a run opens a stream, and when it reads pages instead. Spec/protocol/push.md, PUSH-13 to PUSH-15.

import TestSupport
import Testing

@testable import Replay

@Suite struct StreamScheduleTests {
    private func wait(
        _ schedule: inout StreamSchedule, _ end: StreamSchedule.End, openMilliseconds: Int64 = 0
    ) -> Int64 {
        schedule.ended(
            end, openMilliseconds: openMilliseconds, now: 1_000_000, random: 1,
            pollMilliseconds: 60_000)
            - 1_000_000
    }

    @Test(.verifies("PUSH-14"))
    func `the waits double up to a minute, until a stream lives long or brings an event`() {
        var schedule = StreamSchedule()
        let waits = (0..<9).map { _ in
            schedule.opened()
            return wait(&schedule, .wasOpen(hadEvents: false), openMilliseconds: 10)
        }
        #expect(waits == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
        #expect(wait(&schedule, .wasOpen(hadEvents: false), openMilliseconds: 30_000) == 500)
        #expect(wait(&schedule, .failed) == 1_000)
        #expect(wait(&schedule, .wasOpen(hadEvents: true), openMilliseconds: 10) == 500)
        #expect(!schedule.isPolling)
        #expect(schedule.mayOpen(now: 0))
    }

    @Test(.verifies("PUSH-14"), arguments: [401, 408, 429, 500, 503])
    func `a refusal that passes is waited for`(_ status: Int) {
        var schedule = StreamSchedule()
        #expect(wait(&schedule, .refused(status: status, retryAfterSeconds: 7)) == 7_000)
        #expect(!schedule.isPolling)
    }

    @Test(.verifies("PUSH-15"), arguments: [200, 204, 301, 400, 404, 406])
    func `where there is no stream, pages are read every minute for a quarter of an hour`(
        _ status: Int
    ) {
        var schedule = StreamSchedule()
        #expect(wait(&schedule, .refused(status: status, retryAfterSeconds: nil)) == 60_000)
        #expect(schedule.isPolling)
        #expect(!schedule.mayOpen(now: 1_000_000 + 899_999))
        #expect(schedule.mayOpen(now: 1_000_000 + 900_000))
        // The clock was set back by a day.
        #expect(schedule.mayOpen(now: 1_000_000 - 86_400_000))
        schedule.networkChanged()
        #expect(schedule.mayOpen(now: 1_000_000))
        #expect(!schedule.isPolling)
    }

    @Test(.verifies("PUSH-15")) func `two streams in a row that are withheld are enough`() {
        var schedule = StreamSchedule()
        #expect(wait(&schedule, .withheld) == 500)
        #expect(wait(&schedule, .wasOpen(hadEvents: false), openMilliseconds: 60_000) == 500)
        #expect(wait(&schedule, .withheld) == 1_000)
        #expect(!schedule.isPolling)
        #expect(wait(&schedule, .withheld) == 60_000)
        #expect(schedule.isPolling)
    }

    @Test(.verifies("PUSH-15")) func `a stream whose heartbeats do not come is withheld`() {
        var schedule = StreamSchedule()
        schedule.opened()
        #expect(wait(&schedule, .silent, openMilliseconds: 100_100) == 500)
        schedule.opened()
        // The network is gone after an hour of heartbeats.
        #expect(wait(&schedule, .silent, openMilliseconds: 3_600_000) == 500)
        for _ in 1...2 {
            schedule.opened()
            #expect(!schedule.isPolling)
            _ = wait(&schedule, .silent, openMilliseconds: 100_100)
        }
        #expect(schedule.isPolling)
    }

    @Test(.verifies("PUSH-14"))
    func `a sync on demand does not end the wait that a refusal asks for`() {
        var schedule = StreamSchedule()
        #expect(wait(&schedule, .refused(status: 429, retryAfterSeconds: 7)) == 7_000)
        #expect(!schedule.mayOpen(now: 1_006_999))
        #expect(schedule.mayOpen(now: 1_007_000))
    }

    @Test(.verifies("PUSH-12", "PUSH-13"))
    func `pushed events become pages that continue each other, and too many are refused`() {
        let events = PushedEvents(after: "a0")
        let line = [UInt8](repeating: 0x31, count: 1_024)
        for number in 1...600 {
            #expect(events.append(line, next: "a\(number)") == (number == 1 ? .first : .later))
        }
        let first = events.dequeuePage()
        #expect(first?.after == "a0")
        #expect(first?.next == "a500")
        #expect(first?.body.count == 500 * 1_025 + 1)
        let second = events.dequeuePage()
        #expect(second?.after == "a500")
        #expect(second?.next == "a600")
        #expect(events.dequeuePage() == nil)
        let large = [UInt8](repeating: 0x31, count: PushedEvents.bytesMax - 66)
        #expect(events.append(large, next: "b1") == .first)
        #expect(events.append([0x31], next: "b2") == .full)
        #expect(events.dequeuePage()?.next == "b1")
        #expect(events.append([0x31], next: "b2") == .first)
    }
}
