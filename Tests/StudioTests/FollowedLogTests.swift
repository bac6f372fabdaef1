// A log that is followed while a writer appends, compacts, or creates it.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogStorage
import TestSupport
import Testing

@testable import Studio

@Suite struct FollowedLogTests {
    @Test(.verifies("STU-2"))
    func `events that a writer appends are shown, and nothing is written`() async throws {
        let events = try Histories.statuses()
        let log = try SampleLog(Array(events[..<5]))
        defer { log.remove() }
        let followed = log.followed
        defer { followed.stop() }
        try await followed.follow()
        let api = API(followed, isWritable: false)
        let before = try api.json("log")
        #expect(before["events"]?.int == 5)
        #expect(before["isOpen"] == .bool(true))
        #expect(before["problem"] == .null)
        try log.append(events[5...])
        try await eventually("statuses", is: Histories.expectedStatuses) { followed.statuses }
        let after = try api.json("log")
        #expect(after["events"]?.int == 11)
        let version = try #require(after["version"]?.int)
        #expect(version > before["version"]?.int ?? .max)
        try log.close()
        let image = try log.folder.image()
        for address in ["events", "events/3", "views/notes", "files", "verify", "outbox"] {
            #expect(api.reply(address).status == 200)
        }
        #expect(try log.folder.image() == image)
    }

    @Test(.verifies("STU-3")) func `a log is shown as soon as there is one`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let followed = FollowedLog(LogFolder(folder.log))
        defer { followed.stop() }
        try await followed.follow()
        #expect(followed.withState { $0.problem?.code } == "noLog")
        let store = try await CompactedLog.open(folder.log)
        try await eventually("problem", is: Optional(LogProblem.empty)) {
            followed.withState { $0.problem }
        }
        try await store.append(CitySaved(userId: "ada", cityId: "oslo"))
        try await eventually("statuses", is: [.pending]) { followed.statuses }
        #expect(followed.withState { $0.problem } == nil)
        try await store.close()
    }

    @Test(.verifies("STU-2", "STU-9")) func `a compaction is followed`() async throws {
        let log = try await CompactedLog()
        defer { log.folder.remove() }
        let followed = FollowedLog(LogFolder(log.directory))
        defer { followed.stop() }
        try await followed.follow()
        let through = followed.withState { $0.fold.compactedThrough }
        let store = try await CompactedLog.open(log.directory)
        try await Self.compactSettledNotes(store)
        struct Progress {
            var isFolded: Bool
            var compactedThrough: Position?
            var shown: Int
            var stored: Int
        }
        func isFollowed(_ progress: Progress) -> Bool {
            progress.isFolded && progress.compactedThrough ?? .zero > through ?? .zero
                && progress.shown == progress.stored
        }
        try await eventually("compacted log", where: isFollowed) {
            try followed.withState { state in
                Progress(
                    isFolded: state.isFolded, compactedThrough: state.fold.compactedThrough,
                    shown: state.index.count, stored: try Self.count(log.directory))
            }
        }
        try await store.close()
    }

    @Test(.verifies("STU-2"))
    func `a segment that was sealed and compacted between two observations is detected`()
        async throws
    {
        let log = try await CompactedLog()
        defer { log.folder.remove() }
        func detects(_ watch: inout CompactionWatch) throws -> Bool {
            watch.detectRewrite(in: try LogReader(log.directory).outline())
        }
        let store = try await CompactedLog.open(log.directory)
        var watch = CompactionWatch()
        _ = try detects(&watch)
        #expect(try !detects(&watch))
        try await Self.compactSettledNotes(store)
        #expect(try detects(&watch))
        #expect(try !detects(&watch))
        try store.log.roll()
        #expect(try !detects(&watch), "a segment that was sealed and not compacted")
        try await store.close()
    }

    /// Appends changes of one note, lets the server acknowledge them, seals their segment and compacts.
    private static func compactSettledNotes(_ store: EventStore) async throws {
        for number in 0..<3 {
            try await store.append(
                NoteUpdated(noteId: "note-9", content: "\(number)", updatedBy: "ada"))
        }
        let last = await store.lastDurable
        var answer = SyncSettled(by: store.incarnation)
        answer.applied = [30...last.rawValue]
        try await store.append(record: answer)
        try store.log.roll()
        #expect(try await store.compact().removed > 0)
    }

    private static func count(_ directory: String) throws -> Int {
        var count = 0
        try LogReader(directory).forEachLine { _, _ in
            count += 1
            return true
        }
        return count
    }
}
