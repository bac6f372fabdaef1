// The test kit's server follows the sync protocol. Spec/protocol/sync-protocol.md.

import Daybook
import DaybookTestKit
import Foundation
import Testing

private struct Step: EventPayload, Codable {
    static let type = "com.example.step"
    var name: String
    var subject: String? { name }
}

private func device() async throws -> EventStore {
    try await EventStore.inMemory(rules: [.of(Step.self, action: "STEP")])
}

@Suite struct InMemorySyncServerTests {
    @Test func `an event that one device ships is read by another`() async throws {
        let server = InMemorySyncServer()
        let (phone, tablet) = (try await device(), try await device())
        try await phone.append(Step(name: "a"))
        try await phone.append(Step(name: "b"))
        let shipped = try await phone.sync(over: server)
        #expect(shipped.applied == 2)
        #expect(shipped.pending == 0)
        try await tablet.append(Step(name: "c"))
        let read = try await tablet.sync(over: server)
        #expect(read.applied == 1)
        #expect(read.received == 2)
        #expect(server.events.map(\.subject) == ["a", "b", "c"])
        #expect(try await phone.sync(over: server).received == 1)
        for store in [phone, tablet] { try await store.close() }
    }

    @Test func `an event counts once, and its id belongs to it`() async throws {
        let server = InMemorySyncServer()
        let id = "c0de0001-0000-4000-8000-000000000001"
        func send(_ subject: String) async throws -> String {
            let line = """
                {"specversion":"1.0","id":"\(id)","source":"urn:uuid:\(id)","sequence":"1",\
                "type":"com.example.step","subject":"\(subject)"}
                """
            let reply = try await server.send(.append(batch: Array("[\(line)]".utf8)), token: nil)
            #expect(reply.status == 200)
            return String(decoding: reply.body, as: UTF8.self)
        }
        let verdicts = #"{"verdicts":[{"id":"\#(id)","status":"#
        #expect(try await send("a") == verdicts + #""applied"}]}"#)
        #expect(try await send("a") == verdicts + #""duplicate"}]}"#)
        #expect(try await send("b") == verdicts + #""rejected","code":"id_reused"}]}"#)
        #expect(server.events.count == 1)
    }

    @Test func `a rejected event holds its lane, and other lanes continue`() async throws {
        let server = InMemorySyncServer { event in
            event.subject == "no"
                ? Verdict(id: event.id, status: .rejected, code: "unknown", detail: "no such step")
                : nil
        }
        let store = try await device()
        try await store.append(Step(name: "no"))
        try await store.append(Step(name: "no"))
        try await store.append(Step(name: "yes"))
        let report = try await store.sync(over: server)
        #expect(report.applied == 1)
        #expect(report.rejected == 1)
        let entries = Array(store.outbox.entries)
        #expect(entries.count == 2)
        #expect(entries.first?.errorMessage?.contains("no such step") == true)
        try await store.close()
    }

    @Test func `an unreachable server stores nothing, and gets all events later`() async throws {
        let server = InMemorySyncServer()
        server.isReachable = false
        let store = try await device()
        try await store.append(Step(name: "a"))
        let report = try await store.sync(
            over: server, until: Date(timeIntervalSinceNow: 0.2))
        #expect(report.applied == 0)
        #expect(report.pending == 1)
        #expect(server.events.isEmpty)
        server.isReachable = true
        #expect(try await store.sync(over: server).applied == 1)
        try await store.close()
    }

    @Test(.verifies("CON-1"))
    func `an event whose base is not the newest of its lane is in conflict`() async throws {
        let server = InMemorySyncServer()
        let (phone, tablet) = (try await device(), try await device())
        try await phone.append(Step(name: "a"))
        try await phone.sync(over: server)
        let first = try #require(server.events.last)
        func change(_ store: EventStore, basedOn base: UUID) async throws -> UUID {
            let draft = try EventDraft(Step(name: "a"), basedOn: base)
            try await store.append(contentsOf: [draft])
            return draft.id
        }
        // The second is based on the first, and both are in one batch.
        let second = try await change(phone, basedOn: first.id)
        let third = try await change(phone, basedOn: second)
        let shipped = try await phone.sync(over: server)
        #expect(shipped.applied == 2)
        #expect(shipped.conflict == 0)
        _ = try await change(tablet, basedOn: first.id)
        try await tablet.append(Step(name: "b"))
        let report = try await tablet.sync(over: server)
        // The server's event is recorded, and counted.
        #expect(report.applied == 1)
        #expect(report.conflict == 1)
        #expect(report.received >= 1)
        #expect(tablet.outbox.entries.map(\.status) == [.conflict])
        #expect(tablet.outbox.entries.first?.conflictsWith == third)
        // A lane that the server does not know has no newest event.
        let fresh = InMemorySyncServer()
        let alone = try await device()
        _ = try await change(alone, basedOn: first.id)
        #expect(try await alone.sync(over: fresh).conflict == 1)
        for store in [phone, tablet, alone] { try await store.close() }
    }

    @Test(.verifies("CON-1", "CON-3"))
    func `of two first writes the second is in conflict, and keeping it wins on both devices`()
        async throws
    {
        let server = InMemorySyncServer()
        let (phone, tablet) = (try await device(), try await device())
        for store in [phone, tablet] {
            let first = try EventDraft(Step(name: "a"), basedOn: EventDraft.noBase)
            try await store.append(contentsOf: [first])
        }
        #expect(try await phone.sync(over: server).applied == 1)
        #expect(try await tablet.sync(over: server).conflict == 1)
        let entry = try #require(tablet.outbox.entries.first)
        #expect(entry.conflictsWith == server.events.first?.id)
        try await tablet.outbox.resolve(entry.id, .keepMine)
        #expect(try await tablet.sync(over: server).applied == 1)
        #expect(server.events.last?.baseID == server.events.first?.id)
        for store in [phone, tablet] { try await store.close() }
    }

    @Test func `an invalid batch or cursor gets status 400`() async throws {
        let server = InMemorySyncServer()
        for batch in ["", "{}", "[1]", "[{}]", "[]x"] {
            let reply = try await server.send(.append(batch: Array(batch.utf8)), token: nil)
            #expect(reply.status == 400, "\(batch)")
        }
        for cursor in ["", "x", "-1"] {
            #expect(try await server.send(.read(after: cursor), token: nil).status == 400)
        }
        #expect(server.requests.count == 8)
    }
}
