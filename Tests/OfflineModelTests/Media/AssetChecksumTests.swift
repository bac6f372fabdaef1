// Assets that are stored before their files are read, and get their checksums later. Spec/model/media.md,
// MED-23.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private func openStore() async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
}

/// A photo of the device, or with `remote` one of the server.
private func photo(
    _ number: Int, remote: String? = nil, checksum: String? = nil
) -> Asset {
    let taken = ZonedTime(Timestamp(milliseconds: Int64(number) * 1_000))
    return Asset(
        id: remote ?? "p\(number)", remoteId: remote,
        localId: remote == nil ? "l\(number)" : nil, ownerId: "u", checksum: checksum, type: .image,
        fileName: "", fileCreatedAt: taken, fileModifiedAt: taken, updatedAt: taken)
}

@Suite(.verifies("MED-23")) struct AssetChecksumTests {
    @Test func `a list of photos is shown before they are hashed, and the checksums come later`()
        async throws
    {
        let store = try await openStore()
        let count = 1_000
        let photos = (0..<count).map { photo($0) }
        #expect(try await store.assets.putInBatches(photos).stored == count)
        let list = store.assets.assets(ownedBy: "u")
        #expect(list.current == photos)
        #expect(store.assets.asset(ownerId: "u", checksum: "").current == nil)
        // None is uploaded before it is known that the server does not have it.
        try await store.deviceMedia.put([BackupAlbum(id: "a", name: "", selection: .include)])
        #expect(store.deviceMedia.backupCandidates { _ in ["a"] } == [])
        // The server has every tenth of them, and its list arrives before the checksums.
        let server = stride(from: 0, to: count, by: 10).map {
            photo($0, remote: "r\($0)", checksum: "c\($0)")
        }
        let refresh = try await store.assets.refresh(of: "u") { _, _ in .all(server, eTag: "1") }
        #expect(refresh.leftOut == [])
        #expect(list.current.count == count + server.count)
        let checksums = Dictionary(
            uniqueKeysWithValues: photos.indices.map { (photos[$0].id, "c\($0)") })
        #expect(try await store.assets.setChecksums(checksums) == [])
        let hashed = list.current
        #expect(hashed.map(\.checksum) == (0..<count).map { "c\($0)" })
        #expect(hashed.map(\.localId) == photos.map(\.localId))
        #expect(hashed.count { $0.remoteId != nil } == server.count)
        #expect(
            store.deviceMedia.backupCandidates { _ in ["a"] }.count == count - server.count)
        let before = await store.events.lastDurable
        #expect(try await store.assets.setChecksums(checksums) == [])
        #expect(await store.events.lastDurable == before)
        // The state of the view, with and without checksums.
        try await store.assets.put(photo(count))
        let view = store.view(AssetsView.self)
        let decoded = try AssetsView(encodedState: #require(try view.encodedState()))
        #expect(Array(decoded.all) == Array(view.all))
        try await store.close()
    }

    @Test func `an asset that becomes one with the server's leaves it its albums and its copy`()
        async throws
    {
        let store = try await openStore()
        let now = ZonedTime(Timestamp(milliseconds: 0))
        try await store.assets.put(photo(1), properties: Array(#"{"a":1}"#.utf8))
        try await store.assets.put(
            photo(1, remote: "r", checksum: "c"), properties: Array(#"{"b":2}"#.utf8))
        try await store.albums.put(
            Album(id: "x", ownerId: "u", name: "", createdAt: now, modifiedAt: now))
        try await store.albums.link("x", assets: ["p1"])
        #expect(try await store.assets.setChecksums(["p1": "c", "unknown": "c"]) == [])
        #expect(store.assets.asset("p1").current == nil)
        #expect(store.assets.asset(localId: "l1").current?.id == "r")
        #expect(store.albums.assetIDs(of: "x").current == ["r"])
        #expect(try await store.assets.properties(of: "r") == Array(#"{"b":2}"#.utf8))
        try await store.close()
    }

    @Test func `a checksum that cannot be stored is reported and keeps no other out`() async throws
    {
        let store = try await openStore()
        try await store.assets.putAll([
            photo(1), photo(2), photo(3), photo(4, remote: "r", checksum: "c"),
        ])
        let checksums = ["p1": "equal", "p2": "equal", "p3": "", "r": "equal"]
        let faults = try await store.assets.setChecksums(checksums)
        #expect(faults.map(\.id) == ["p3", "r", "p2"])
        #expect(
            store.assets.assets(ownedBy: "u").current.map(\.checksum) == ["equal", nil, nil, "c"])
        try await store.close()
    }

    @Test(.verifies("MED-22")) func `a copy whose backup has no checksum is not freed`()
        async throws
    {
        let store = try await openStore()
        var asset = photo(1, remote: "r")
        asset.localId = "l1"
        try await store.assets.put(asset)
        try await store.deviceMedia.put([.android(id: "l1", hash: "h")])
        for hashes in [DeviceHashes.checksums, .undeclared] {
            var settings = CleanUpSettings()
            (settings.cutoffDaysAgo, settings.deviceHashes) = (1, hashes)
            #expect(await store.assets.cleanUpCandidates(settings) == [])
        }
        try await store.close()
    }

    @Test(.verifies("MED-22"))
    func `the hash of an edited file never takes the place of its backup's checksum`()
        async throws
    {
        let store = try await openStore()
        var (known, unknown) = (photo(1, remote: "r1", checksum: "c1"), photo(2, remote: "r2"))
        (known.localId, unknown.localId) = ("l1", "l2")
        try await store.assets.putAll([known, unknown])
        let hashed = ["r1": "edited", "r2": "edited too"]
        let faults = try await store.assets.setChecksums(hashed)
        #expect(faults.map(\.id) == ["r1"])
        #expect(faults[0].reason.contains("c1"))
        #expect(store.assets.asset("r1").current == known)
        // The server has given none: the checksum is one of this device.
        #expect(store.assets.asset("r2").current?.checksum == "edited too")
        let later = ZonedTime(Timestamp(milliseconds: 3_000))
        try await store.deviceMedia.put([
            .ios(id: "l1", hash: "edited", modifiedTime: later),
            .ios(id: "l2", hash: "edited too", modifiedTime: later),
        ])
        try await store.deviceMedia.put([BackupAlbum(id: "a", name: "", selection: .include)])
        for hashes in [DeviceHashes.checksums, .undeclared, .ofAnotherKind] {
            let settings = CleanUpSettings(
                cutoffDaysAgo: 1, deviceHashes: hashes, keepUnverified: false)
            #expect(await store.assets.cleanUpCandidates(settings) == [], "\(hashes)")
            let uploaded = store.deviceMedia.backupCandidates(hashes: hashes) { _ in ["a"] }
            #expect(uploaded.map(\.id) == ["r1", "r2"], "\(hashes)")
        }
        // The server's own checksum shows that it has the file as it is.
        var answer = unknown
        (answer.localId, answer.checksum) = (nil, "edited too")
        let server = answer
        try await store.assets.refresh(of: "u") { _, _ in
            .changed([server], goneRemoteIds: [], eTag: nil)
        }
        let settings = CleanUpSettings(cutoffDaysAgo: 1, deviceHashes: .checksums)
        #expect(await store.assets.cleanUpCandidates(settings).map(\.id) == ["r2"])
        try await store.close()
    }
}
