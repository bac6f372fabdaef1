// The corpus of every event type ever released, with its edge cases. Whatever changes in the code, these
// lines must fold to the rows that follow them, and must never change a byte.
//
// Corpus/released.txt contains the events, one in each line, then an empty line and the rows of all views.
// For a type that is released, or released again with other data, append a line after the last event, and
// update the rows; never change existing events. Spec/model/events.md, EVT-13.

import DaybookTestKit
import EventGenerators
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

enum Corpus {
    /// The lines of the file, without newlines: events, an empty line, rows.
    private static func file() throws -> [Substring] {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Corpus/released.txt")
        return try String(contentsOf: file, encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The events as they are stored in a log, without newlines.
    static func lines() throws -> [[UInt8]] {
        try file().prefix { !$0.isEmpty }.map { Array($0.utf8) }
    }

    /// The rows to which the events fold.
    private static func expectedRows() throws -> [String] {
        try file().drop { !$0.isEmpty }.filter { !$0.isEmpty }.map(String.init)
    }

    static func environment(_ files: InMemoryFileSystem) -> LogEnvironment {
        LogEnvironment(fileSystem: files)
    }

    /// The numbers of lines that were recorded when their types had no rule, and that today's rules
    /// refuse. Logs that contain them keep them. Spec/decisions/0027.
    static let refusedToday: Set<Int> = [37, 38, 39]

    /// A log with the corpus byte for byte, each line a commit, in three segments.
    static func log() throws -> InMemoryFileSystem {
        let files = InMemoryFileSystem()
        let log = try Log(at: "/log", environment: environment(files))
        for (number, line) in try lines().enumerated() {
            if number % 20 == 19 { try log.roll() }
            try log.append(line + [0x0A])
        }
        try log.close()
        return files
    }

    static func open(_ files: InMemoryFileSystem) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), cleansUp: false, environment: environment(files))
    }

    /// The rows of all views, and the events of the outbox. A row begins with its view's name.
    static func rows(_ store: OfflineStore) -> [String] {
        func rows<View: ListableView>(_ type: View.Type) -> [String] {
            store.view(type).rows().map {
                "\(View.name) " + String(decoding: $0.json, as: UTF8.self)
            }
        }
        let outbox = store.view(Outbox.self)
        let notes = store.view(NotesView.self)
        let ignored = [
            CitiesView.name: store.view(CitiesView.self).ignored,
            NotesView.name: notes.ignored,
            PreferencesView.name: store.view(PreferencesView.self).ignored,
            ProgressView.name: store.view(ProgressView.self).ignored,
            PagesView.name: store.view(PagesView.self).ignored,
            ContentView.name: store.view(ContentView.self).ignored,
            DownloadsView.name: store.view(DownloadsView.self).ignored,
            SettingsView.name: store.view(SettingsView.self).ignored,
            ImagesView.name: store.view(ImagesView.self).ignored,
            LearningView.name: store.view(LearningView.self).ignored,
            AssetsView.name: store.view(AssetsView.self).ignored,
            AlbumsView.name: store.view(AlbumsView.self).ignored,
            DeviceMediaView.name: store.view(DeviceMediaView.self).ignored,
        ]
        var all = OfflineModel.views.flatMap { rows($0) }
        all += outbox.entries.map { "outbox \($0.action) \($0.lane)" }
        all += ignored.map { "\($0) ignored \($1)" }.sorted()
        all.append("notes live \(notes.counts.live) waiting \(notes.counts.waiting)")
        all.append("outbox ignored \(outbox.ignored)")
        return all
    }

    /// Checks that the views have the expected rows. Compares bytes, because Swift compares canonically
    /// equivalent strings as equal.
    ///
    /// - Parameter refused: the number of pages that the store refused.
    static func checkRows(_ store: OfflineStore, refused: Int = 0) throws {
        var rows = rows(store)
        if let line = rows.firstIndex(of: "pages ignored \(refusedToday.count - refused)") {
            rows[line] = "pages ignored \(refusedToday.count)"
        }
        let expected = try expectedRows()
        // The rows of a view are in order, followed by its counts; the views are in any order.
        func byView(_ rows: [String]) -> [Substring: [[UInt8]]] {
            let isCount = { (row: String) in
                row.contains(" ignored ") || row.hasPrefix("notes live ")
            }
            return Dictionary(grouping: rows) { $0.prefix { $0 != " " } }.mapValues { rows in
                (rows.filter { !isCount($0) } + rows.filter(isCount).sorted()).map {
                    Array($0.utf8)
                }
            }
        }
        let (found, wanted) = (byView(rows), byView(expected))
        for view in Set(found.keys).union(wanted.keys) {
            #expect(found[view] == wanted[view], "\(view)")
        }
        #expect(rows.count == expected.count)
    }

    /// The lines of a log as they are on disk.
    static func stored(_ files: InMemoryFileSystem) throws -> [[UInt8]] {
        var lines: [[UInt8]] = []
        try LogReader("/log", fileSystem: files).forEachLine { _, line in
            lines.append(line.array)
            return true
        }
        return lines
    }
}

