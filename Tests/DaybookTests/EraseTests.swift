// Erasing a store: refused while something is unsynced, complete when it is not.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct EraseTests {
    @Test(.verifies("ACC-4"))
    func `a store with something unsynced is not erased, says how much, and goes on`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
        try await store.cities.save("lisbon", by: "ada")
        try await store.cities.save("porto", by: "ada")
        await #expect(throws: UnsyncedError(count: 2)) { try await store.erase() }
        try await store.cities.save("oslo", by: "ada")
        #expect(store.view(CitiesView.self).cityIDs.count == 3)
        try await store.close()
        let again = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
        #expect(again.view(CitiesView.self).cityIDs.count == 3)
        try await again.close()
    }

    @Test(.verifies("ACC-4"))
    func `an event whose commit is under way counts as unsynced`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.events.append(
            contentsOf: [
                EventDraft(
                    type: "daybook.city.saved",
                    data: .json(Array(#"{"userId":"u","cityId":"c"}"#.utf8)))
            ], durability: .relaxed)
        await #expect(throws: UnsyncedError(count: 1)) { try await store.erase() }
        try await store.close()
    }

    @Test(.verifies("ACC-4"))
    func `concurrent erasures and appends report what happened`() async throws {
        let store = try await OfflineStore.inMemory()
        let recorded = await withTaskGroup(of: Int.self) { group in
            for number in 0..<40 {
                group.addTask {
                    do {
                        if number == 20 {
                            try await store.erase()
                        } else {
                            try await store.cities.save("city-\(number)", by: "ada")
                            return 1
                        }
                    } catch {
                        #expect(
                            (error as? LogError)?.code == .closed || error is UnsyncedError,
                            "\(error)")
                    }
                    return 0
                }
            }
            return await group.reduce(0, +)
        }
        // Either the erasure came first and nothing was recorded, or it was refused.
        #expect(recorded == 0 || recorded == 39)
        #expect(store.view(CitiesView.self).cityIDs.count == recorded)
    }

    @Test(.verifies("ACC-5"))
    func `an erased store is closed, its folder is empty, and a new log can begin there`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
        try await store.cities.save("lisbon", by: "ada")
        try await store.events.checkpoint()
        #expect(try folder.names(in: "log").contains("checkpoints"))
        let changes = store.notes(in: "lisbon").changes
        try await store.erase(discardingUnsynced: true)
        #expect(try folder.names(in: "log") == [])
        await #expect {
            try await store.cities.save("porto", by: "ada")
        } throws: {
            ($0 as? LogError)?.code == .closed
        }
        for await notes in changes { #expect(notes == []) }
        let next = try await OfflineStore.open(at: folder.appending("log"), account: "grace")
        #expect(next.view(CitiesView.self).cityIDs == [])
        #expect(next.events.incarnation != store.events.incarnation)
        try await next.close()
    }

    @Test(.verifies("ACC-5"))
    func `an erasure ends a running compaction and checkpoint, and leaves none of their files`()
        async throws
    {
        for _ in 0..<20 {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let store = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
            let note = try await store.notes.add("0", city: "lisbon", by: "ada")
            for number in 1...5 {
                try await store.notes.update(note.id, "\(number)", by: "ada")
                try store.events.log.roll()
            }
            async let compaction: CompactionReport? = try? store.events.compact()
            async let checkpoint: Void? = try? store.events.checkpoint()
            try await store.erase(discardingUnsynced: true)
            _ = await (compaction, checkpoint)
            #expect(try folder.names(in: "log") == [])
        }
    }

    @Test(.verifies("ACC-5"))
    func `the target of a symbolic link is not deleted`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let outside = folder.appending("outside")
        try FileManager.default.createDirectory(at: outside, withIntermediateDirectories: false)
        try Data("dear".utf8).write(to: folder.appending("outside/letter"))
        let store = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
        try folder.run("ln", "-s", "../outside", "log/folder")
        try folder.run("ln", "-s", "../outside/letter", "log/file")
        try folder.run("ln", "-s", "nowhere", "log/dangling")
        try folder.run("mkdir", "-p", "log/mine/inner")
        try folder.run("ln", "-s", "../../../outside", "log/mine/inner/folder")
        try folder.run("mkfifo", "log/mine/pipe")
        try await store.erase()
        #expect(try folder.names(in: "log") == [])
        #expect(try folder.names(in: "outside") == ["letter"])
        #expect(try Data(contentsOf: folder.appending("outside/letter")) == Data("dear".utf8))
    }
}
