// The commands for assets and albums: put, find, delete, link, free space. Spec/model/media.md.

import DaybookTestKit
import EventGenerators
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

private func openStore(
    _ files: InMemoryFileSystem = InMemoryFileSystem(),
    _ clock: VirtualClock = VirtualClock(milliseconds: 1_800_000_000_000)
) async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"),
        environment: LogEnvironment(fileSystem: files, now: { clock.milliseconds }))
}

private func time(_ milliseconds: Int64) -> ZonedTime {
    ZonedTime(Timestamp(milliseconds: milliseconds))
}

private let day: Int64 = 86_400_000

private func asset(
    _ id: String, remote: String? = nil, local: String? = nil, checksum: String? = nil,
    _ type: AssetType = .image, daysAgo: Int64 = 100, favorite: Bool = false
) -> Asset {
    Asset(
        id: id, remoteId: remote, localId: local, ownerId: "u", checksum: checksum ?? id,
        type: type, fileName: "\(id).jpg",
        fileCreatedAt: time(1_800_000_000_000 - daysAgo * day), fileModifiedAt: time(0),
        updatedAt: time(0), isFavorite: favorite)
}

private func album(_ id: String, remote: String? = nil) -> Album {
    Album(
        id: id, remoteId: remote, ownerId: "u", name: id, createdAt: time(0), modifiedAt: time(0))
}

private struct AppError: Error {}

/// A device's media library that deletes on request.
private actor Library {
    private(set) var asked: [[String]] = []
    private var there: Set<String>
    private let refusing: Set<String>
    private let fails: Bool

    init(_ there: Set<String>, refusing: Set<String> = [], fails: Bool = false) {
        (self.there, self.refusing, self.fails) = (there, refusing, fails)
    }

    func delete(_ ids: [String]) throws -> [String] {
        asked.append(ids)
        if fails, asked.count > 1 { throw AppError() }
        there.subtract(Set(ids).subtracting(refusing))
        return ids.filter { !refusing.contains($0) }
    }

    var left: Set<String> { there }
}

@Suite struct MediaCommandTests {
    // MARK: Assets

