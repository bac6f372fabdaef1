// The conditions of a backup, its assets, and its record. Spec/model/media.md, MED-21.

import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct BackupTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)

    private func open() async throws -> OfflineStore {
        try await OfflineStore.inMemory(clock: { Self.now })
    }

    @Test(.verifies("MED-21"))
    func `without the setting there is no backup`() async throws {
        let store = try await open()
        let conditions = BackupConditions(network: .wifi, isCharging: true)
        #expect(store.deviceMedia.backupDecision(under: conditions) == .refused(.off))
        try await store.settings.put(.autoBackup, true)
        #expect(store.deviceMedia.backupDecision(under: conditions) == .start)
        try await store.settings.put(.autoBackup, false)
        #expect(store.deviceMedia.backupDecision(under: conditions) == .refused(.off))
    }

    @Test(.verifies("MED-21"), arguments: [false, true], [NetworkPath.none, .cellular, .wifi])
    func `each setting prevents a backup only if its condition is not met`(
        isStrict: Bool, network: NetworkPath
    ) async throws {
        let store = try await open()
        try await store.settings.put(.autoBackup, true)
        try await store.settings.put(.backgroundBackup, !isStrict)
        try await store.settings.put(.backupRequireWifi, isStrict)
        try await store.settings.put(.backupRequireCharging, isStrict)
        for (isCharging, isInBackground) in [(false, false), (true, false), (true, true)] {
            let decision = store.deviceMedia.backupDecision(
                under: BackupConditions(
                    network: network, isCharging: isCharging, isInBackground: isInBackground))
            let expected: BackupDecision =
                switch (isStrict, network) {
                case (true, _) where isInBackground: .refused(.offInBackground)
                case (_, .none): .refused(.noNetwork)
                case (true, .cellular): .refused(.metered)
                case (true, .wifi) where !isCharging: .refused(.notCharging)
                default: .start
                }
            #expect(decision == expected)
        }
    }

    @Test(.verifies("MED-21"))
    func `a backup waits the minutes that the user has set after the last change`() async throws {
        let store = try await open()
        try await store.settings.put(.autoBackup, true)
        try await store.settings.put(.backupTriggerDelay, 5)
        let conditions = BackupConditions(network: .cellular, isCharging: false)
        func decision(_ seconds: Double) -> BackupDecision {
            store.deviceMedia.backupDecision(
                under: conditions, changedAt: Self.now,
                at: Self.now.addingTimeInterval(seconds))
        }
        #expect(decision(299) == .wait(until: Timestamp(Self.now.addingTimeInterval(300))))
        #expect(decision(300) == .start)
        #expect(store.deviceMedia.backupDecision(under: conditions, at: Self.now) == .start)
        try await store.settings.put(.backupTriggerDelay, -5)
        #expect(decision(0) == .start)
    }

    @Test(.verifies("MED-21"))
    func `only what is on the device alone, selected, no duplicate and not trashed is taken`()
        async throws
    {
        let store = try await open()
        let time = ZonedTime(Timestamp(Self.now))
        func asset(_ id: String, remote: String? = nil, trashed: Bool = false) -> Asset {
            Asset(
                id: id, remoteId: remote, localId: id == "server" ? nil : "l-\(id)",
                ownerId: "ada", checksum: id, type: .image, fileName: id, fileCreatedAt: time,
                fileModifiedAt: time, updatedAt: time, isTrashed: trashed)
        }
        try await store.assets.putAll([
            asset("new"), asset("second"), asset("both", remote: "r"),
            asset("trash", trashed: true), asset("known"), asset("excluded"), asset("unselected"),
            asset("nowhere"), asset("server", remote: "s"),
        ])
        try await store.deviceMedia.addDuplicates(["l-known"])
        try await store.deviceMedia.put([
            BackupAlbum(id: "camera", name: "", selection: .include),
            BackupAlbum(id: "private", name: "", selection: .exclude),
            BackupAlbum(id: "others", name: "", selection: .none),
        ])
        let albums: (String) -> [String] = { localId in
            switch localId {
            case "l-excluded": ["camera", "private"]
            case "l-unselected": ["others", "unknown"]
            case "l-nowhere": []
            default: ["camera", "others"]
            }
        }
        #expect(
            store.deviceMedia.backupCandidates(albums: albums).map(\.id) == ["new", "second"])
        #expect(store.deviceMedia.backupCandidates(1, albums: albums).map(\.id) == ["new"])
    }

    @Test(.verifies("MED-21"))
    func `the first failure is recorded until a backup succeeds, which its albums record`()
        async throws
    {
        let store = try await open()
        try await store.deviceMedia.put([
            BackupAlbum(id: "camera", name: "Camera", selection: .include)
        ])
        try await store.deviceMedia.recordBackupFailure()
        #expect(store.settings.tryGet(.backupFailedSince) == Timestamp(Self.now))
        let position = await store.events.lastDurable
        try await store.deviceMedia.recordBackupFailure()
        #expect(await store.events.lastDurable == position)
        try await store.deviceMedia.recordBackup(of: ["camera", "unknown"])
        #expect(store.settings.tryGet(.backupFailedSince) == nil)
        let albums = store.deviceMedia.backupAlbums.current
        #expect(albums.map(\.lastBackup?.moment) == [Timestamp(Self.now)])
        #expect(albums.map(\.name) == ["Camera"])
    }
}
