// What shows that the server has a photo of the device: copies of which a refresh says otherwise are never freed, and
// the two records of one photo become one. Spec/model/media.md, MED-15, MED-20, MED-22 and MED-23.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private let now: Int64 = 1_800_000_000_000
private let taken = ZonedTime(Timestamp(milliseconds: now - 100 * 86_400_000))

private func openStore() async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"),
        environment: LogEnvironment(fileSystem: InMemoryFileSystem(), now: { now }))
}

private func photo(
    _ id: String, remote: String? = nil, local: String? = nil, sum: String?,
    isFavorite: Bool = false
) -> Asset {
    Asset(
        id: id, remoteId: remote, localId: local, ownerId: "u", checksum: sum, type: .image,
        fileName: "", fileCreatedAt: taken, fileModifiedAt: taken, updatedAt: taken,
        isFavorite: isFavorite)
}

extension OfflineStore {
    fileprivate func candidates(
        _ hashes: DeviceHashes = .checksums, keepUnverified: Bool = true
    ) async -> [String] {
        let settings = CleanUpSettings(
            cutoffDaysAgo: 30, deviceHashes: hashes, keepUnverified: keepUnverified)
        return await assets.cleanUpCandidates(settings).map(\.id)
    }

    @discardableResult
    fileprivate func refresh(_ photos: [Asset], _ eTag: String = "1") async throws -> AssetRefresh {
        try await assets.refresh(of: "u") { _, _ in .changed(photos, goneRemoteIds: [], eTag: eTag)
        }
    }
}

@Suite struct BackupProofTests {
    /// "D" is the checksum of another asset; "" breaks a rule of the type.
    @Test(.verifies("MED-20", "MED-24"), arguments: ["D", ""])
    func `a photo whose change at the server cannot be stored is never freed, until it can be`(
        sum: String
    ) async throws {
        let store = try await openStore()
        try await store.assets.putAll([
            photo("a", remote: "ra", local: "la", sum: "A"), photo("d", remote: "rd", sum: "D"),
        ])
        try await store.deviceMedia.put([.ios(id: "la", hash: "A", modifiedTime: taken)])
        #expect(await store.candidates() == ["a"])
        let result = try await store.refresh([photo("a", remote: "ra", sum: sum)])
        #expect(result.leftOut.count == 1)
        for hashes in [DeviceHashes.checksums, .undeclared, .ofAnotherKind] {
            #expect(await store.candidates(hashes) == [])
            #expect(await store.candidates(hashes, keepUnverified: false) == [])
        }
        // A checksum that the app computes does not say what the server has.
        try await store.assets.setChecksums(["a": "A"])
        #expect(await store.candidates(.ofAnotherKind) == [])
        #expect(await store.candidates() == [])
        try await store.refresh([photo("a", remote: "ra", sum: "A")])
        #expect(await store.candidates() == ["a"])
    }

    @Test(.verifies("MED-22", "MED-24"))
    func `a photo to which the server gives another checksum is freed only by an equal hash`()
        async throws
    {
        let store = try await openStore()
        try await store.assets.putAll([photo("a", remote: "ra", local: "la", sum: "A")])
        try await store.deviceMedia.put([.ios(id: "la", hash: "A", modifiedTime: taken)])
        #expect(try await store.refresh([photo("a", remote: "ra", sum: "E")]).leftOut == [])
        for hashes in [DeviceHashes.checksums, .undeclared, .ofAnotherKind] {
            #expect(await store.candidates(hashes, keepUnverified: false) == [])
        }
        try await store.refresh([photo("a", remote: "ra", sum: "E")], "2")
        #expect(await store.candidates(.ofAnotherKind) == [])
        try await store.deviceMedia.put([.ios(id: "la", hash: "E", modifiedTime: taken)])
        #expect(await store.candidates() == ["a"])
    }

