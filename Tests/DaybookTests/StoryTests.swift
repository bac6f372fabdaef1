// The story of one event: its segment, the server's verdicts, its state.
// Spec/operations/logtool.md, TOOL-22.

import Daybook
import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct StoryTests {
    private let files = InMemoryFileSystem()

    private func story(_ store: EventStore, _ event: Appended) async throws -> EventStory {
        try #require(try await store.story(of: event.id))
    }

    @Test(.verifies("TOOL-22"))
    func `a story has the event, its segment, and the verdicts in order`() async throws {
        let store = try await HikeLog.write(files)
        let hike = try await store.append(Hike(path: "lake", kilometres: 4))
        try await store.record(.retry, of: hike, retryCount: 1, code: "busy")
        try await store.settleAll()
        let story = try await story(store, hike)
        #expect(story.id == hike.id)
        #expect(story.position == Position(1))
        #expect(story.segment == "00000000000000000001.lz4")
        #expect(try story.event?.payload(as: Hike.self).kilometres == 4)
        #expect(story.steps.map(\.kind) == [.retry, .applied])
        #expect(story.steps.map(\.position) == [Position(2), Position(3)])
        #expect(story.verdicts == story.steps)
        #expect(story.replacements.isEmpty)
        let verdict = try #require(story.steps.first?.verdict)
        #expect(verdict.code == "busy")
        #expect(verdict.message == nil)
        #expect(verdict.retryCount == 1)
        #expect(story.steps[0].description == "the server said not now, retry 1: busy")
        #expect(story.status == .settled)
        #expect(story.status.description == "the server has it")
        try await store.close()
    }

    @Test(.verifies("TOOL-22"))
    func `a waiting event names the one that holds its lane`() async throws {
        let store = try await HikeLog.write(files)
        let first = try await store.append(Hike(path: "lake"))
        let second = try await store.append(Hike(path: "lake"))
        let other = try await store.append(Hike(path: "forest"))
        #expect(try await story(store, other).status == .pending(ahead: 0, first: nil))
        try await store.record(.parked, of: first, code: "too_long")
        #expect(try await story(store, first).status == .parked(nextAttemptAt: nil))
        let status = try await story(store, second).status
        guard case .pending(1, let holder?) = status else {
            Issue.record("\(status)")
            return
        }
        #expect(holder.id == first.id)
        #expect(holder.status == .failed)
        #expect(status.description.hasSuffix("at position 1, which is parked"))
        try await store.record(.parked, of: other, failuresAlone: 1, code: "http_403")
        let aside = try await story(store, other).status
        guard case .setAside = aside else {
            Issue.record("\(aside)")
            return
        }
        #expect(!aside.description.contains("retries"))
        try await store.close()
    }

    @Test(.verifies("TOOL-22"))
    func `a replacement after a conflict is in the stories of both events`() async throws {
        let store = try await HikeLog.write(files)
        let hike = try await store.append(Hike(path: "lake"))
        try await store.record(.conflict, of: hike, code: "stale_base")
        #expect(try await story(store, hike).status == .conflict)
        try await store.outbox.resolve(hike.id, .keepMine)
        let old = try await story(store, hike)
        #expect(old.steps.map(\.kind) == [.conflict, .superseded, .replacement])
        #expect(old.status == .retracted)
        let replacement = try #require(old.replacements.first)
        #expect(replacement.type == Hike.type)
        let new = try #require(try await store.story(of: replacement.id))
        #expect(new.replacedID == hike.id.uuidString.lowercased())
        #expect(new.baseID == nil)
        #expect(new.steps.isEmpty)
        #expect(new.status == .pending(ahead: 0, first: nil))
        try await store.close()
    }

    @Test(.verifies("TOOL-22"))
    func `the position of an event that compaction removed is known; an unknown id has no story`()
        async throws
    {
        let store = try await OfflineStore.open(
            at: HikeLog.url, compaction: nil, environment: LogEnvironment(fileSystem: files))
        let note = try await store.notes.add("1", city: "oslo", by: "ada")
        for text in ["2", "3"] { try await store.notes.update(note.id, text, by: "ada") }
        let replaced = try #require(try await store.events.event(at: Position(2)))
        try await store.events.settleAll()
        try store.events.log.roll()
        #expect(try await store.compact().removed > 0)
        let story = try #require(try await store.events.story(of: replaced.id))
        #expect(story.status == .removed)
        #expect(story.position == Position(2))
        #expect(story.event == nil)
        #expect(story.segment == nil)
        #expect(story.steps.isEmpty)
        #expect(try await store.events.story(of: UUID()) == nil)
        try await store.close()
    }

    @Test(.verifies("TOOL-22"))
    func `a reader in another process tells the same story, and a relaxed event has one, too`()
        async throws
    {
        let store = try await HikeLog.write(files)
        let hike = try await store.append(Hike(path: "lake"), durability: .relaxed)
        let story = try await story(store, hike)
        #expect(try await HikeLog.read(files).story(of: hike.id) == story)
        try await store.close()
        await #expect(throws: LogError.self) { try await store.story(of: hike.id) }
    }

    @Test func `a cancelled story ends with an error`() async throws {
        let store = try await HikeLog.write(files)
        let hike = try await store.append(Hike(path: "lake"))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.story(of: hike.id)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        try await store.close()
    }
}
