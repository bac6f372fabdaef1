// A store is backed up while it records. Spec/format/backup.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

private struct Step: EventPayload, Codable {
    static let type = "com.example.step"
    var number: Int
}

@Suite struct StoreBackupTests {
    @Test(.verifies("BAK-1", "BAK-3"))
    func `a store's backup has relaxed events and files, and is a store of its own`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let backup = folder.appending("backup")
        let store = try await OfflineStore.open(at: folder.appending("log"), account: "a")
        let content = Array("a picture".utf8)
        let file = try await store.files.store(content) { $0 }
        try await store.events.append(Step(number: 1), durability: .relaxed)

        let summary = try await store.backup(to: backup)
        let last = await store.events.lastDurable
        #expect(summary.last == last)
        #expect(summary.files == 1)
        let copy = try await OfflineStore.open(at: backup, account: "a")
        #expect(copy.events.recovery == RecoveryReport())
        #expect(copy.events.logID == store.events.logID)
        #expect(copy.events.incarnation != store.events.incarnation)
        #expect(try await copy.files.read(file) == content)
        try await copy.events.append(Step(number: 2))
        try await copy.close()

        try FileManager.default.createSymbolicLink(
            at: folder.appending("alias"), withDestinationURL: folder.appending("log"))
        for taken in ["backup", "alias/backup", "log/backup"] {
            let error = await #expect(throws: LogError.self) {
                try await store.backup(to: folder.appending(taken))
            }
            #expect(error?.code == .io, "\(taken)")
        }
        try await store.events.suspend()
        let error = await #expect(throws: LogError.self) {
            try await store.backup(to: folder.appending("other"))
        }
        #expect(error?.code == .suspended)
        #expect(try folder.names(in: ".") == ["alias", "backup", "log"])
        try await store.close()
    }
}
