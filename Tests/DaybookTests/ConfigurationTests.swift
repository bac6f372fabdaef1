// Invalid arguments of `open`: each is refused, and the message names it.

import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@testable import DaybookOffline

private struct Walked: EventPayload, Codable {
    static let type = "com.example.walked"
    var metres: Int
}

/// Another payload under the same name.
private struct Walk: EventPayload, Codable {
    static let type = Walked.type
    var steps: Int
}

private struct Note: EventPayload, Codable {
    static let type = NoteAdded.type
    var text: String
}

private struct Own: EventPayload, Codable {
    static let type = "daybook.my.own"
    var value: Int
}

private protocol Blank: Projection {}

extension Blank {
    static var version: Int { 1 }
    mutating func fold(_ event: Event) {}
}

private struct First: Blank { static let name = "trips" }
private struct Second: Blank { static let name = "trips" }
private struct Notes: Blank { static let name = "notes" }
private struct Unnamed: Blank { static let name = "" }
private struct Endless: Blank { static let name = String(repeating: "x", count: 70_000) }
private struct Reserved: Blank { static let name = "daybook.time-floor" }
private struct Negative: Projection {
    static let name = "negative"
    static let version = -1
    mutating func fold(_ event: Event) {}
}

@Suite struct ConfigurationTests {
    private static func refusal(_ open: () async throws -> OfflineStore) async -> String? {
        do {
            try await open().close()
            return nil
        } catch let error as EventError {
            return error.code == .refused ? error.detail : nil
        } catch { return nil }
    }

    @Test(.verifies("EVT-15"))
    func `inconsistent rules are refused by name`() async {
        let rules: [([EventRule], culprit: String)] = [
            ([.of(Walked.self), .of(Walked.self, action: "WALK")], "com.example.walked"),
            ([.of(Walked.self), .of(Walk.self)], "com.example.walked"),
            ([.of(Note.self)], "daybook.note.added"),
            ([EventRule(type: "daybook.sync.settled", action: nil) { _ in }], "daybook.sync"),
            ([.of(Own.self)], "daybook.my.own"),
            ([EventRule(type: "", action: nil) { _ in }], "empty event type"),
            ([EventRule(type: "com.example.x", action: "") { _ in }], "com.example.x"),
        ]
        for (rules, culprit) in rules {
            let refusal = await Self.refusal { try await OfflineStore.inMemory(rules: rules) }
            #expect(refusal?.contains(culprit) == true, "\(culprit): \(refusal ?? "opened")")
        }
        #expect(await Self.refusal { try await .inMemory(rules: [.of(Walked.self)]) } == nil)
    }

    @Test(.verifies("EVT-16", "EVT-15"))
    func `upcasters of the library's types are refused by name`() async {
        let upcasters: [(from: String, to: String, culprit: String)] = [
            ("daybook.note.added", "com.example.note", "daybook.note.added"),
            ("daybook.note.pinned", "com.example.note", "daybook.note.pinned"),
            ("com.example.note", "daybook.note.pinned", "daybook.note.pinned"),
            ("com.example.note", "daybook.sync.settled", "daybook.sync.settled"),
            ("", "com.example.note", "empty"), ("com.example.note", "", "empty"),
        ]
        for (old, new, culprit) in upcasters {
            let refusal = await Self.refusal {
                try await OfflineStore.inMemory(upcasters: [Upcaster(from: old, to: new) { $0 }])
            }
            #expect(refusal?.contains(culprit) == true, "\(culprit): \(refusal ?? "opened")")
        }
    }

    @Test(.verifies("EVT-15"))
    func `views that cannot be distinguished, or not be stored, are refused by name`() async {
        let views: [([any Projection.Type], culprit: String)] = [
            ([First.self, Second.self], "Second"), ([Notes.self], "notes"),
            ([Unnamed.self], "Unnamed"), ([Endless.self], "70000 bytes"),
            ([Reserved.self], "daybook.time-floor"), ([Negative.self], "-1"),
        ]
        for (views, culprit) in views {
            let refusal = await Self.refusal { try await OfflineStore.inMemory(views: views) }
            #expect(refusal?.contains(culprit) == true, "\(culprit): \(refusal ?? "opened")")
        }
        // A view that is given twice counts once.
        let twice: [any Projection.Type] = [First.self, First.self, NotesView.self]
        #expect(await Self.refusal { try await .inMemory(views: twice) } == nil)
    }

    @Test(.verifies("EVT-15"))
    func `a compaction policy with a negative limit is refused`() async {
        let changes: [(@Sendable (inout CompactionPolicy) -> Void, culprit: String)] = [
            ({ $0.garbageShare = -0.1 }, "garbageShare"), ({ $0.garbageShare = 1.1 }, "1.1"),
            ({ $0.garbageShare = .nan }, "nan"), ({ $0.garbageBytesMin = -1 }, "garbageBytesMin"),
        ]
        for (change, culprit) in changes {
            var policy = CompactionPolicy()
            change(&policy)
            let refusal = await Self.refusal {
                try await OfflineStore.open(
                    at: URL(filePath: "/log"), compaction: policy,
                    environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
            }
            #expect(refusal?.contains(culprit) == true, "\(culprit): \(refusal ?? "opened")")
        }
    }

    @Test(.verifies("EVT-15"))
    func `negative limits of images are refused, and the limits stay`() async throws {
        let store = try await OfflineStore.inMemory()
        let limits: [WritableKeyPath<ImageCacheLimits, Int>] = [
            \.thumbnails, \.previews, \.albumThumbnails, \.memoryBytes, \.memoryImages,
        ]
        for limit in limits {
            var changed = ImageCacheLimits()
            changed[keyPath: limit] = -1
            let wrong = changed
            let error = await #expect(throws: EventError.self) {
                try await store.images.setLimits(wrong)
            }
            #expect(error?.code == .refused)
            #expect(error?.detail.contains("-1") == true)
        }
        #expect(await store.images.limits == ImageCacheLimits())
        try await store.close()
    }

    @Test(.verifies("EVT-16"))
    func `a type of the library is the library's: an app cannot record one, an import can`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        let draft = try EventDraft(Own(value: 1))
        let error = await #expect(throws: EventError.self) { try await store.append(Own(value: 1)) }
        #expect(error?.code == .refused)
        #expect(error?.detail.contains("daybook.my.own") == true)
        await #expect(throws: EventError.self) { try await store.write { $0.append(draft) } }
        #expect(await store.events.lastDurable == .zero)
        // An export of a later release.
        try await store.events.append(history: [draft])
        #expect(try await store.events.append(contentsOf: [draft])[0].isNew == false)
        try await store.close()
    }
}
