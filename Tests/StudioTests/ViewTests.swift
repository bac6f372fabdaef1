// The views through time: the states at any position, the differences between two, and their causes.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@testable import Studio

@Suite(.verifies("STU-9")) struct ViewTests {
    // MARK: States

    @Test func `the rows at a position are those of a fold from the first event`() throws {
        try Property.check("timeline", runs: 25) { choices in
            let events = try Histories.random(&choices, 1...50)
            let cut = choices.int(in: 0...events.count)
            let log = try SampleLog(Array(events[..<cut]))
            defer { log.remove() }
            let timeline = ViewTimeline(log.followed)
            for count in [cut, events.count] {
                if count > cut { try log.append(events[cut...]) }
                try log.followed.readToEnd()
                for _ in 0..<8 {
                    let view = choices.int(in: 0...ViewTimeline.names.count - 1)
                    let position = Position(UInt64(choices.int(in: 0...count)))
                    choices.note("\(ViewTimeline.names[view]) at \(position) of \(count)")
                    let expected = try SampleLog.naiveRows(
                        of: view, at: position, in: log.directory)
                    try #require(try timeline.rows(of: view, at: position) == expected)
                }
            }
        }
    }

    @Test func `every view of a rich log has the rows of a naive fold`() throws {
        let events = try Histories.rich()
        let log = try SampleLog(events)
        defer { log.remove() }
        try log.followed.readToEnd()
        let timeline = ViewTimeline(log.followed)
        var rowCounts: [Int] = []
        for view in ViewTimeline.names.indices {
            for position in [events.count, events.count / 2] {
                let position = Position(UInt64(position))
                let rows = try timeline.rows(of: view, at: position)
                let naive = try SampleLog.naiveRows(of: view, at: position, in: log.directory)
                #expect(rows == naive)
                rowCounts.append(rows.count)
            }
        }
        #expect(rowCounts.count { $0 > 0 } > 8)
    }

    @Test func `an event is a change of a view if the states before and after it differ`() throws {
        try Property.check("changes", runs: 40) { choices in
            let log = try SampleLog(try Histories.random(&choices, 1...60))
            defer { log.remove() }
            try log.followed.readToEnd()
            for view in ViewTimeline.names.indices {
                choices.note(ViewTimeline.names[view])
                let changes = log.followed.withState { $0.changes(of: view).map { Int($0) } }
                try #require(
                    changes == (try SampleLog.naiveChanges(of: view, in: log.directory)))
            }
        }
    }

    @Test func `a position after the end is refused, and an unknown view is not found`() throws {
        let log = try SampleLog(Histories.statuses())
        defer { log.remove() }
        try log.followed.readToEnd()
        let timeline = ViewTimeline(log.followed)
        #expect(throws: APIError.self) { try timeline.rows(of: 0, at: Position(12)) }
        let api = API(log.followed, isWritable: false)
        #expect(api.reply("views/notes?at=12").status == 422)
        #expect(api.reply("views/nowhere").status == 404)
    }

    @Test func `a position before a compaction is refused, and later ones have their rows`()
        async throws
    {
        let log = try await CompactedLog()
        defer { log.folder.remove() }
        let through = try LogReader(log.directory).compactedThrough()
        let api = try API(reading: log.directory)
        #expect(through.rawValue > 1)
        let refused = api.reply("views/notes?at=\(through.rawValue - 1)")
        #expect(refused.status == 422)
        #expect(try refused.json()["error"]?["code"]?.stringValue == "compacted")
        let notes = try ViewTimeline.number(of: "notes")
        let last = try #require(api.log.withState { $0.index.positions.last })
        #expect(last > through.rawValue)
        for position in [through, Position(last)] {
            let rows = try api.views.rows(of: notes, at: position)
            let naive = try SampleLog.naiveRows(of: notes, at: position, in: log.directory)
            #expect(rows == naive)
            #expect(!rows.isEmpty)
        }
    }

    // MARK: The fold

    @Test func `a long fold has states at equal distances and a bounded plot of the lag`() throws {
        let events = try Histories.settings(Array(0..<5_000))
        let log = try SampleLog(events, commit: 1_000)
        defer { log.remove() }
        var fold = LogFold()
        try fold.advance(through: Position(5_000), in: LogFolder(log.directory))
        #expect(fold.last == Position(5_000))
        #expect(fold.snapshots.map(\.position.rawValue) == [0, 1_024, 2_048, 3_072, 4_096])
        #expect(fold.snapshot(before: Position(2_047)).position == Position(1_024))
        #expect(fold.snapshot(before: Position(2_048)).position == Position(2_048))
        let settings = try ViewTimeline.number(of: "settings")
        for snapshot in fold.snapshots {
            let naive = try SampleLog.naiveRows(
                of: settings, at: snapshot.position, in: log.directory)
            #expect(Array(snapshot.states[settings].rows()) == naive)
        }
        #expect((100...300).contains(fold.lag.count))
        let times = fold.lag.map(\.time)
        #expect(times == times.sorted())
        // A timeline that begins at a snapshot.
        try log.followed.readToEnd()
        let position = Position(3_100)
        let rows = try ViewTimeline(log.followed).rows(of: settings, at: position)
        #expect(try rows == SampleLog.naiveRows(of: settings, at: position, in: log.directory))
    }

    @Test func `the plot of the lag has what waits, and since when`() throws {
        let log = try SampleLog(Histories.rich())
        defer { log.remove() }
        try log.followed.readToEnd()
        let fold = log.followed.withState { $0.fold }
        #expect(fold.lag.last?.pending == fold.outbox.count)
        #expect(fold.lag.last?.oldest == fold.outbox.entries.first?.timestamp)
        #expect(fold.lag.contains { $0.pending > 0 })
    }

    // MARK: Differences

    /// Rows with two key fields and a value, sorted by key.
    private func rows(_ choices: inout Choices) -> [ViewRow] {
        var values: [[String]: Int] = [:]
        for _ in 0..<choices.int(in: 0...8) {
            let key = [choices.element(of: ["a", "b", "é"]), choices.element(of: ["x", "y"])]
            values[key] = choices.int(in: 0...2)
        }
        return values.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { key, value in
            var row = ViewRow()
            row.appendField("first", key[0])
            row.appendField("second", key[1])
            row.appendField("value", value)
            return row
        }
    }

    @Test func `the changes applied to the rows before give the rows after`() throws {
        try Property.check("changes", runs: 500, covering: ["changed", "added"]) { choices in
            let (before, after) = (rows(&choices), rows(&choices))
            let changes = RowChanges(from: before, to: after).changes
            var result = Set(before)
            for change in changes {
                try #require(change.before != nil || change.after != nil)
                if let old = change.before {
                    try #require(result.remove(old) != nil)
                }
                if let new = change.after {
                    try #require(result.insert(new).inserted)
                    choices.count(change.before == nil ? "added" : "changed")
                }
                if let old = change.before, let new = change.after {
                    try #require(old != new)
                    try #require(old.fields[0] == new.fields[0])
                    try #require(!change.members.isEmpty)
                    try #require(!change.members.contains("first"))
                }
            }
            try #require(result == Set(after))
            try #require(RowChanges(from: after, to: after).changes.isEmpty)
        }
    }

    @Test func `a key has as many leading fields as distinguish all rows`() throws {
        func row(_ values: String...) -> ViewRow {
            var row = ViewRow()
            for (number, value) in values.enumerated() { row.appendField("\(number)", value) }
            return row
        }
        #expect(RowChanges.keyCount([row("a", "x"), row("b", "x")]) == 1)
        #expect(RowChanges.keyCount([row("a", "x"), row("a", "y")]) == 2)
        #expect(RowChanges.keyCount([row("a", "x")], [row("a", "y")]) == 1)
        #expect(RowChanges.keyCount([]) == 0)
        #expect(RowChanges.key(row("a", "x", "é"), 2) == "a · x")
    }

    // MARK: Causes

    /// The rows by key, with keys of some leading fields.
    private func keyed(_ rows: [ViewRow], _ count: Int) -> [String: ViewRow] {
        Dictionary(rows.map { (RowChanges.key($0, count), $0) }, uniquingKeysWith: { $1 })
    }

    /// Expects that each changed row differs just before its cause and is the later one from then on.
    private func checkCauses(
        of view: Int, from: Position, to: Position, _ log: FollowedLog
    ) throws -> [String: UInt64] {
        let timeline = ViewTimeline(log)
        var known: [UInt64: [ViewRow]] = [:]
        func rows(_ position: UInt64) throws -> [ViewRow] {
            if let rows = known[position] { return rows }
            let rows = try timeline.rows(of: view, at: Position(position))
            known[position] = rows
            return rows
        }
        let (before, after) = (try rows(from.rawValue), try rows(to.rawValue))
        let changes = RowChanges(from: before, to: after).changes
        let causes = try ChangeCauses(of: changes, view: view, from: from, to: to, timeline, log)
            .found
        let count = RowChanges.keyCount(before, after)
        for change in changes {
            let cause = try #require(causes[change.key])
            let previous = keyed(try rows(cause - 1), count)[change.key]
            try #require(previous != change.after, "\(change.key) before \(cause)")
            for position in cause...to.rawValue {
                let row = keyed(try rows(position), count)[change.key]
                try #require(row == change.after, "\(change.key) of \(cause) at \(position)")
            }
        }
        return causes
    }

    @Test func `the cause of a change is the last event after which the row is as later`() throws {
        try Property.check("causes", runs: 20, covering: ["change"]) { choices in
            let events = try Histories.random(&choices, 1...30)
            guard !events.isEmpty else { return }
            let log = try SampleLog(events)
            defer { log.remove() }
            try log.followed.readToEnd()
            let from = choices.int(in: 0...events.count - 1)
            let to = choices.int(in: from...events.count)
            for view in ViewTimeline.names.indices {
                choices.note("\(ViewTimeline.names[view]) from \(from) to \(to)")
                let causes = try checkCauses(
                    of: view, from: Position(UInt64(from)), to: Position(UInt64(to)), log.followed)
                choices.count("change", by: causes.count)
            }
        }
    }

    @Test func `a value that was left and set again was caused by the second event`() throws {
        // The keys of every seventh event are equal.
        let events = try Histories.settings([1] + Array(repeating: 0, count: 6) + [2])
        let again = try Histories.settings(
            [1] + Array(repeating: 0, count: 6) + [2] + Array(repeating: 0, count: 6) + [1])
        for (history, cause) in [(events, UInt64(8)), (again, 15)] {
            let log = try SampleLog(history)
            defer { log.remove() }
            try log.followed.readToEnd()
            let settings = try ViewTimeline.number(of: "settings")
            let causes = try checkCauses(
                of: settings, from: .zero, to: Position(UInt64(history.count)), log.followed)
            #expect(causes["k0"] == cause)
        }
    }
}

