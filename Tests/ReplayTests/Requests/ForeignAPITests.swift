// Requests to APIs that run outside, behind a proxy that loses requests and answers. DAYBOOK_FOREIGN_COUNT is the
// number of changes.
//
// DAYBOOK_FOREIGN_API: the address of the notes of NotesAPI over HTTP. `GET dump?prefix=P` returns
// {"notes":N,"rows":[{"note":…,"text":…},…]}, the lines in the order in which they were applied. With
// DAYBOOK_FOREIGN_KEYS=0 it knows no keys, and doubled changes are only counted.
//
// DAYBOOK_FOREIGN_DUMP: the same address without the proxy, to read at the end what the API has.
//
// DAYBOOK_FOREIGN_POCKETBASE: the address of a collection of PocketBase, whose records have ids that the client chooses.
// Tools/strangers/apis/run starts it, and the APIs of notes.
//
// DAYBOOK_FOREIGN_RECORDS: the address of a collection of Kinto, whose records have ids that the client chooses.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Testing

@testable import Replay

private let environment = ProcessInfo.processInfo.environment

/// A device that records changes, syncs and is killed, all at random.
private struct RandomDevice {
    var device: NotesDevice
    let rules: [EventRule]
    let count = environment["DAYBOOK_FOREIGN_COUNT"].flatMap { Int($0) } ?? 100
    let prefix = "n\(UUID().uuidString.prefix(8))-"
    /// The lines of each note.
    var expected: [String: [String]] = [:]
    private var random = SeededRandom(
        seed: environment["DAYBOOK_SEED"].flatMap { UInt64($0) } ?? 1)
    private var (made, kills, runs) = (0, 0, 0)

    init(_ rules: [EventRule]) async throws {
        self.rules = rules
        device = try await NotesDevice(NotesAPI(), rules: rules)
    }

    var summary: String { "\(made) changes, \(runs) runs, \(kills) kills" }

    /// Works until all changes are settled.
    mutating func work(
        _ transport: (EventStore) throws -> RequestTransport
    ) async throws {
        while made < count || device.store.view(Outbox.self).count > 0, runs < 100 * count {
            try await recordChanges()
            let clock = device.clock
            let replayer = try Replayer(device.store, transport: transport(device.store)) {
                clock.advance(by: $0)
            }
            let run = Task { try await replayer.run() }
            runs += 1
            if Int.random(in: 0..<4, using: &random) == 0 {
                // The files as they are at a moment of the run: a kill.
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...40, using: &random)))
                let snapshot = device.files.snapshot()
                run.cancel()
                _ = try? await run.value
                try await device.reopen(snapshot, rules: rules)
                kills += 1
            } else {
                _ = try await run.value
            }
            clock.advance(by: .seconds(3_700))
        }
        try #require(device.store.view(Outbox.self).count == 0)
    }

    private mutating func recordChanges() async throws {
        for _ in 0..<Int.random(in: 1...20, using: &random) where made < count {
            let note = prefix + "\(Int.random(in: 0..<max(1, count / 10), using: &random))"
            let text = "line \(expected[note]?.count ?? 0)"
            if expected[note] == nil {
                try await device.store.append(MemoAdded(note: note, text: text))
            } else {
                try await device.store.append(LineAdded(note: note, text: text))
            }
            expected[note, default: []].append(text)
            made += 1
        }
    }

    /// The number of lines that `lines` lacks.
    func lost(in lines: [String: [String]]) -> Int {
        expected.reduce(0) { $0 + Set($1.value).subtracting(lines[$1.key] ?? []).count }
    }
}

/// The address at which an API is read at the end.
private func addressToRead(_ base: URL) -> URL {
    environment["DAYBOOK_FOREIGN_DUMP"].flatMap(URL.init(string:)) ?? base
}

private struct Row: Codable {
    var note: String
    var text: String
}

private func get<Value: Decodable>(_ url: URL, as type: Value.Type) async throws -> Value {
    try await BoundedHTTPClient(HTTPOptions(), requestSeconds: 60).answer(
        to: BoundedHTTPRequest(url), token: nil
    ).decode(type)
}

struct ForeignAPITests {
    private struct Dump: Decodable {
        var notes: Int
        var rows: [Row]
    }

