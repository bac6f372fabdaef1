// The conversion of a queue in a GRDB table to a store: the code, the diffs and the figures of the article "Replacing a
// queue".

import DaybookTestKit
import Foundation
import GRDB
import Testing

@Suite struct ReplacingTests {
    private static func text(_ path: String) throws -> String {
        try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(path: path)
                .standardizedFileURL, encoding: .utf8)
    }

    private static func article() throws -> String {
        try text("../../../Sources/Daybook/Daybook.docc/ReplacingAQueue.md")
    }

    @Test func `the table loses changes in eight ways, and the store that replaces it in none`()
        async throws
    {
        let table = await QueueTrial.run(TableQueue.self, name: "before")
        let store = await QueueTrial.run(RequestQueue.self, name: "after")
        #expect(table.failed.count == 8, "\(table)")
        #expect(store.failed.isEmpty, "\(store)")
        #expect(store.notTried.isEmpty, "\(store)")
        let report = QueueTrialReport.table([table, store])
        #expect(try Self.article().contains(report), "not in the article:\n\(report)")
    }

    @Test func `each diff of the article leads from the table's code to the store's`() throws {
        let before = try Self.text("TableQueue.swift")
        let after = try Self.text("RequestQueue.swift") + Self.text("StoreQueue.swift")
        let diffs = try Self.article().components(separatedBy: "```diff\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```").first
        }
        #expect(diffs.count == 6)
        for diff in diffs {
            for (code, others) in [(before, "+"), (after, "-")] {
                let lines = diff.components(separatedBy: "\n").filter { !$0.hasPrefix(others) }
                let part = lines.map { $0.dropFirst() }.joined(separator: "\n")
                #expect(code.contains(part), "not in the code:\n\(part)")
            }
        }
    }

    @Test func `the rows that were not sent are taken over once, and none takes effect twice`()
        async throws
    {
        let api = ScriptedAPI()
        let old = try TableQueue(sendingTo: api)
        for number in 1...3 { try await old.enqueue(TrialChange("note-1", number)) }
        // The first is applied, and its answer is lost.
        api.answer { _, request in request == 1 ? .answerLost : .failed(.offline) }
        await old.run(after: .launched)
        let new = try await RequestQueue(sendingTo: api)
        let store = try #require(await new.store)
        let database = await old.database
        // As after a kill between the record and the end of the table, which a copy still has.
        let copy = try DatabaseQueue()
        try database.backup(to: copy)
        try await takeOver(copy, into: store)
        for _ in 0..<2 { try await takeOver(database, into: store) }
        #expect(try await new.pending().count == 3)
        api.answer { _, _ in .applied }
        await new.run(after: .launched)
        #expect(api.applied.map(\.change.number) == [1, 2, 3])
        #expect(try await new.pending().isEmpty)
    }
}
