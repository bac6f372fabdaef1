// The reads of a transaction: the state before it, and the events that it has appended.

import Daybook
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.verifies("VIEW-30")) struct TransactionTests {
    private struct Deposited: EventPayload, Codable {
        static let type = "com.example.deposited"
        var account: String
        var amount: Int
        var subject: String? { account }
    }

    private struct Renamed: EventPayload, Codable {
        static let type = "com.example.renamed"
        var account: String
        var name: String
    }

    private struct Accounts: Projection, Codable {
        static let name = "accounts"
        static let version = 1
        static let eventTypes: Set<String>? = [Deposited.type, Renamed.type]
        private(set) var balances: StateDictionary<String, Int> = [:]
        private(set) var names: [String: Register<String>] = [:]

        mutating func fold(_ event: Event) {
            if let deposited = try? event.payload(as: Deposited.self) {
                balances[deposited.account, default: 0] += deposited.amount
            } else if let renamed = try? event.payload(as: Renamed.self) {
                names[renamed.account].set(renamed.name, event.lwwTimestamp)
            }
        }
    }

    private static func store() async throws -> EventStore {
        try await EventStore.inMemory(
            rules: [.of(Deposited.self), .of(Renamed.self)], views: [Accounts.self])
    }

    @Test func `a transaction reads what it has appended, and others see it when it has ended`()
        async throws
    {
        let store = try await Self.store()
        try await store.append(Deposited(account: "a", amount: 1))
        let balances = try await store.write { transaction in
            var balances = [transaction.view(Accounts.self).balances["a"] ?? 0]
            for amount in [10, 100] {
                try transaction.append(Deposited(account: "a", amount: amount))
                balances.append(transaction.view(Accounts.self).balances["a"] ?? 0)
            }
            return balances
        }
        #expect(balances == [1, 11, 111])
        #expect(store.view(Accounts.self).balances["a"] == 111)
        try await store.close()
    }

    @Test func `a view that is read after each of a thousand events has each once`() async throws {
        let store = try await Self.store()
        let counts = try await store.write { transaction in
            try (0..<1_000).map { number in
                try transaction.append(Deposited(account: "\(number % 7)", amount: 1))
                return transaction.view(Accounts.self).balances.reduce(0) { $0 + $1.value }
            }
        }
        #expect(counts == Array(1...1_000))
        #expect(store.view(Accounts.self).balances["0"] == 143)
        try await store.close()
    }

    @Test
    func `an id that a transaction uses twice is refused, also where a view was read between`()
        async throws
    {
        let store = try await Self.store()
        let first = try EventDraft(Deposited(account: "a", amount: 1))
        var second = try EventDraft(Deposited(account: "a", amount: 2))
        second.id = first.id
        let drafts = [first, second]
        let error = await #expect(throws: EventError.self) {
            try await store.write { transaction in
                for draft in drafts {
                    transaction.append(draft)
                    _ = transaction.view(Accounts.self)
                }
            }
        }
        #expect(error?.code == .idReused)
        #expect(store.view(Accounts.self).balances.isEmpty)
        try await store.close()
    }

    @Test
    func `a transaction reads what it records, also after the clock was ahead`()
        async throws
    {
        let store = try await Self.store()
        var ahead = try EventDraft(Renamed(account: "a", name: "ahead"))
        ahead.time = Timestamp(Date(timeIntervalSinceNow: 3_600))
        try await store.append(contentsOf: [ahead])
        let read = try await store.write { transaction in
            let before = transaction.view(Accounts.self).names["a"]
            try transaction.append(
                Renamed(account: "a", name: "new"), replacing: before?.lwwTimestamp)
            return transaction.view(Accounts.self).names["a"]
        }
        #expect(read?.value == "new")
        #expect(read == store.view(Accounts.self).names["a"])
        try await store.close()
    }

    @Test func `an event that the log has already is not folded twice`() async throws {
        let store = try await Self.store()
        let draft = try EventDraft(Deposited(account: "a", amount: 5))
        try await store.append(contentsOf: [draft])
        let balance = try await store.write { transaction in
            transaction.append(draft)
            return transaction.view(Accounts.self).balances["a"]
        }
        #expect(balance == 5)
        try await store.close()
    }

    @Test
    func
        `a transaction that is going to be refused reads the state before it, and records nothing`()
        async throws
    {
        let store = try await Self.store()
        let read = Mutex<Int?>(nil)
        await #expect(throws: EventError.self) {
            try await store.write { transaction in
                try transaction.append(Deposited(account: "a", amount: 5))
                transaction.append(EventDraft(type: Deposited.type, data: .json(Array("{}".utf8))))
                let balance = transaction.view(Accounts.self).balances["a"]
                read.withLock { $0 = balance ?? 0 }
            }
        }
        #expect(read.withLock { $0 } == 0)
        #expect(store.view(Accounts.self).balances["a"] == nil)
        try await store.close()
    }

    @Test func `a transaction that throws leaves no state behind`() async throws {
        struct Changed: Error {}
        let store = try await Self.store()
        await #expect(throws: Changed.self) {
            try await store.write { transaction in
                try transaction.append(Deposited(account: "a", amount: 5))
                guard transaction.view(Accounts.self).balances["a"] == nil else { throw Changed() }
            }
        }
        #expect(store.view(Accounts.self).balances.isEmpty)
        try await store.close()
    }
}