/// A log of a store whose replaced events a compaction has removed.
struct CompactedLog {
    let folder: TemporaryFolder
    var directory: String { folder.log }

    static func open(_ directory: String) async throws -> EventStore {
        try await EventStore.open(
            at: directory, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self], keepingUnknownStates: true)
    }

    static func compact(_ directory: String) async throws {
        let store = try await open(directory)
        try store.log.roll()
        try await store.compact()
        try await store.close()
    }

    init() async throws {
        folder = try TemporaryFolder()
        let store = try await Self.open(folder.log)
        for note in 0..<4 {
            let id = "note-\(note)"
            try await store.append(
                NoteAdded(noteId: id, cityId: "oslo", content: "first", createdBy: "ada"))
            for edit in 0..<6 {
                try await store.append(
                    NoteUpdated(noteId: id, content: "edit \(edit)", updatedBy: "ada"))
            }
        }
        var answer = SyncSettled(by: store.incarnation)
        answer.applied = [1...28]
        try await store.append(record: answer)
        try store.log.roll()
        try await store.compact()
        try await store.append(CitySaved(userId: "ada", cityId: "oslo"))
        try await store.append(
            NoteAdded(noteId: "note-9", cityId: "oslo", content: "last", createdBy: "ada"))
        try await store.close()
    }
}