@Suite struct CorpusTests {
    @Test(.verifies("EVT-13")) func `every released type is in the corpus`() throws {
        let types = Set(
            try Corpus.lines().map { try LineDecoder.decode($0.span.bytes).draft.type })
        #expect(Set(OfflineModel.catalogue.types).subtracting(types) == [])
        // The corpus also has types that no release knows.
        #expect(types.subtracting(OfflineModel.catalogue.types).count >= 8)
    }

    @Test(.verifies("EVT-13"))
    func `the corpus folds to the recorded rows, before and after reopening`() async throws {
        let files = try Corpus.log()
        for _ in 0..<3 {
            let store = try await Corpus.open(files)
            try Corpus.checkRows(store)
            #expect(store.events.upcastFailures == [:])
            try await store.events.checkpoint()
            try await store.close()
        }
    }

    @Test(.verifies("EVT-12", "LINE-1"))
    func `lines survive byte for byte: on the disk, by position, shipped, exported`() async throws {
        let files = try Corpus.log()
        let lines = try Corpus.lines()
        #expect(try Corpus.stored(files) == lines)
        var exported: [[UInt8]] = []
        try LogReader("/log", fileSystem: files).forEachLine { prefix, line in
            var text: [UInt8] = []
            prefix.appendExported(line, to: &text)
            exported.append(text)
            return true
        }
        #expect(exported == lines)
        let store = try await Corpus.open(files)
        let positions = (1...lines.count).map { Position(UInt64($0)) }
        let array = try await store.events.jsonArray(of: positions)
        #expect(
            array == [UInt8(ascii: "[")] + lines.joined(separator: [UInt8(ascii: ",")])
                + [UInt8(ascii: "]")])
        for (position, line) in zip(positions, lines) {
            let event = try #require(try await store.events.event(at: position))
            var again: [UInt8] = []
            LineEncoder.append(
                event.content,
                LinePrefix(
                    own: event.id.integer, source: event.source.integer, at: event.position),
                to: &again)
            #expect(again == line + [0x0A])
        }
        try await store.close()
        #expect(try Corpus.stored(files) == lines)
    }

    @Test(.verifies("CMP-1", "CMP-4", "EVT-12"))
    func `lines of the corpus that compaction keeps are unchanged, byte for byte`() async throws {
        let files = try Corpus.log()
        let lines = try Corpus.lines()
        var store = try await Corpus.open(files)
        _ = try await Replayer(store.events, transport: InMemorySyncServer()).run()
        try store.events.log.roll()
        let rows = Corpus.rows(store)
        try await store.compact()
        let left = try Corpus.stored(files)
        // Selected by source: no line that this log records has the source of the corpus.
        let ofCorpus = left.filter { $0[84..<120] == lines[0][84..<120] }
        #expect(ofCorpus.count <= lines.count - 10)
        #expect(ofCorpus.allSatisfy(lines.contains))
        // Events of unknown types are all kept.
        for line in lines {
            let type = try LineDecoder.decode(line.span.bytes).draft.type
            if OfflineModel.catalogue[type] == nil { #expect(left.contains(line)) }
        }
        #expect(Corpus.rows(store) == rows)
        try await store.close()
        // Without checkpoints, from the remaining lines only.
        for slot in ["a", "b"] { files["/log/checkpoints/\(slot)"] = nil }
        store = try await Corpus.open(files)
        #expect(Corpus.rows(store) == rows)
        try await store.close()
    }

    @Test(.verifies("EVT-9", "EVT-13", "EVT-14", "LINE-6"))
    func `the corpus can be imported, once, and keeps all but source and sequence`() async throws {
        let files = InMemoryFileSystem()
        let lines = try Corpus.lines()
        let drafts = try lines.map { try LineDecoder.decode($0.span.bytes).draft }
        let store = try await Corpus.open(files)
        var taken: [EventDraft] = []
        for (number, draft) in zip(1..., drafts) {
            guard !Corpus.refusedToday.contains(number) else {
                await #expect(throws: EventError.self) {
                    try await store.events.append(contentsOf: [draft])
                }
                continue
            }
            guard !LogRecord.isType(draft.type) else {
                await #expect(throws: EventError.self) {
                    try await store.events.append(contentsOf: [draft])
                }
                // So that the lines after it get the same positions.
                try await store.events.append(record: draft)
                continue
            }
            #expect(try await store.events.append(history: [draft])[0].isNew)
            taken.append(draft)
        }
        #expect(try await store.events.append(history: taken).allSatisfy { !$0.isNew })
        try Corpus.checkRows(store, refused: Corpus.refusedToday.count)
        try await store.close()
        // The prefix up to the sequence is 154 bytes long; see LINE-2.
        let stored = try Corpus.stored(files)
        let accepted = zip(1..., lines).filter { !Corpus.refusedToday.contains($0.0) }.map(\.1)
        #expect(stored.map { $0.dropFirst(154) } == accepted.map { $0.dropFirst(154) })
    }
}
