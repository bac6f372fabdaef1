// The division of the server's capacities among accounts: the decisions, without a server, a clock
// or threads. Spec/operations/operating.md, OPS-6 and OPS-21.

import DaybookTestKit
import EventSourcing
import SyncServerAdmission
import Synchronization
import TestSupport
import Testing

extension EntityID: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) { self.init(text) }
}

@Suite struct FairQueueTests {
    @Test(.verifies("OPS-21"))
    func `an account never holds more than half of what it leaves free`() {
        for capacity in [1, 2, 3, 8, 900] {
            var shares = FairShares(capacity: capacity, isDivided: true)
            var count = 0
            while shares.grant(1, to: "ana") == .granted { count += 1 }
            #expect(count == max(1, capacity / 3))
            #expect(shares.grant(1, to: "ana") == .beyondShare)
        }
    }

    @Test(.verifies("OPS-21"))
    func `if ten accounts hold their full shares, the next one still gets a part`() {
        var shares = FairShares(capacity: 900, isDivided: true)
        for account in 1...10 {
            var count = 0
            while shares.grant(1, to: EntityID("\(account)")) == .granted { count += 1 }
            #expect(count > 0)
        }
        #expect(shares.grant(1, to: "next") == .granted)
        #expect(shares.used <= 900)
    }

