// The export of one account's events, logged in or not. Spec/operations/logtool.md, TOOL-10.

import Daybook
import DaybookTestKit
import Foundation
import LogStorage
import TestSupport
import Testing

@Suite struct AccountExportTests {
    private let folder: TemporaryFolder
    private let storage: DeviceStorage

    init() async throws {
        folder = try TemporaryFolder()
        storage = DeviceStorage(
            DeviceStorage.Paths(
                database: folder.appending("logs"), cache: folder.appending("caches")))
        try await storage.prepare()
    }

    private func open(_ account: String, in name: String) async throws -> EventStore {
        try await HikeLog.write(
            POSIXFileSystem(), at: storage.database.appending(path: name), account: account)
    }

    private func text(_ url: URL) throws -> String { try String(contentsOf: url, encoding: .utf8) }

    @Test(.verifies("TOOL-10"))
    func `an account's events are exported without opening its store, open or closed`()
        async throws
    {
        defer { folder.remove() }
        let ada = try await open("ada", in: "1")
        try await ada.appendHikes(3)
        let grace = try await open("grace", in: "2")
        try await grace.appendHikes(5)
        let whole = folder.appending("whole.ndjson")
        try await grace.export(to: whole)
        try await grace.close()
        let closed = folder.appending("grace.ndjson")
        #expect(try await storage.export(account: "grace", to: closed).events == 5)
        #expect(try text(closed) == text(whole))
        let open = folder.appending("ada.ndjson")
        #expect(try await storage.export(account: "ada", to: open).events == 3)
        try await ada.append(Hike(path: "hill"))
        await #expect(throws: LogError.self) {
            try await storage.export(account: "ada", to: open)
        }
        let summary = try await storage.export(
            account: "ada", to: open, types: [Hike.type], replacing: true)
        #expect(summary.events == 4)
        #expect(summary.last == Position(4))
        try await ada.close()
    }

    @Test(.verifies("TOOL-10"))
    func `an account without a log, or with two, is refused, and other folders are ignored`()
        async throws
    {
        defer { folder.remove() }
        try await open("ada", in: "1").close()
        let broken = storage.database.appending(path: "0")
        try FileManager.default.createDirectory(at: broken, withIntermediateDirectories: false)
        for name in ["lock", "00000000000000000001.lz4"] {
            try Data("no segment".utf8).write(to: broken.appending(path: name))
        }
        let file = folder.appending("copy.ndjson")
        let missing = await #expect(throws: LogError.self) {
            try await storage.export(account: "grace", to: file)
        }
        #expect(missing?.code == .noSuchLog)
        #expect(try await storage.export(account: "ada", to: file).events == 0)
        try await open("ada", in: "2").close()
        let refused = await #expect(throws: EventError.self) {
            try await storage.export(account: "ada", to: file, replacing: true)
        }
        #expect(refused?.code == .refused)
    }
}