    @Test(.verifies("MED-19"))
    func
        `ten thousand assets go in batches, and a call that was broken off is made good by another`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        let all = (0..<10_000).map { AssetStored(asset("asset-\($0)", remote: "r\($0)")) }
        await #expect(throws: EventError.self) { try await store.assets.putAll(all) }
        let done = Mutex<[Int]>([])
        let loading = Task { [store] in
            try await store.assets.putInBatches(all) { count in
                done.withLock { $0.append(count) }
                if count < all.count { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        await #expect(throws: CancellationError.self) { try await loading.value }
        let first = try #require(done.withLock { $0 }.first)
        #expect(first > 1_000)
        #expect(first < all.count)
        #expect(store.view(AssetsView.self).count == first)
        try await store.close()
        store = try await openStore(files)
        #expect(try await store.assets.putInBatches(all).stored == all.count - first)
        #expect(store.view(AssetsView.self).count == all.count)
        #expect(try await store.assets.putInBatches(all).stored == 0)
        #expect(await store.events.lastDurable.rawValue == 10_000)
        // Another name, and another spelling of a name, are changes.
        var changed = all[7]
        changed.asset.fileName = "caf\u{E9}"
        #expect(try await store.assets.putInBatches([all[6], changed]).stored == 1)
        changed.asset.fileName = "cafe\u{301}"
        #expect(try await store.assets.putInBatches([changed]).stored == 1)
        // Of two with one id the last wins, however often the call is repeated.
        for count in [1, 0, 0] {
            #expect(try await store.assets.putInBatches([changed, all[7]]).stored == count)
            #expect(store.view(AssetsView.self)["asset-7"] == all[7].asset)
        }
        try await store.close()
    }

    @Test(.verifies("MED-19"))
    func `one asset that cannot be stored does not hold up its batch, and two can exchange keys`()
        async throws
    {
        let store = try await openStore()
        let many = (0..<4_000).map { AssetStored(asset("a\($0)", remote: "r\($0)")) }
        let huge = AssetStored(
            asset("huge"),
            properties: Array("{\"x\":\"\(String(repeating: "x", count: 1 << 20))\"}".utf8))
        let bad = [AssetStored(asset("b", remote: "r7")), AssetStored(asset("")), huge]
        let result = try await store.assets.putInBatches(bad + many)
        #expect(result.stored == many.count)
        #expect(result.leftOut.map(\.id) == ["", "huge", "a7"])
        // The first of two with one key is stored, then the one that the store knows.
        #expect(try await store.assets.putInBatches(many).leftOut.map(\.id) == ["a7"])
        try await store.assets.delete(["b"])
        try await store.assets.putInBatches(many)
        // The first and the last are in different commits.
        var swapped = many
        swapped[0].asset.remoteId = "r3999"
        swapped[3_999].asset.remoteId = "r0"
        #expect(try await store.assets.putInBatches(swapped).stored == 2)
        #expect(store.view(AssetsView.self).asset(remoteId: "r0")?.id == "a3999")
        #expect(store.view(AssetsView.self).asset(remoteId: "r3999")?.id == "a0")
        try await store.close()
    }

    @Test(.verifies("MED-1", "MED-2", "MED-3"))
    func `a stored asset is found by each of its keys, with its properties`() async throws {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        let photo = asset("a", remote: "r", local: "1")
        let properties = Array(#"{"exif":{"iso":1e2}}"#.utf8)
        try await store.assets.put(photo, properties: properties)
        func check() async throws {
            #expect(store.assets.asset("a").current == photo)
            #expect(store.assets.asset(remoteId: "r").current == photo)
            #expect(store.assets.asset(localId: "1").current == photo)
            #expect(store.assets.asset(ownerId: "u", checksum: "a").current == photo)
            #expect(store.assets.assets(ownedBy: "u").current == [photo])
            let moment = photo.fileCreatedAt.moment
            #expect(
                store.assets.assets(takenFrom: moment, through: moment).current == [photo])
            #expect(store.assets.count.current == 1)
            #expect(try await store.assets.properties(of: "a") == properties)
        }
        try await check()
        try await store.close()
        store = try await openStore(files)
        try await check()
        // A new put replaces the old asset completely.
        try await store.assets.put(asset("a"))
        #expect(store.assets.asset(remoteId: "r").current == nil)
        #expect(try await store.assets.properties(of: "a") == nil)
        #expect(try await store.assets.properties(of: "nobody") == nil)
        try await store.close()
    }

    @Test(
        .verifies("MED-4"),
        arguments: [
            (asset("b", remote: "r"), "the remote id r"),
            (asset("b", local: "1"), "the local id 1"),
            (asset("b", checksum: "a"), "the checksum a of the owner u"),
        ])
    func `an asset with a key of another is refused, and the message names the other`(
        other: Asset, words: String
    ) async throws {
        let store = try await openStore()
        try await store.assets.put(asset("a", remote: "r", local: "1"))
        let before = await store.events.lastDurable
        let error = try #require(
            await #expect(throws: EventError.self) {
                try await store.assets.putAll([asset("c"), other])
            })
        #expect(error.code == .refused)
        #expect(error.detail == "the asset b cannot have \(words): the asset a has it")
        #expect(await store.events.lastDurable == before)
        try await store.close()
    }

