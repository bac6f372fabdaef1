// Which local copies may be deleted, and which files are uploaded again. Spec/model/media.md, MED-15, MED-21
// and MED-22.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private let now: Int64 = 1_800_000_000_000

private func openStore() async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"),
        environment: LogEnvironment(fileSystem: InMemoryFileSystem(), now: { now }))
}

private func time(_ milliseconds: Int64) -> ZonedTime {
    ZonedTime(Timestamp(milliseconds: milliseconds))
}

/// A photo on the device and the server, taken 100 days ago.
private func photo(_ id: String, _ type: AssetType = .image) -> Asset {
    let taken = time(now - 100 * 86_400_000)
    return Asset(
        id: id, remoteId: "r-\(id)", localId: "l-\(id)", ownerId: "u", checksum: "sum-\(id)",
        type: type, fileName: "", fileCreatedAt: taken, fileModifiedAt: taken, updatedAt: taken)
}

extension OfflineStore {
    /// Stores photos whose files are on the device as they were backed up.
    fileprivate func put(_ photos: [Asset]) async throws {
        try await assets.putAll(photos)
        try await deviceMedia.put(
            photos.map { photo in
                .ios(
                    id: "l-\(photo.id)", hash: "sum-\(photo.id)",
                    modifiedTime: photo.fileModifiedAt)
            })
    }
}