    @Test(.verifies("MED-24"), arguments: [DeviceHashes.checksums, .undeclared, .ofAnotherKind])
    func `a change at the server is remembered while the server does not have the photo`(
        hashes: DeviceHashes
    ) async throws {
        let store = try await openStore()
        try await store.assets.putAll([photo("a", remote: "ra", local: "la", sum: "A")])
        try await store.deviceMedia.put([.ios(id: "la", hash: "A", modifiedTime: taken)])
        try await store.refresh([photo("a", remote: "ra", sum: "E")])
        try await store.assets.refresh(of: "u") { _, _ in
            .changed([], goneRemoteIds: ["ra"], eTag: "2")
        }
        #expect(store.view(AssetsView.self)["a"]?.remoteId == nil)
        try await store.refresh([photo("a", remote: "ra", sum: "E")], "3")
        #expect(store.view(AssetsView.self)["a"]?.remoteId == "ra")
        #expect(await store.candidates(hashes, keepUnverified: false) == [])
    }

    @Test(.verifies("MED-24"), arguments: [DeviceHashes.checksums, .undeclared, .ofAnotherKind])
    func `a change of a photo without a checksum is seen by its time`(
        hashes: DeviceHashes
    ) async throws {
        let store = try await openStore()
        try await store.assets.putAll([photo("a", remote: "ra", local: "la", sum: nil)])
        try await store.deviceMedia.put([.ios(id: "la", hash: "D", modifiedTime: taken)])
        var changed = photo("a", remote: "ra", sum: nil)
        changed.fileModifiedAt = ZonedTime(
            Timestamp(milliseconds: taken.moment.milliseconds + 1_000))
        try await store.refresh([changed])
        try await store.assets.setChecksums(["a": "D"])
        #expect(await store.candidates(hashes, keepUnverified: false) == [])
    }

    @Test(.verifies("MED-20"))
    func `a photo of the server that gets the checksum of one on the device becomes one with it`()
        async throws
    {
        let store = try await openStore()
        try await store.assets.put(photo("d", local: "l", sum: "C", isFavorite: true))
        try await store.albums.put(
            Album(id: "s", ownerId: "u", name: "", createdAt: taken, modifiedAt: taken))
        try await store.albums.link("s", assets: ["d"])
        try await store.refresh([photo("x", remote: "r", sum: nil)])
        let result = try await store.refresh([photo("x", remote: "r", sum: "C")], "2")
        #expect(result.leftOut == [])
        #expect(store.assets.count.current == 1)
        let asset = store.view(AssetsView.self)["x"]
        #expect(asset?.localId == "l")
        #expect(asset?.isFavorite == true)
        #expect(store.view(AlbumsView.self).assetIDs(of: "s") == ["x"])
        try await store.deviceMedia.put([BackupAlbum(id: "cam", name: "", selection: .include)])
        #expect(store.deviceMedia.backupCandidates { _ in ["cam"] } == [])
        #expect(store.settings.tryGet(.assetETag) == "2")
    }

    @Test(.verifies("MED-23"))
    func `a favourite of the device stays one when its checksum reveals the server's asset`()
        async throws
    {
        let store = try await openStore()
        try await store.assets.putAll([
            photo("dev", local: "l", sum: nil, isFavorite: true),
            photo("srv", remote: "r", sum: "s"),
        ])
        try await store.deviceMedia.put([.ios(id: "l", hash: "s", modifiedTime: taken)])
        try await store.assets.setChecksums(["dev": "s"])
        #expect(store.view(AssetsView.self)["srv"]?.isFavorite == true)
        #expect(await store.candidates() == [])
    }

    @Test(.verifies("MED-15"))
    func `an album to keep whose assets have not arrived keeps everything`() async throws {
        let store = try await openStore()
        try await store.assets.putAll([
            photo("a", remote: "ra", local: "la", sum: "A"), photo("b", remote: "rb", sum: "B"),
        ])
        try await store.deviceMedia.put([.ios(id: "la", hash: "A", modifiedTime: taken)])
        try await store.albums.put(
            Album(id: "s", ownerId: "u", name: "", createdAt: taken, modifiedAt: taken))
        let settings = CleanUpSettings(
            keepAlbumIds: ["s"], cutoffDaysAgo: 30, deviceHashes: .checksums)
        #expect(await store.assets.cleanUpCandidates(settings) == [])
        await #expect(throws: EventError.self) {
            try await store.assets.freeUpSpace(settings) { $0 }
        }
        try await store.albums.link("s", assets: ["b"])
        #expect(await store.assets.cleanUpCandidates(settings).map(\.id) == ["a"])
    }
}
