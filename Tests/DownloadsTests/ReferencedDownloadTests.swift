// Downloads ask the app's check of ids, as the commands do. Spec/model/events.md, EVT-17.

import DaybookTestKit
import DownloadHistories
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private struct Source: LearningSource {
    func reviews(
        of userId: String, _ combination: LanguageCombination, first count: Int
    ) async throws -> [ReviewSession] { [] }
    func lesson(
        _ lessonId: String, course courseId: String, _ combination: LanguageCombination
    ) async throws -> LearningUnit { LearningUnit(content: Array("{}".utf8)) }
    func file(_ url: String, bytesMax: Int) async throws -> [UInt8] { [1] }
}

@Suite(.verifies("EVT-17")) struct ReferencedDownloadTests {
    private struct Unavailable: Error {}

    private func openStore() async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), account: "u",
            references: ReferenceCheck { reference, _ in
                if reference.description.contains("broken") { throw Unavailable() }
                return !reference.description.contains("ghost")
            },
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
    }

    @Test func `a lesson of a course that the app does not know is not downloaded`() async throws {
        let store = try await openStore()
        try await store.learning.selectCombination(
            LanguageCombination(learn: "es", display: "de"), for: "u")
        let downloads = LearningDownloads(
            store, source: Source(), user: "u", reachability: AlwaysReachable(), policy: .iOS)
        await #expect {
            try await downloads.downloadLesson("l", course: "ghost")
        } throws: {
            ($0 as? EventError)?.code == .unknownReference
        }
        try await downloads.downloadLesson("l", course: "c")
        #expect(store.learning.storedLessons.current.map(\.courseId) == ["c"])
    }

    @Test func `automatic download leaves out cities that the app does not know or cannot look up`()
        async throws
    {
        let store = try await openStore()
        try await store.preferences.update(for: "u") { $0.autoDownloadEnabled = true }
        try await store.append(CitySaved(userId: "u", cityId: "a ghost"))
        try await store.append(CitySaved(userId: "u", cityId: "a broken one"))
        try await store.append(CitySaved(userId: "u", cityId: "lisbon"))
        #expect(try await store.downloads.queueWanted(for: "u") == ["lisbon"])
    }

    @Test func `a download of a city that the app does not know fails, and no copy is stored`()
        async throws
    {
        let store = try await openStore()
        let city = SampleCity("ghost", sizes: [1_000])
        let server = try ImageServer { city.reply(to: $0) ?? ImageServer.Reply(404) }
        // From another device's log, or from before the check.
        let job = store.events.newID().text
        try await store.events.append(
            DownloadQueued(jobId: job, cityId: city.id, isExplicit: true))
        let manager = DownloadManager(
            store, base: try #require(URL(string: server.base)), user: "u",
            reachability: AlwaysReachable())
        let work = Task { try await manager.run() }
        try await eventually("status", is: Optional(DownloadStatus.failed)) {
            store.view(DownloadsView.self)[job]?.status
        }
        #expect(store.view(CitiesView.self).offline(city.id) == nil)
        work.cancel()
        try await work.value
    }
}