@Suite struct CleanUpTests {
    /// A value that the media app stored, and the setting.
    private static let unreadable: [(name: String, json: String)] = [
        ("cleanupKeepFavorites", "0"), ("cleanupKeepMediaType", "1"),
        ("cleanupKeepMediaType", #""moving pictures""#), ("cleanupKeepAlbumIds", #""s,t""#),
        ("cleanupKeepAlbumIds", "-1"), ("cleanupCutoffDaysAgo", #""30""#),
    ]

    @Test(.verifies("MED-15"), arguments: unreadable)
    func `a setting that cannot be read keeps every copy, and the error names it`(
        setting: (name: String, json: String)
    ) async throws {
        let store = try await openStore()
        try await store.put([photo("a"), photo("b", .audio)])
        try await store.settings.put(.cleanupCutoffDaysAgo, 30)
        #expect(await store.assets.cleanUpCandidates().count == 2)
        let put = try SettingPut(
            json: Array(#"{"key":"\#(setting.name)","value":\#(setting.json)}"#.utf8))
        try await store.events.append(contentsOf: [EventDraft(put)])
        #expect(await store.assets.cleanUpCandidates().isEmpty)
        #expect(CleanUpSettings(store.view(SettingsView.self)).unreadable == [setting.name])
        await #expect {
            try await store.assets.freeUpSpace {
                Issue.record("asked for \($0)")
                return []
            }
        } throws: {
            ($0 as? EventError)?.code == .refused && "\($0)".contains(setting.name)
        }
        try await store.close()
    }

    @Test(.verifies("MED-15"))
    func `an album that the store has never had keeps every copy, and the error names it`()
        async throws
    {
        let store = try await openStore()
        try await store.put([photo("a")])
        try await store.settings.put(.cleanupCutoffDaysAgo, 30)
        // The id of an album of the device, whose photos the store does not record.
        try await store.settings.put(.cleanupKeepAlbumIds, ["-1739773001"])
        #expect(await store.assets.cleanUpCandidates().isEmpty)
        await #expect {
            try await store.assets.freeUpSpace { $0 }
        } throws: {
            ($0 as? EventError)?.code == .refused && "\($0)".contains("-1739773001")
        }
        // A link that waits for its album says which photos are in it.
        let links = AlbumLinks(albumId: "-1739773001", assetIds: ["b"], userIds: [])
        try await store.events.append(contentsOf: [EventDraft(AlbumLinked(links))])
        #expect(await store.assets.cleanUpCandidates().map(\.id) == ["a"])
        try await store.close()
    }

    @Test(.verifies("MED-15"), arguments: [0, -1, Int.min])
    func `without a chosen age no copy is deleted`(days: Int) async throws {
        let store = try await openStore()
        try await store.put([photo("a")])
        try await store.settings.put(.cleanupCutoffDaysAgo, days)
        #expect(await store.assets.cleanUpCandidates().isEmpty)
        #expect(await store.assets.cleanUpCandidates(CleanUpSettings()).isEmpty)
        let freed = try await store.assets.freeUpSpace(CleanUpSettings(cutoffDaysAgo: days)) { $0 }
        #expect(freed.isEmpty)
        try await store.close()
    }

    @Test(.verifies("MED-22"))
    func `a file that was edited since its backup is kept and uploaded again`() async throws {
        let store = try await openStore()
        let assets = ["same", "edited", "later", "unrecorded", "untimed"].map { photo($0) }
        try await store.assets.putAll(assets)
        let taken = assets[0].fileModifiedAt
        let later = time(taken.moment.milliseconds + 1)
        try await store.deviceMedia.put([
            .ios(id: "l-same", hash: "sum-same", modifiedTime: taken),
            .ios(id: "l-edited", hash: "other", modifiedTime: taken),
            .ios(id: "l-later", hash: "sum-later", modifiedTime: later),
            .android(id: "l-untimed", hash: "sum-untimed"),
        ])
        try await store.deviceMedia.put([
            BackupAlbum(id: "camera", name: "", selection: .include)
        ])
        func states(_ hashes: DeviceHashes, _ keepUnverified: Bool = true) async -> [[String]] {
            let settings = CleanUpSettings(
                cutoffDaysAgo: 30, deviceHashes: hashes, keepUnverified: keepUnverified)
            let freed = await store.assets.cleanUpCandidates(settings).map(\.id)
            let uploaded = store.deviceMedia.backupCandidates(hashes: hashes) { _ in ["camera"] }
            return [freed, uploaded.map(\.id)]
        }
        // A differing hash may be of another kind: the file is kept, unless the app decides otherwise.
        #expect(await states(.undeclared) == [["same", "untimed"], ["later"]])
        #expect(await states(.checksums) == [["later", "same", "untimed"], ["edited"]])
        #expect(await states(.ofAnotherKind) == [["edited", "same"], ["later"]])
        // The app decides about files that no record compares with the backup.
        let all = ["edited", "same", "unrecorded", "untimed"]
        #expect(await states(.undeclared, false)[0] == all)
        #expect(await states(.ofAnotherKind, false)[0] == all)
        #expect(
            await states(.checksums, false)[0] == ["later", "same", "unrecorded", "untimed"])
        // An upload is recorded, and the file is edited once more.
        try await store.deviceMedia.addDuplicates(["l-later"])
        #expect(await states(.undeclared)[1] == [])
        try await store.deviceMedia.put([
            .ios(id: "l-later", hash: "more", modifiedTime: time(now + 1))
        ])
        #expect(await states(.undeclared)[1] == ["later"])
        // The server has the edited file as another asset.
        var uploaded = photo("uploaded")
        (uploaded.localId, uploaded.checksum) = (nil, "other")
        try await store.assets.put(uploaded)
        #expect(await states(.checksums)[1] == ["later"])
        try await store.close()
    }

    @Test(.verifies("MED-20", "MED-22"))
    func `a photo that the server has deleted is not uploaded again without a decision`()
        async throws
    {
        let store = try await openStore()
        try await store.assets.put(photo("a"))
        try await store.deviceMedia.put([
            BackupAlbum(id: "camera", name: "", selection: .include)
        ])
        func uploaded() -> [String] {
            store.deviceMedia.backupCandidates { _ in ["camera"] }.map(\.id)
        }
        try await store.assets.refresh(of: "u") { _, _ in .all([], eTag: nil) }
        #expect(store.assets.asset("a").current?.localId == "l-a")
        #expect(uploaded() == [])
        // It is restored from the server's trash, and deleted again.
        var restored = photo("s")
        (restored.localId, restored.checksum) = (nil, "sum-a")
        let asset = restored
        try await store.assets.refresh(of: "u") { _, _ in .all([AssetStored(asset)], eTag: nil) }
        #expect(store.assets.asset("a").current?.remoteId == "r-s")
        // An edit of the file before the first deletion must be uploaded.
        #expect(!store.deviceMedia.isDuplicate("l-a"))
        try await store.assets.refresh(of: "u") { _, _ in .all([], eTag: nil) }
        #expect(uploaded() == [])
        // The user wants it on the server.
        try await store.deviceMedia.deleteDuplicates(["l-a"])
        #expect(uploaded() == ["a"])
        try await store.close()
    }

    @Test(.verifies("MED-21"))
    func `a change of a clock that was ahead does not stop backups`() async throws {
        let store = try await openStore()
        try await store.settings.put(.autoBackup, true)
        try await store.settings.put(.backupTriggerDelay, 5)
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        let decision = store.deviceMedia.backupDecision(
            under: BackupConditions(network: .wifi, isCharging: true),
            changedAt: now + 86_400_000, at: now)
        #expect(decision == .start)
        // A failure that it has recorded is not the first one.
        try await store.settings.put(
            .backupFailedSince, Timestamp(milliseconds: 1_800_086_400_000))
        try await store.deviceMedia.recordBackupFailure()
        #expect(store.settings.tryGet(.backupFailedSince)?.milliseconds == 1_800_000_000_000)
        try await store.close()
    }

    @Test(.verifies("MED-21"), arguments: ["backupRequireWifi", "backupRequireCharging"])
    func `a condition of backups that cannot be read is required`(key: String) async throws {
        let store = try await openStore()
        try await store.settings.put(.autoBackup, true)
        let put = try SettingPut(json: Array(#"{"key":"\#(key)","value":"yes"}"#.utf8))
        try await store.events.append(contentsOf: [EventDraft(put)])
        let decision = store.deviceMedia.backupDecision(
            under: BackupConditions(network: .cellular, isCharging: false))
        let isWifi = key == "backupRequireWifi"
        #expect(decision == .refused(isWifi ? .metered : .notCharging))
        try await store.close()
    }
}