    @Test(.enabled(if: environment["DAYBOOK_FOREIGN_API"] != nil))
    func `an API with keys has each change once, in the order of its note`() async throws {
        let base = try #require(environment["DAYBOOK_FOREIGN_API"].flatMap(URL.init(string:)))
        let honoursKeys = environment["DAYBOOK_FOREIGN_KEYS"] != "0"
        var device = try await RandomDevice(noteRules())
        try await device.work { store in
            try RequestTransport(
                store, api: "notes", at: base,
                promise: honoursKeys ? .once(keysKeptFor: nil) : .atLeastOnce())
        }
        let query = [URLQueryItem(name: "prefix", value: device.prefix)]
        let dump = try await get(
            addressToRead(base).appending(path: "dump").appending(queryItems: query), as: Dump.self)
        let lines = Dictionary(grouping: dump.rows, by: \.note).mapValues { $0.map(\.text) }
        let lost = device.lost(in: lines)
        let doubled = dump.rows.count - device.count + lost
        print("\(device.summary): \(dump.rows.count) applied, \(lost) lost, \(doubled) doubled")
        #expect(lost == 0)
        guard honoursKeys else { return }
        #expect(dump.notes == device.expected.count)
        #expect(lines == device.expected)
    }

    private struct Records: Decodable { var data: [Row] }
    private struct NewRecord: Encodable { var data: Row }

    @Test(.enabled(if: environment["DAYBOOK_FOREIGN_RECORDS"] != nil))
    func `an API with ids that the client chooses has each record once`() async throws {
        let base = try #require(environment["DAYBOOK_FOREIGN_RECORDS"].flatMap(URL.init(string:)))
        @Sendable func put(
            _ note: String, _ text: String, _ context: RequestContext
        ) throws -> APIRequest {
            try APIRequest(
                .put, "records", context.event.id.text, headers: ["If-None-Match": "*"],
                json: NewRecord(data: Row(note: note, text: text)))
        }
        var device = try await RandomDevice([
            .of(MemoAdded.self, action: "ADD_NOTE") { try put($0.note, $0.text, $1) },
            .of(LineAdded.self, action: "ADD_LINE") { try put($0.note, $0.text, $1) },
        ])
        try await device.work { store in
            // The id is there already: it is the event's.
            try RequestTransport(
                store, api: "records", at: base, key: .inRequest,
                promise: .once(keysKeptFor: nil)
            ) { $0.status == 412 && $0.isJSON ? .duplicate : nil }
        }
        let records = try await get(base.appending(path: "records"), as: Records.self).data
            .filter { $0.note.hasPrefix(device.prefix) }
        let lines = Dictionary(grouping: records, by: \.note).mapValues { $0.map(\.text) }
        print("\(device.summary): \(records.count) records, \(device.lost(in: lines)) lost")
        #expect(device.lost(in: lines) == 0)
        #expect(records.count == device.count)
    }

    private struct PocketRecord: Codable {
        var id: String
        var note: String
        var text: String
    }

    private struct PocketPage: Decodable {
        var totalPages: Int
        var items: [PocketRecord]
    }

    private struct PocketFault: Decodable {
        var data: [String: Field]
        struct Field: Decodable { var code: String }
    }

    @Test(.enabled(if: environment["DAYBOOK_FOREIGN_POCKETBASE"] != nil))
    func `PocketBase has each record once, whatever is lost and killed`() async throws {
        let base = try #require(
            environment["DAYBOOK_FOREIGN_POCKETBASE"].flatMap(URL.init(string:)))
        @Sendable func post(
            _ note: String, _ text: String, _ context: RequestContext
        ) throws -> APIRequest {
            try APIRequest(
                .post, "records",
                json: PocketRecord(id: context.event.id.text, note: note, text: text))
        }
        var device = try await RandomDevice([
            .of(MemoAdded.self, action: "ADD_NOTE") { try post($0.note, $0.text, $1) },
            .of(LineAdded.self, action: "ADD_LINE") { try post($0.note, $0.text, $1) },
        ])
        try await device.work { store in
            try RequestTransport(
                store, api: "changes", at: base, key: .inRequest, promise: .once(keysKeptFor: nil)
            ) { answer in
                guard answer.status == 400, answer.isJSON else { return nil }
                // The id is there already: it is the event's.
                let codes = try answer.decode(PocketFault.self).data.values.map(\.code)
                return codes.contains { $0.hasSuffix("not_unique") || $0.hasSuffix("pk_invalid") }
                    ? .duplicate : nil
            }
        }
        var records: [PocketRecord] = []
        var (page, pages) = (1, 1)
        while page <= pages {
            let query = ["page": "\(page)", "perPage": "500", "sort": "id"].map {
                URLQueryItem(name: $0.key, value: $0.value)
            }
            let url = addressToRead(base).appending(path: "records").appending(queryItems: query)
            let answer = try await get(url, as: PocketPage.self)
            records += answer.items.filter { $0.note.hasPrefix(device.prefix) }
            (page, pages) = (page + 1, answer.totalPages)
        }
        let lines = Dictionary(grouping: records, by: \.note).mapValues { $0.map(\.text) }
        let lost = device.lost(in: lines)
        let doubled = records.count - device.count + lost
        print("\(device.summary): \(records.count) records, \(lost) lost, \(doubled) doubled")
        #expect((lost, doubled) == (0, 0))
    }
}