    @Test(.verifies("OPS-21"))
    func `without accounts, the single account may hold the whole capacity`() {
        var shares = FairShares(capacity: 3, isDivided: false)
        for _ in 0..<3 { #expect(shares.grant(1, to: "local") == .granted) }
        #expect(shares.grant(1, to: "local") == .exhausted)
        shares.release(2, of: "local")
        #expect(shares.grant(2, to: "local") == .granted)
    }

    @Test(.verifies("OPS-21"))
    func `an account does not wait for the requests of another account`() {
        var queue = FairQueue(FairShares(capacity: 8, isDivided: true))
        var granted: [Int] = []
        for ticket in 0..<900 { granted += queue.join(ticket, for: 1, account: "ana") }
        #expect(granted == [0, 1])
        // The other account is served at once until it holds its share.
        #expect(queue.join(1_000, for: 1, account: "bob") == [1_000])
        #expect(queue.release(1, account: "bob") == [])
        #expect(queue.release(1, account: "ana") == [2])
    }

    @Test(.verifies("OPS-21"))
    func `accounts that wait take turns, and each keeps its own order`() {
        var queue = FairQueue(FairShares(capacity: 1, isDivided: true))
        var running = queue.join(0, for: 1, account: "ana").map { ($0, EntityID("ana")) }
        var owners: [Int: EntityID] = [0: "ana"]
        for ticket in 1...6 { owners[ticket] = "ana" }
        for ticket in 7...8 { owners[ticket] = "bob" }
        owners[9] = "eva"
        for ticket in 1...9 {
            #expect(queue.join(ticket, for: 1, account: owners[ticket]!).isEmpty)
        }
        var order: [Int] = []
        while let (ticket, account) = running.popLast() {
            order.append(ticket)
            running = queue.release(1, account: account).map { ($0, owners[$0]!) }
        }
        #expect(order == [0, 1, 7, 9, 2, 8, 3, 4, 5, 6])
        #expect(queue.used == 0)
    }

    @Test(.verifies("OPS-21"))
    func `a small amount does not wait for a large one that is not free`() {
        var queue = FairQueue(FairShares(capacity: 10, isDivided: true))
        #expect(queue.join(0, for: 5, account: "ana") == [0])
        #expect(queue.join(1, for: 8, account: "bob") == [])
        #expect(queue.join(2, for: 1, account: "eva") == [2])
        #expect(queue.release(5, account: "ana") == [1])
    }

    @Test(.verifies("OPS-21"))
    func `small amounts pass a large one up to its own amount, then they wait for it`() {
        var queue = FairQueue(FairShares(capacity: 10, isDivided: true))
        #expect(queue.join(0, for: 5, account: "ana") == [0])
        #expect(queue.join(1, for: 8, account: "bob") == [])
        for ticket in 2..<6 {
            let account = EntityID("\(ticket)")
            #expect(queue.join(ticket, for: 2, account: account) == [ticket])
            #expect(queue.release(2, account: account) == [])
        }
        #expect(queue.join(6, for: 1, account: "eva") == [])
        #expect(queue.release(5, account: "ana") == [1, 6])
    }

    @Test(.verifies("OPS-21")) func `every request gets its turn in the end`() throws {
        try Property.check("fair queue") { choices in
            var queue = FairQueue(FairShares(capacity: 40, isDivided: true))
            var owners: [Int: (account: EntityID, amount: Int)] = [:]
            var running: [Int] = []
            for ticket in 0..<choices.int(in: 1...60) {
                let account = EntityID("\(choices.int(in: 0...6))")
                let amount = choices.int(in: 1...40)
                owners[ticket] = (account, amount)
                running += queue.join(ticket, for: amount, account: account)
                if !running.isEmpty, choices.bool() {
                    let done = running.remove(at: choices.int(in: 0...running.count - 1))
                    running += queue.release(owners[done]!.amount, account: owners[done]!.account)
                    owners[done] = nil
                }
                try #require(queue.used == running.reduce(0) { $0 + owners[$1]!.amount })
                try #require(queue.used <= 40)
            }
            while let done = running.popLast() {
                running += queue.release(owners[done]!.amount, account: owners[done]!.account)
                owners[done] = nil
            }
            try #require(owners.isEmpty, "wait for ever")
        }
    }

    @Test(.verifies("OPS-21"))
    func `an abandoned request blocks no other, and is granted nothing`() {
        var queue = FairQueue(FairShares(capacity: 10, isDivided: true))
        #expect(queue.join(0, for: 5, account: "ana") == [0])
        #expect(queue.join(1, for: 8, account: "bob") == [])
        #expect(queue.join(2, for: 6, account: "eva") == [])
        #expect(queue.leave(1, account: "bob") == [])
        #expect(queue.release(5, account: "ana") == [2])
        #expect(queue.release(6, account: "eva") == [])
        #expect(queue.used == 0)
    }

    @Test(.verifies("OPS-21"))
    func `a request that waits too long, or is cancelled, leaves nothing behind`() async throws {
        let admission = Admission(capacity: 1, isDivided: true, waitMax: .milliseconds(50)) { _ in }
        let first = try await admission.borrow(1, account: "ana")
        await #expect(throws: Admission.Refusal.timedOut) {
            try await admission.borrow(1, account: "ana")
        }
        let patient = Admission(capacity: 1, isDivided: true)
        let held = try await patient.borrow(1, account: "ana")
        let waiting = Task { try await patient.borrow(1, account: "bob").release() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        first.release()
        held.release()
        #expect(admission.used == 0)
        #expect(patient.used == 0)
        try await admission.borrow(1, account: "bob").release()
        // A loan is released when it is no longer referenced.
        do { _ = try await admission.borrow(1, account: "bob") }
        #expect(admission.used == 0)
    }

    @Test(.verifies("OPS-21")) func `a request that no longer waits leaves no timer`()
        async throws
    {
        let asleep = Mutex(0)
        let admission = Admission(
            capacity: 1, isDivided: true, waitMax: .seconds(3_600)
        ) { time in
            asleep.withLock { $0 += 1 }
            defer { asleep.withLock { $0 -= 1 } }
            // Until it is cancelled: the time is an hour.
            try await Task.sleep(for: time)
        }
        let first = try await admission.borrow(1, account: "ana")
        let second = Task { try await admission.borrow(1, account: "bob") }
        try await eventually("timers", is: 1) { asleep.withLock { $0 } }
        first.release()
        try await second.value.release()
        try await eventually("timers", is: 0) { asleep.withLock { $0 } }
    }

    @Test(.verifies("SYNC-45", "OPS-21"))
    func `two spellings of one accent are two accounts with a share each`() {
        let (one, other): (EntityID, EntityID) = ("caf\u{E9}", "cafe\u{301}")
        var queue = FairQueue(FairShares(capacity: 3, isDivided: true))
        #expect(queue.join(0, for: 1, account: one) == [0])
        #expect(queue.join(1, for: 1, account: one) == [])
        #expect(queue.join(2, for: 1, account: other) == [2])
        var table = ConnectionTable<Int>(countMax: 3)
        for (key, name) in [one, one, other].enumerated() {
            #expect(table.open(key, holder: .address("proxy")) == nil)
            table.set(key, account: name.string)
        }
        table.set(0, .receiving)
        table.set(1, .receiving)
        #expect(table.open(3, holder: .address("new")) == 0)
    }

    @Test(.verifies("OPS-6"))
    func `a connection with an unread reply is closed last of its holder's`() {
        var table = ConnectionTable<Int>(countMax: 4)
        for key in 0..<4 { #expect(table.open(key, holder: .address("flood")) == nil) }
        table.set(0, .answering)
        table.set(1, .sending)
        table.set(2, .sending)
        table.set(3, .receiving)
        #expect(table.open(4, holder: .address("new")) == 3)
        table.set(4, .answering)
        #expect(table.open(5, holder: .address("new")) == 1)
        table.set(5, .answering)
        #expect(table.open(6, holder: .address("new")) == 2)
        table.set(6, .answering)
        #expect(table.open(7, holder: .address("new")) == 7)
    }

    @Test(.verifies("OPS-6"))
    func `of too many connections, one of the holder with the most is closed, idle ones first`() {
        var table = ConnectionTable<Int>(countMax: 6)
        for key in 0..<4 { #expect(table.open(key, holder: .address("flood")) == nil) }
        #expect(table.open(4, holder: .address("honest")) == nil)
        #expect(table.open(5, holder: .address("honest")) == nil)
        table.set(0, .receiving)
        table.set(1, .answering)
        #expect(table.open(6, holder: .address("new")) == 2)
        table.set(3, .receiving)
        // Two of "flood" and two of "honest" wait for their client: the connection that changed longest
        // ago is closed.
        #expect(table.open(7, holder: .address("new")) == 4)
        #expect(table.count == 6)
    }

    @Test(.verifies("OPS-6"))
    func `a connection counts for its request's account, and is not closed while it is answered`() {
        var table = ConnectionTable<Int>(countMax: 5)
        for key in 0..<3 { #expect(table.open(key, holder: .address("proxy")) == nil) }
        for key in 3..<5 {
            #expect(table.open(key, holder: .address("proxy")) == nil)
            table.set(key, account: "ana")
            table.set(key, .receiving)
        }
        for key in 0..<2 { table.set(key, account: "user-\(key)") }
        #expect(table.open(5, holder: .address("proxy")) == 3)
        for key in [0, 1, 2, 4, 5] { table.set(key, .answering) }
        #expect(table.open(6, holder: .address("proxy")) == 6)
        #expect(table.count == 5)
        table.close(0)
        #expect(table.open(7, holder: .address("proxy")) == nil)
    }

    @Test(.verifies("OPS-6")) func `one client's IPv6 network is one address`() {
        let first = ConnectionHolder(ipAddress: "2001:db8:1:2::1")
        #expect(first == ConnectionHolder(ipAddress: "2001:db8:1:2:ffff::9"))
        #expect(first != ConnectionHolder(ipAddress: "2001:db8:1:3::1"))
        let mapped = ConnectionHolder(ipAddress: "::ffff:192.0.2.1")
        #expect(mapped == ConnectionHolder(ipAddress: "192.0.2.1"))
        #expect(mapped != ConnectionHolder(ipAddress: "::ffff:192.0.2.2"))
    }
}