    @Test(.verifies("MED-4"))
    func `the keys are checked against the state after the whole batch`() async throws {
        let store = try await openStore()
        try await store.assets.putAll([asset("a", remote: "1"), asset("b", remote: "2")])
        // Two exchange keys; the last value of an asset wins.
        try await store.assets.putAll([
            asset("a", remote: "1"), asset("a", remote: "2"), asset("b", remote: "1"),
        ])
        #expect(store.assets.asset(remoteId: "1").current?.id == "b")
        #expect(store.assets.asset(remoteId: "2").current?.id == "a")
        await #expect(throws: EventError.self) {
            try await store.assets.putAll([asset("c", local: "9"), asset("d", local: "9")])
        }
        try await store.close()
    }

    @Test(.verifies("MED-4", "MED-6"))
    func `commands follow the rule of a model that searches all assets`() async throws {
        try await Property.check(
            "the unique rule", runs: 60, covering: ["refused", "put", "deleted", "imported"]
        ) { choices in
            let store = try await openStore()
            var model: [EntityID: Asset] = [:]
            var isRuled = true
            for _ in 0..<choices.int(in: 1...12) {
                let assets = choices.array(1...3) { $0.asset() }
                switch choices.int(in: 0...5) {
                case 0:
                    let gone = try await store.assets.delete(assets.map(\.id))
                    let expected = Set(assets.map { EntityID($0.id) }).filter { model[$0] != nil }
                    try #require(Set(gone.map(EntityID.init)) == expected)
                    for id in expected { model[id] = nil }
                    choices.count("deleted")
                case 1 where choices.bool(oneIn: 3):
                    // Imported events are not checked.
                    try await store.append(AssetStored(assets[0]))
                    model[EntityID(assets[0].id)] = assets[0]
                    isRuled = Self.isRuled(model)
                    choices.count("imported")
                default:
                    var next = model
                    for asset in assets { next[EntityID(asset.id)] = asset }
                    do {
                        try await store.assets.putAll(assets)
                        try #require(!isRuled || Self.isRuled(next))
                        model = next
                        choices.count("put")
                    } catch let error as EventError {
                        try #require(error.code == .refused)
                        try #require(!Self.isRuled(next))
                        choices.count("refused")
                    }
                    isRuled = Self.isRuled(model)
                }
                try #require(Set(store.view(AssetsView.self).all) == Set(model.values))
            }
            try await store.close()
        }
    }

    /// True if no two assets share a key.
    private static func isRuled(_ assets: [EntityID: Asset]) -> Bool {
        func unique(_ keys: [[EntityID]]) -> Bool { Set(keys).count == keys.count }
        return unique(assets.values.compactMap { $0.remoteId.map { [EntityID($0)] } })
            && unique(assets.values.compactMap { $0.localId.map { [EntityID($0)] } })
            && unique(assets.values.map { [EntityID($0.ownerId), EntityID($0.checksum ?? "")] })
    }

    @Test(.verifies("MED-5"))
    func `an event that is too large is refused with the limit, and nothing is recorded`()
        async throws
    {
        let store = try await openStore()
        let text = String(repeating: "x", count: 1 << 20)
        for (assets, limit) in [
            ([AssetStored(asset("a"), properties: Array(#"{"x":"\#(text)"}"#.utf8))], 1 << 20),
            (
                (0..<5).map {
                    let text = String(repeating: "x", count: 900_000)
                    return AssetStored(
                        asset("\($0)"), properties: Array(#"{"x":"\#(text)"}"#.utf8))
                }, WriterSizes.commitPlaintextBytesMax
            ),
        ] {
            let error = try #require(
                await #expect(throws: EventError.self) { try await store.assets.putAll(assets) })
            #expect(error.code == .tooLarge)
            #expect(error.detail.contains("\(limit)"))
        }
        #expect(store.assets.count.current == 0)
        #expect(await store.events.lastDurable == .zero)
        await #expect(throws: EventError.self) {
            try await store.assets.putAll([asset("good"), asset("")])
        }
        #expect(store.assets.count.current == 0)
        try await store.assets.putAll([Asset]())
        try await store.close()
    }

    @Test(.verifies("MED-5"))
    func `the assets of one call are stored all or none, wherever the power fails`() async throws {
        let files = SimulatedFileSystem()
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
        files.record()
        try await store.assets.putAll((0..<300).map { asset("asset-\($0)") })
        try await store.assets.delete((0..<300).map { "asset-\($0)" })
        var counts: Set<Int> = []
        var disks: [SimulatedFileSystem] = []
        for point in files.crashPoints {
            point.forEachState(in: .init(combinationsMax: 4, samples: 2)) { disk, _ in
                disks.append(disk)
            }
        }
        for disk in disks {
            let after = try await OfflineStore.open(
                at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: disk))
            counts.insert(after.assets.count.current)
            try await after.close()
        }
        #expect(counts == [0, 300])
        try await store.close()
    }

    @Test(.verifies("MED-6"))
    func `assets are deleted by id and by the server's id; unknown ids are ignored`()
        async throws
    {
        let store = try await openStore()
        try await store.assets.putAll([
            asset("a", remote: "1"), asset("b", remote: "2"), asset("c", remote: "3"),
        ])
        #expect(try await store.assets.delete(["a", "x", "a"]) == ["a"])
        #expect(try await store.assets.deleteAllByRemoteId(["1", "3", "3"]) == ["c"])
        #expect(store.assets.count.current == 1)
        // All imported assets with one server's id are deleted.
        try await store.append(AssetStored(asset("d", remote: "2")))
        #expect(try await store.assets.deleteAllByRemoteId(["2"]) == ["d", "b"])
        let before = await store.events.lastDurable
        #expect(try await store.assets.delete(["a"]).isEmpty)
        #expect(await store.events.lastDurable == before)
        try await store.close()
    }

    @Test(.verifies("MED-12"))
    func `commands take effect although the clock was ahead before`() async throws {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let store = try await openStore(InMemoryFileSystem(), clock)
        clock.advance(by: .days(30))
        try await store.assets.put(asset("a", remote: "r"))
        try await store.albums.put(album("s"))
        try await store.albums.link("s", assets: ["a"])
        try await store.deviceMedia.addDuplicates(["d"])
        clock.advance(by: .days(-60))
        try await store.assets.put(asset("a", remote: "s"))
        #expect(store.assets.asset(remoteId: "s").current?.id == "a")
        try await store.assets.delete(["a"])
        #expect(store.assets.count.current == 0)
        #expect(store.albums.assetIDs(of: "s").current.isEmpty)
        try await store.assets.put(asset("a"))
        try await store.albums.link("s", assets: ["a"])
        #expect(store.albums.assetIDs(of: "s").current == ["a"])
        try await store.albums.unlink("s", assets: ["a"])
        #expect(store.albums.assetIDs(of: "s").current.isEmpty)
        try await store.albums.delete(["s"])
        #expect(store.albums.albums.current.isEmpty)
        try await store.albums.put(album("s"))
        #expect(store.albums.albums.current.count == 1)
        try await store.deviceMedia.deleteDuplicates(["d"])
        #expect(!store.deviceMedia.isDuplicate("d"))
        try await store.close()
    }

    @Test(.verifies("MED-1", "MED-13"))
    func `properties are read after compaction, and removed with their asset`() async throws {
        let store = try await openStore()
        for number in 0..<40 {
            try await store.assets.put(
                asset("a"), properties: Array(#"{"number":\#(number)}"#.utf8))
        }
        try store.events.log.roll()
        try await store.compact()
        #expect(
            try await store.assets.properties(of: "a") == Array(#"{"number":39}"#.utf8))
        try await store.assets.delete(["a"])
        #expect(try await store.assets.properties(of: "a") == nil)
        try await store.close()
    }

    // MARK: Albums

    @Test(.verifies("MED-8"))
    func `albums are linked to stored assets, each link once`() async throws {
        let store = try await openStore()
        try await store.assets.putAll([asset("a"), asset("b")])
        try await store.albums.putAll([album("s", remote: "r"), album("t")])
        try await store.albums.link("s", assets: ["b", "a"], users: ["v"])
        let before = await store.events.lastDurable
        try await store.albums.link("s", assets: ["a"], users: ["v"])
        try await store.albums.unlink("t", assets: ["a"], users: ["v"])
        #expect(await store.events.lastDurable == before)
        for (album, asset) in [("x", "a"), ("s", "x")] {
            await #expect(throws: EventError.self) {
                try await store.albums.link(album, assets: [asset])
            }
        }
        await #expect(throws: EventError.self) {
            try await store.albums.unlink("x", assets: ["a"])
        }
        #expect(store.albums.album(remoteId: "r").current == store.albums.album("s").current)
        #expect(store.albums.assets(of: "s").map(\.id) == ["a", "b"])
        #expect(store.albums.userIDs(of: "s").current == ["v"])
        #expect(store.albums.albums(containing: "a").current.map(\.id) == ["s"])
        try await store.assets.delete(["a"])
        #expect(store.albums.assets(of: "s").map(\.id) == ["b"])
        try await store.albums.unlink("s", assets: ["b"], users: ["v"])
        #expect(store.albums.assets(of: "s").isEmpty)
        #expect(try await store.albums.delete(["s", "x", "s"]) == ["s"])
        #expect(store.albums.albums.current.map(\.id) == ["t"])
        #expect(store.assets.count.current == 1)
        try await store.close()
    }

    @Test(.verifies("MED-8", "MED-11"))
    func `an element of a list from outside that cannot be stored keeps no other out`()
        async throws
    {
        let store = try await openStore()
        let albums = [album("s"), album(""), album("t"), album("s")]
        let leftOut = try await store.albums.putAll(albums)
        #expect(leftOut.map(\.index) == [1])
        #expect(leftOut[0].reason.hasPrefix("albums[1].albumId"))
        #expect(store.albums.albums.current.map(\.id) == ["s", "t"])
        try await store.assets.putInBatches([asset("a"), asset("b")])
        let links = try await store.albums.link("s", assets: ["a", "x", "b"], users: ["", "v"])
        #expect(links.map(\.id) == ["x", ""])
        #expect(links[0].reason == "assets[1]: there is no asset x")
        #expect(store.albums.assetIDs(of: "s").current == ["a", "b"])
        #expect(store.albums.userIDs(of: "s").current == ["v"])
        let device = store.deviceMedia
        let files = (0..<20_000).map { DeviceAsset.android(id: "\($0)", hash: "h") }
        let bad = try await device.put(files + [.android(id: "y", hash: "")])
        #expect(bad.map(\.index) == [20_000])
        #expect(device.deviceAssets(on: .android).current.count == files.count)
        let camera = BackupAlbum(id: "c", name: "", selection: .include)
        #expect(
            try await device.put([BackupAlbum(id: "", name: "", selection: .none), camera])
                .map(\.index) == [0])
        #expect(device.backupAlbums.current == [camera])
        #expect(try await device.addDuplicates(["", "d"]).map(\.index) == [0])
        #expect(device.duplicates.current == ["d"])
        // Nothing of a list can be stored: the caller's mistake.
        await #expect(throws: EventError.self) { try await store.albums.put(album("")) }
        await #expect(throws: EventError.self) { try await device.addDuplicates([""]) }
        try await store.close()
    }

    @Test(.verifies("MED-8"))
    func `links of more ids than an event has are one commit`() async throws {
        let store = try await openStore()
        try await store.albums.put(album("s"))
        let users = (0..<2_000).map { "\($0)-" + String(repeating: "u", count: 1_000) }
        try await store.albums.link("s", users: users)
        #expect(store.albums.userIDs(of: "s").current.count == users.count)
        try await store.albums.unlink("s", users: users)
        #expect(store.albums.userIDs(of: "s").current == [])
        try await store.close()
    }

    @Test(.verifies("MED-7", "MED-8"))
    func `a stored album has all its fields and links after reopening`() async throws {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        let whole = Album(
            id: "s", remoteId: "r", ownerId: "u", name: "Caf\u{E9}",
            createdAt: try #require(ZonedTime("2023-11-20T14:06:57.863+01:00")),
            modifiedAt: time(1), startDate: time(2), endDate: time(3), thumbnailAssetId: "a")
        try await store.assets.put(asset("a"))
        try await store.albums.put(whole)
        try await store.albums.link("s", assets: ["a"], users: ["v"])
        try await store.close()
        store = try await openStore(files)
        #expect(store.albums.album("s").current == whole)
        #expect(store.albums.album(remoteId: "r").current == whole)
        #expect(store.albums.assetIDs(of: "s").current == ["a"])
        #expect(store.albums.userIDs(of: "s").current == ["v"])
        try await store.close()
    }

    // MARK: The small collections

    @Test(.verifies("MED-10", "MED-11"))
    func `the small collections are stored, read and deleted`() async throws {
        let store = try await openStore()
        let device = store.deviceMedia
        let camera = BackupAlbum(id: "1", name: "Camera", selection: .exclude)
        try await device.put([camera])
        try await device.addDuplicates(["d", "e"])
        let etag = AssetETag(id: "u", assetCount: 7, time: time(9))
        try await device.put(etag)
        let ios = DeviceAsset.ios(id: "x", hash: "h", modifiedTime: time(3))
        try await device.put([ios, .android(id: "x", hash: "h"), .android(id: "y", hash: "h")])
        let before = await store.events.lastDurable
        try await device.addDuplicates(["e"])
        try await device.deleteETags(of: ["v"])
        try await device.deleteBackupAlbums(["2"])
        try await device.deleteDeviceAssets(["y"], on: .ios)
        #expect(await store.events.lastDurable == before)
        #expect(device.backupAlbums.current == [camera])
        #expect(device.duplicates.current == ["d", "e"])
        #expect(device.isDuplicate("d"))
        #expect(device.etag(of: "u").current == etag)
        #expect(device.deviceAssets(["x", "y"], on: .ios) == [ios])
        #expect(device.deviceAssets(on: .android).current.map(\.id) == ["x", "y"])
        try await device.deleteBackupAlbums(["1"])
        try await device.deleteDuplicates(["d"])
        try await device.deleteETags(of: ["u"])
        try await device.deleteDeviceAssets(["x"], on: .android)
        #expect(device.backupAlbums.current.isEmpty)
        #expect(device.duplicates.current == ["e"])
        #expect(device.etag(of: "u").current == nil)
        #expect(device.deviceAssets(on: .android).current.map(\.id) == ["y"])
        #expect(device.deviceAssets(on: .ios).current == [ios])
        try await store.close()
    }

    @Test(.verifies("MED-10", "MED-11"))
    func `the small collections are the same after reopening`() async throws {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        let camera = BackupAlbum(
            id: "1", name: "Camera", selection: .include,
            lastBackup: ZonedTime("2023-11-20T14:06:57.863+01:00"))
        let etag = AssetETag(id: "u", assetCount: 7, time: time(9))
        let android = DeviceAsset.android(id: "x", hash: "h", modifiedTime: time(2))
        let untimed = DeviceAsset.android(id: "y", hash: "h")
        let ios = DeviceAsset.ios(id: "x", hash: "i", modifiedTime: time(3))
        try await store.deviceMedia.put([camera])
        try await store.deviceMedia.addDuplicates(["d"])
        try await store.deviceMedia.put(etag)
        try await store.deviceMedia.put([android, untimed, ios])
        try await store.close()
        store = try await openStore(files)
        let device = store.deviceMedia
        #expect(device.backupAlbums.current == [camera])
        #expect(device.duplicates.current == ["d"])
        #expect(device.etag(of: "u").current == etag)
        #expect(device.deviceAssets(on: .android).current == [android, untimed])
        #expect(device.deviceAssets(on: .ios).current == [ios])
        try await store.close()
    }

    // MARK: Freeing space

    @Test(.verifies("MED-14", "MED-15"))
    func `each setting keeps its assets, and only backed-up copies are removed`() async throws {
        let store = try await openStore()
        var trashed = asset("trashed", remote: "5", local: "5")
        trashed.isTrashed = true
        try await store.assets.putAll([
            asset("photo", remote: "1", local: "1"), asset("only-local", local: "2"),
            asset("only-remote", remote: "3"), trashed,
            asset("video", remote: "6", local: "6", .video, daysAgo: 90),
            asset("sound", remote: "7", local: "7", .audio, daysAgo: 80),
            asset("favorite", remote: "8", local: "8", daysAgo: 70, favorite: true),
            asset("recent", remote: "9", local: "9", daysAgo: 1),
            asset("future", remote: "10", local: "10", daysAgo: -1),
        ])
        try await store.albums.put(album("s"))
        try await store.albums.link("s", assets: ["video"])
        // A removed album keeps nothing.
        try await store.albums.put(album("x"))
        try await store.albums.link("x", assets: ["photo"])
        try await store.albums.delete(["x"])
        func candidates(_ settings: CleanUpSettings) async -> [String] {
            await store.assets.cleanUpCandidates(settings).map(\.id)
        }
        let any = 1
        #expect(
            await candidates(CleanUpSettings(cutoffDaysAgo: any, keepUnverified: false)) == [
                "photo", "video", "sound",
            ])
        #expect(
            await candidates(
                CleanUpSettings(keepFavorites: false, cutoffDaysAgo: 30, keepUnverified: false))
                == ["photo", "video", "sound", "favorite"])
        #expect(
            await candidates(
                CleanUpSettings(keepMediaType: .photos, cutoffDaysAgo: any, keepUnverified: false))
                == ["video", "sound"])
        #expect(
            await candidates(
                CleanUpSettings(keepMediaType: .videos, cutoffDaysAgo: any, keepUnverified: false))
                == ["photo", "sound"])
        #expect(
            await candidates(
                CleanUpSettings(keepMediaType: .both, cutoffDaysAgo: any, keepUnverified: false))
                == ["sound"]
        )
        #expect(
            await candidates(
                CleanUpSettings(keepAlbumIds: ["x", "s"], cutoffDaysAgo: 1, keepUnverified: false))
                == ["photo", "sound"])
        #expect(
            await candidates(CleanUpSettings(cutoffDaysAgo: .max, keepUnverified: false)).isEmpty)
        // The user's settings by default.
        func chosen() async -> [String] {
            await candidates(
                CleanUpSettings(store.view(SettingsView.self), keepUnverified: false))
        }
        #expect(await chosen() == [])
        try await store.settings.put(.cleanupCutoffDaysAgo, 30)
        #expect(await chosen() == ["photo", "video", "sound"])
        try await store.settings.put(.cleanupKeepFavorites, false)
        try await store.settings.put(.cleanupKeepMediaType, "videos")
        try await store.settings.put(.cleanupKeepAlbumIds, ["x"])
        #expect(await chosen() == ["photo", "sound", "favorite"])
        try await store.close()
    }

    @Test(.verifies("MED-14", "MED-16"))
    func `a copy that becomes the last one during a deletion is not deleted`() async throws {
        let store = try await openStore()
        try await store.assets.putAll(
            (0..<700).map {
                asset("\($0)", remote: "r\($0)", local: "l\($0)", daysAgo: 900 - Int64($0))
            })
        // Another asset has the same copy, and must remain.
        try await store.events.append(contentsOf: [
            EventDraft(AssetStored(asset("twin", local: "l650")))
        ])
        let asked = Mutex<[[String]]>([])
        try await store.assets.freeUpSpace(CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false))
        { localIds in
            asked.withLock { $0.append(localIds) }
            var trashed = asset("600", remote: "r600", local: "l600", daysAgo: 300)
            trashed.isTrashed = true
            try await store.assets.put(trashed)
            try await store.assets.put(asset("610", local: "l610", daysAgo: 290))
            return localIds
        }
        let all = Set(asked.withLock(\.self).joined())
        #expect(all.count == 697)
        #expect(all.intersection(["l600", "l610", "l650"]).isEmpty)
        try await store.close()
    }

    @Test(.verifies("MED-16"))
    func `a copy that a newer asset shares is not deleted`() async throws {
        let store = try await openStore()
        try await store.assets.put(asset("old", remote: "1", local: "l-1", daysAgo: 100))
        try await store.events.append(contentsOf: [
            EventDraft(AssetStored(asset("new", remote: "2", local: "l-1", daysAgo: 2)))
        ])
        var settings = CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
        #expect(await store.assets.cleanUpCandidates(settings).count == 2)
        settings.cutoffDaysAgo = 30
        #expect(await store.assets.cleanUpCandidates(settings).isEmpty)
        let freed = try await store.assets.freeUpSpace(settings) { $0 }
        #expect(freed.isEmpty)
        try await store.close()
    }

    @Test(.verifies("MED-6", "IMG-3"))
    func `the deletion of an asset ends the cached covers of its albums`() async throws {
        let store = try await openStore()
        try await store.assets.putAll([asset("a"), asset("b")])
        var shown = album("shown")
        shown.thumbnailAssetId = "a"
        for album in [album("holds"), shown, album("other")] {
            try await store.albums.put(album)
            // Storing an equal value is no change.
            try await store.images.store([1], .albumThumbnail, album.id)
            try await store.albums.put(album)
        }
        try await store.albums.link("holds", assets: ["a", "b"])
        try await store.images.store([1], .albumThumbnail, "holds")
        try await store.assets.delete(["a"])
        let images = store.view(ImagesView.self)
        #expect(images.image(.albumThumbnail, "holds") == nil)
        #expect(images.image(.albumThumbnail, "shown") == nil)
        #expect(images.image(.albumThumbnail, "other") != nil)
        #expect(store.albums.assets(of: "holds").map(\.id) == ["b"])
        try await store.close()
    }

    @Test(.verifies("MED-18", "IMG-11"))
    func `a deleted asset and a changed album end images of a clock that was ahead`()
        async throws
    {
        let (files, now) = (InMemoryFileSystem(), Int64(1_771_756_214_425))
        func open(ahead: Int64) async throws -> OfflineStore {
            try await OfflineStore.open(
                at: URL(filePath: "/log"),
                environment: LogEnvironment(fileSystem: files, now: { now + ahead }))
        }
        var store = try await open(ahead: 31_536_000_000)
        try await store.assets.putAll([asset("a"), asset("b")])
        for id in ["s", "t", "u"] {
            try await store.albums.put(album(id))
            try await store.images.store([1], .albumThumbnail, id)
        }
        try await store.images.store([1], .thumbnail, "a")
        try await store.images.store([1], .preview, "a")
        try await store.close()
        store = try await open(ahead: 0)
        try await store.assets.delete(["a"])
        try await store.albums.link("s", assets: ["b"])
        var changed = album("t")
        changed.name = "other"
        try await store.albums.put(changed)
        try await store.albums.delete(["u"])
        let images = store.view(ImagesView.self)
        for kind in ImageKind.allCases { #expect(images.size(of: kind).images == 0, "\(kind)") }
        #expect(store.assets.asset("a").current == nil)
        try await store.close()
    }

    @Test(.verifies("MED-16", "MED-18"))
    func `local copies that the app deletes are removed from the view, the assets remain`()
        async throws
    {
        let store = try await openStore()
        let properties = Array(#"{"exif":7}"#.utf8)
        try await store.assets.put(asset("a", remote: "1", local: "l-1"), properties: properties)
        try await store.assets.put(asset("b", remote: "2", local: "l-2", daysAgo: 99))
        try await store.assets.put(asset("c", remote: "3", local: "l-3", daysAgo: 98))
        let library = Library(["l-1", "l-2", "l-3"], refusing: ["l-2"])
        let freed = try await store.assets.freeUpSpace(
            CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
        ) {
            try await library.delete($0)
        }
        #expect(freed == ["a", "c"])
        #expect(await library.asked == [["l-1", "l-2", "l-3"]])
        #expect(store.assets.asset("a").current == asset("a", remote: "1"))
        #expect(try await store.assets.properties(of: "a") == properties)
        #expect(store.assets.asset(localId: "l-1").current == nil)
        #expect(store.assets.asset(localId: "l-2").current?.id == "b")
        #expect(
            await store.assets.cleanUpCandidates(
                CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
            ).map(\.id) == [
                "b"
            ])
        #expect(store.outboxCount.current == 0)
        try await store.close()
    }

    @Test(.verifies("MED-16"))
    func `deletions run in portions; those reported before an error remain recorded`() async throws
    {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        let ids = (0..<1_200).map { "l-\($0)" }
        for start in stride(from: 0, to: 1_200, by: 400) {
            try await store.assets.putAll(
                (start..<start + 400).map { asset("a-\($0)", remote: "r-\($0)", local: "l-\($0)") })
        }
        let library = Library(Set(ids), fails: true)
        await #expect(throws: AppError.self) {
            try await store.assets.freeUpSpace(
                CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
            ) {
                try await library.delete($0)
            }
        }
        #expect(await library.asked.map(\.count) == [500, 500])
        #expect(
            await store.assets.cleanUpCandidates(
                CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
            ).count == 700)
        try await store.close()
        // Killed after the deletion and before its record: a missing copy counts as deleted.
        store = try await openStore(files)
        let again = Library([])
        let freed = try await store.assets.freeUpSpace(
            CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
        ) {
            try await again.delete($0)
        }
        #expect(freed.count == 700)
        #expect(
            await store.assets.cleanUpCandidates(
                CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
            ).isEmpty)
        #expect(store.assets.count.current == 1_200)
        try await store.close()
    }

    @Test(.verifies("MED-16"))
    func `assets with large properties take several commits`() async throws {
        let store = try await openStore()
        let text = String(repeating: "x", count: 900_000)
        for number in 0..<8 {
            try await store.assets.put(
                asset("\(number)", remote: "r\(number)", local: "l\(number)"),
                properties: Array(#"{"x":"\#(text)"}"#.utf8))
        }
        let freed = try await store.assets.freeUpSpace(
            CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
        ) { $0 }
        #expect(freed.count == 8)
        let kept = try #require(try await store.assets.properties(of: "7"))
        #expect(kept.count > 900_000)
        try await store.close()
    }

    @Test(.verifies("MED-17"))
    func `changes during a deletion take effect`() async throws {
        let store = try await openStore()
        try await store.assets.putAll([
            asset("same", remote: "1", local: "l-1"), asset("changed", remote: "2", local: "l-2"),
            asset("deleted", remote: "3", local: "l-3"), asset("moved", remote: "4", local: "l-4"),
        ])
        let freed = try await store.assets.freeUpSpace(
            CleanUpSettings(cutoffDaysAgo: 1, keepUnverified: false)
        ) { ids in
            var changed = asset("changed", remote: "2", local: "l-2", favorite: true)
            changed.fileName = "new.jpg"
            try await store.assets.put(changed)
            try await store.assets.delete(["deleted"])
            try await store.assets.put(asset("moved", remote: "4", local: "l-5"))
            return ids
        }
        #expect(Set(freed) == ["same", "changed"])
        let changed = store.assets.asset("changed").current
        #expect(changed?.fileName == "new.jpg")
        #expect(changed?.localId == nil)
        #expect(store.assets.asset("deleted").current == nil)
        #expect(store.assets.asset("moved").current?.localId == "l-5")
        try await store.close()
    }
}
