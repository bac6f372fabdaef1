// The process that RowKills kills: it appends events, and follows them with projections.

import Daybook
import DaybookSQL
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import GRDB

/// The work of one process.
package struct RowChild: Sendable {
    /// The folder with the log and the database.
    package var folder: String
    /// True for a `DatabasePool` in WAL mode; false for a `DatabaseQueue`.
    package var usesPool: Bool
    /// The version of the projection of notes.
    package var version: Int
    /// The greatest number of pages of the database beyond those it has; nil without a limit.
    package var morePages: Int?
    /// The seed of the events.
    package var seed: UInt64

    package init(folder: String, usesPool: Bool, version: Int, morePages: Int?, seed: UInt64) {
        self.folder = folder
        self.usesPool = usesPool
        self.version = version
        self.morePages = morePages
        self.seed = seed
    }

    /// Appends until the process is killed. Writes a line to standard output before the first append, and each
    /// acknowledged position.
    package func run() async throws {
        var choices = Choices(seed: seed)
        let store = try await RowFiles.openLog(folder)
        let database = try RowFiles.openDatabase(folder, usesPool: usesPool, morePages: morePages)
        let rows = try await store.project(into: database, historyProjections(version))
        Self.print(0)
        while true {
            let isRelaxed = choices.bool(oneIn: 4)
            let drafts = try choices.array(1...40) { choices in try Self.draft(&choices) }
            let appended = try await store.append(
                contentsOf: drafts, durability: isRelaxed ? .relaxed : .durable)
            if let last = appended.last, !isRelaxed { Self.print(last.position.rawValue) }
            if choices.bool(oneIn: 12) { try await retract(&choices, in: store) }
            // A full disk keeps them from following.
            if choices.bool() { try? await rows.reach(await store.lastDurable) }
        }
    }

    private static func draft(_ choices: inout Choices) throws -> EventDraft {
        var draft: EventDraft
        if choices.bool(oneIn: 3) {
            draft = try EventDraft(AmountAdded(amount: choices.int(in: 1...9)))
        } else {
            draft = try EventDraft(
                NoteWritten(
                    note: "note \(choices.int(in: 0...30))",
                    text: choices.element(of: ["one", nil, "unwanted", "a longer text"])))
        }
        draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...50)))
        return draft
    }

    private func retract(_ choices: inout Choices, in store: EventStore) async throws {
        let last = await store.lastDurable
        guard last > .zero else { return }
        let position = Position(UInt64(choices.int(in: 1...Int(last.rawValue))))
        try await store.retractOrReinstate(at: position)
    }

    private static func print(_ position: UInt64) {
        // Without a buffer, which a kill would lose.
        FileHandle.standardOutput.write(Data("\(position)\n".utf8))
    }
}

/// The log and the database of a folder, as the killed process and its parent open them.
enum RowFiles {
    static func database(_ folder: String) -> String { folder + "/rows.sqlite" }

    static func log(_ folder: String) -> String { folder + "/log" }

    static func openLog(_ folder: String) async throws -> EventStore {
        try await EventStore.open(
            at: URL(filePath: log(folder)), views: [NoteTexts.self], compaction: nil)
    }

    static func openDatabase(
        _ folder: String, usesPool: Bool, morePages: Int? = nil
    ) throws -> any DatabaseWriter {
        var configuration = Configuration()
        configuration.prepareDatabase { db in
            guard let morePages else { return }
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(max(1, pages + morePages))")
        }
        let path = database(folder)
        return usesPool
            ? try DatabasePool(path: path, configuration: configuration)
            : try DatabaseQueue(path: path, configuration: configuration)
    }
}
