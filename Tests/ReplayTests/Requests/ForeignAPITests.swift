// Requests to an API that runs outside: the notes of NotesAPI over HTTP, behind a proxy that loses requests and
// answers. DAYBOOK_FOREIGN_API is its address, DAYBOOK_FOREIGN_COUNT the number of changes. `GET dump?prefix=P` returns
// {"notes":N,"rows":[{"note":…,"text":…},…]}, the lines in the order in which they were applied.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Testing

@testable import Replay

private let environment = ProcessInfo.processInfo.environment

@Suite(.enabled(if: environment["DAYBOOK_FOREIGN_API"] != nil))
struct ForeignAPITests {
    private struct Dump: Decodable {
        struct Row: Decodable {
            var note: String
            var text: String
        }
        var notes: Int
        var rows: [Row]
    }

    @Test func `an API that runs outside has each change once, in the order of its note`()
        async throws
    {
        let base = try #require(environment["DAYBOOK_FOREIGN_API"].flatMap(URL.init(string:)))
        let count = environment["DAYBOOK_FOREIGN_COUNT"].flatMap { Int($0) } ?? 100
        let honoursKeys = environment["DAYBOOK_FOREIGN_KEYS"] != "0"
        var random = SeededRandom(seed: environment["DAYBOOK_SEED"].flatMap { UInt64($0) } ?? 1)
        let prefix = "n\(UUID().uuidString.prefix(8))-"
        var device = try await NotesDevice(NotesAPI())
        var expected: [String: [String]] = [:]
        var (made, kills, runs) = (0, 0, 0)
        while made < count || device.store.view(Outbox.self).count > 0, runs < 100 * count {
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
            let clock = device.clock
            let transport = try RequestTransport(
                device.store, api: "notes", at: base,
                promise: honoursKeys ? .once(keysKeptFor: nil) : .atLeastOnce())
            let run = Task { [store = device.store] in
                try await Replayer(store, transport: transport) { clock.advance(by: $0) }.run()
            }
            runs += 1
            if Int.random(in: 0..<4, using: &random) == 0 {
                // The files as they are at a moment of the run: a kill.
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...40, using: &random)))
                let snapshot = device.files.snapshot()
                run.cancel()
                _ = try? await run.value
                try await device.reopen(snapshot)
                kills += 1
            } else {
                _ = try await run.value
            }
            clock.advance(by: .seconds(3_700))
        }
        #expect(device.store.view(Outbox.self).count == 0)
        let answer = try await BoundedHTTPClient(HTTPOptions(), requestSeconds: 60).answer(
            to: BoundedHTTPRequest(
                base.appending(path: "dump").appending(queryItems: [
                    URLQueryItem(name: "prefix", value: prefix)
                ])), token: nil)
        let dump = try answer.decode(Dump.self)
        let lines = Dictionary(grouping: dump.rows, by: \.note).mapValues { $0.map(\.text) }
        let lost = expected.reduce(0) { lost, note in
            lost + Set(note.value).subtracting(lines[note.key] ?? []).count
        }
        print(
            "\(made) changes, \(runs) runs, \(kills) kills: \(dump.rows.count) applied, \(lost) lost, "
                + "\(dump.rows.count - made + lost) doubled")
        #expect(lost == 0)
        if honoursKeys {
            #expect(dump.notes == expected.count)
            #expect(lines == expected)
        }
    }
}
