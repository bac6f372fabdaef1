// The refresh of a user's assets from the server: first all, then changes. Spec/model/media.md, MED-20.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private func open(_ files: any FileSystem = InMemoryFileSystem()) async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), compaction: nil,
        environment: LogEnvironment(fileSystem: files, sleep: noTimers))
}

private func asset(
    _ id: String, remote: String? = nil, local: String? = nil, owner: String = "ada",
    checksum: String? = nil, name: String = "", properties: String? = nil
) -> AssetStored {
    let time = ZonedTime(Timestamp(milliseconds: 1_700_000_000_000))
    return AssetStored(
        Asset(
            id: id, remoteId: remote ?? "r-\(id)", localId: local, ownerId: owner,
            checksum: checksum ?? id,
            type: .image, fileName: name, fileCreatedAt: time, fileModifiedAt: time,
            updatedAt: time),
        properties: properties.map { Array($0.utf8) })
}

@Suite struct AssetRefreshTests {
    @Test(.verifies("MED-20", "SET-3"))
    func `the first refresh stores all, the next sends the tag, and no change records no event`()
        async throws
    {
        let store = try await open()
        let first = try await store.assets.refresh(of: "ada") { eTag, last in
            #expect(eTag == nil)
            #expect(last == nil)
            return .all([asset("a"), asset("b")], eTag: #""v1""#)
        }
        #expect(first.stored == 2)
        #expect(first.gone == [])
        #expect(store.settings.tryGet(.assetETag) == #""v1""#)
        #expect(store.deviceMedia.etag(of: "ada").current?.assetCount == 2)
        let position = await store.events.lastDurable
        try await store.assets.refresh(of: "ada") { eTag, last in
            #expect(eTag == #""v1""#)
            #expect(last?.assetCount == 2)
            return .unchanged
        }
        #expect(await store.events.lastDurable == position)
        let third = try await store.assets.refresh(of: "ada") { _, _ in
            .changed([asset("b", name: "new"), asset("c")], goneRemoteIds: ["r-a"], eTag: nil)
        }
        #expect(third.stored == 2)
        #expect(third.gone == ["a"])
        #expect(store.assets.assets(ownedBy: "ada").current.map(\.fileName) == ["new", ""])
        #expect(store.settings.tryGet(.assetETag) == nil)
        #expect(store.deviceMedia.etag(of: "ada").current?.assetCount == 2)
    }

    @Test(.verifies("MED-20"))
    func `assets that the server has removed are removed, unless there is a copy on the device`()
        async throws
    {
        let store = try await open()
        try await store.assets.putAll([
            asset("both", local: "l1", properties: #"{"camera":"x"}"#), asset("server"),
            asset("other", owner: "grace"),
        ])
        let refresh = try await store.assets.refresh(of: "ada") { _, _ in
            .all([asset("new")], eTag: nil)
        }
        #expect(Set(refresh.gone) == ["both", "server"])
        let kept = try #require(store.assets.asset("both").current)
        #expect(kept.localId == "l1")
        #expect(kept.remoteId == nil)
        #expect(try await store.assets.properties(of: "both") == Array(#"{"camera":"x"}"#.utf8))
        #expect(store.assets.asset("server").current == nil)
        #expect(store.assets.asset("other").current != nil)
        let again = try await store.assets.refresh(of: "ada") { _, _ in
            .changed([], goneRemoteIds: ["r-new", "r-both"], eTag: nil)
        }
        #expect(again.gone == ["new"])
        #expect(store.assets.assets(ownedBy: "ada").current.map(\.id) == ["both"])
    }

    @Test(.verifies("MED-20"))
    func `an asset with another id on the server keeps its copy on the device`()
        async throws
    {
        let store = try await open()
        // One was backed up by this device, one was just uploaded, one has a known id.
        try await store.assets.putAll([
            asset("a", remote: "r1", local: "l1", checksum: "c1"),
            AssetStored(
                {
                    var asset = asset("b", local: "l2", checksum: "c2").asset
                    asset.remoteId = nil
                    return asset
                }()),
            asset("c", remote: "r3", local: "l3", checksum: "c3"),
        ])
        for _ in 0..<2 {
            let refresh = try await store.assets.refresh(of: "ada") { _, _ in
                .all(
                    [
                        asset("s1", remote: "r1", checksum: "edited"),
                        asset("s2", remote: "r2", checksum: "c2"),
                        asset("c", remote: "r3", checksum: "c3"),
                    ], eTag: nil)
            }
            #expect(refresh.gone == [])
            let assets = store.assets.assets(ownedBy: "ada").current
            #expect(assets.map(\.id) == ["a", "b", "c"])
            #expect(assets.map(\.localId) == ["l1", "l2", "l3"])
            #expect(assets.map(\.remoteId) == ["r1", "r2", "r3"])
            #expect(assets.map(\.checksum) == ["edited", "c2", "c3"])
        }
    }

    @Test(.verifies("MED-20"))
    func `no two of the server's assets become one`() async throws {
        let store = try await open()
        try await store.assets.putAll([
            asset("a", remote: "r1", checksum: "old"),
            AssetStored(
                {
                    var asset = asset("device", local: "l1", checksum: "shared").asset
                    asset.remoteId = nil
                    return asset
                }()),
        ])
        let server = [
            asset("s1", remote: "r1", checksum: "new"), asset("s2", remote: "r2", checksum: "old"),
            asset("s3", remote: "r3", checksum: "shared"),
            asset("s4", remote: "r4", checksum: "shared"), asset("s5", remote: "r5", checksum: ""),
        ]
        let refresh = try await store.assets.refresh(of: "ada") { _, _ in .all(server, eTag: "v1") }
        #expect(refresh.stored == 3)
        #expect(refresh.leftOut.map(\.remoteId) == ["r4", "r5"])
        #expect(refresh.gone == [])
        func remoteIds() -> [String: String?] {
            var ids: [String: String?] = [:]
            for asset in store.view(AssetsView.self).all { ids[asset.id] = asset.remoteId }
            return ids
        }
        #expect(remoteIds() == ["a": "r1", "s2": "r2", "device": "r3"])
        #expect(store.assets.asset("device").current?.localId == "l1")
        // What has a key of another may become storable without a change: all is requested again.
        #expect(store.settings.tryGet(.assetETag) == nil)
        let next = try await store.assets.refresh(of: "ada") { _, _ in
            .all(server.filter { $0.asset.remoteId != "r3" }, eTag: "v2")
        }
        #expect(next.leftOut.map(\.remoteId) == ["r5"])
        #expect(remoteIds() == ["a": "r1", "s2": "r2", "device": "r4"])
        #expect(store.settings.tryGet(.assetETag) == "v2")
    }

    @Test(.verifies("MED-20", "MED-22", "MED-23"))
    func `a response without checksums keeps the computed one, unless the file has changed`()
        async throws
    {
        let store = try await open()
        let taken: Int64 = 1_700_000_000_000
        func photo(_ number: Int, checksum: String? = nil, modified: Int64 = taken) -> Asset {
            var asset = asset("p\(number)", remote: "r\(number)").asset
            asset.fileModifiedAt = ZonedTime(Timestamp(milliseconds: modified))
            asset.checksum = checksum
            return asset
        }
        func refresh(_ answer: [Asset]) async throws -> [AssetFault] {
            try await store.assets.refresh(of: "ada") { _, _ in
                .changed(answer, goneRemoteIds: [], eTag: "v")
            }.leftOut
        }
        func checksums() -> [String?] {
            store.assets.assets(ownedBy: "ada").current.map(\.checksum)
        }
        func freeable() async -> [String] {
            var ids: [String] = []
            for hashes in [DeviceHashes.checksums, .undeclared, .ofAnotherKind] {
                let settings = CleanUpSettings(cutoffDaysAgo: 1, deviceHashes: hashes)
                ids += await store.assets.cleanUpCandidates(settings).map(\.id)
            }
            return ids
        }
        try await store.assets.putAll(
            (1...2).map {
                var asset = photo($0)
                asset.localId = "l\($0)"
                return asset
            })
        #expect(await freeable() == [])
        try await store.assets.setChecksums(["p1": "c1", "p2": "c2"])
        #expect(await freeable() == [], "no record of the files")
        let time = ZonedTime(Timestamp(milliseconds: taken))
        try await store.deviceMedia.put(
            (1...2).map { .ios(id: "l\($0)", hash: "c\($0)", modifiedTime: time) })
        #expect(await freeable() == ["p1", "p2", "p1", "p2", "p1", "p2"])
        let position = await store.events.lastDurable
        #expect(try await refresh([photo(1), photo(2)]) == [])
        #expect(checksums() == ["c1", "c2"])
        let end = await store.events.lastDurable
        #expect(end.rawValue == position.rawValue + 2, "only the tags")
        // The file of one has changed on the server: the copy on the device is another one.
        #expect(try await refresh([photo(1, modified: taken + 1), photo(2)]) == [])
        #expect(checksums() == [nil, "c2"])
        #expect(await freeable() == ["p2", "p2", "p2"])
        // The server says that another photo has the content.
        #expect(try await refresh([photo(2), photo(3, checksum: "c2")]) == [])
        #expect(checksums() == [nil, nil, "c2"])
        try await store.close()
    }

    @Test(.verifies("MED-20"))
    func `a kept checksum that another asset has keeps no asset out`() async throws {
        let store = try await open()
        var moved = asset("m", remote: "r1", owner: "grace", checksum: "c").asset
        try await store.assets.putAll([asset("x", remote: "r2", checksum: "c").asset, moved])
        (moved.ownerId, moved.checksum) = ("ada", nil)
        let answer = moved
        let refresh = try await store.assets.refresh(of: "ada") { _, _ in
            .changed([answer], goneRemoteIds: [], eTag: "v")
        }
        #expect(refresh.leftOut == [])
        #expect(store.assets.assets(ownedBy: "ada").current.map(\.checksum) == [nil, "c"])
        try await store.close()
    }

    @Test(.verifies("MED-20"))
    func `a checksum that moves to another asset beside a deletion is stored`() async throws {
        let store = try await open()
        try await store.assets.putAll([
            asset("x", remote: "r1", checksum: "c"), asset("y", remote: "r2", checksum: "d"),
        ])
        let refresh = try await store.assets.refresh(of: "ada") { _, _ in
            .changed([asset("y", remote: "r2", checksum: "c")], goneRemoteIds: ["r1"], eTag: "v1")
        }
        #expect(refresh.leftOut == [])
        #expect(refresh.gone == ["x"])
        #expect(store.assets.assets(ownedBy: "ada").current.map(\.checksum) == ["c"])
    }

    @Test(.verifies("MED-20"))
    func `an asset whose id another one has got is stored beside it`() async throws {
        let store = try await open()
        try await store.assets.putAll([asset("a", remote: "r1", checksum: "c")])
        // The server replaces one asset by another with the same bytes, then has the first again.
        try await store.assets.refresh(of: "ada") { _, _ in
            .changed([asset("b", remote: "r2", checksum: "c")], goneRemoteIds: ["r1"], eTag: "v1")
        }
        try await store.assets.refresh(of: "ada") { _, _ in
            .changed([asset("a", remote: "r1", checksum: "d")], goneRemoteIds: [], eTag: "v2")
        }
        let assets = store.assets.assets(ownedBy: "ada").current
        #expect(assets.map(\.remoteId) == ["r2", "r1"])
        #expect(assets.map(\.id) == ["a", "r1"])
    }

    /// A server of one user, and the photos of a device.
    private struct World {
        var server: [String: AssetStored] = [:]
        var snapshots: [String: [String: AssetStored]] = [:]
        var localIds: Set<String> = []

        mutating func change(_ choices: inout Choices, _ store: OfflineStore) async throws {
            for _ in 0..<choices.int(in: 0...4) {
                let remote = "r\(choices.int(in: 0...5))"
                // Few checksums, so that many assets share or exchange them; an empty one is invalid.
                let checksum = choices.int(in: 0...9) == 0 ? "" : "c\(choices.int(in: 0...5))"
                let isDeletion = choices.int(in: 0...3) == 0
                var stored = asset(
                    "s-\(remote)", remote: remote, checksum: checksum,
                    name: "\(choices.int(in: 0...3))")
                // A server that sends no checksum, of a file that has changed or not.
                if choices.int(in: 0...4) == 0 { stored.asset.checksum = nil }
                if choices.bool() {
                    stored.asset.fileModifiedAt = ZonedTime(Timestamp(milliseconds: 0))
                }
                server[remote] = isDeletion ? nil : stored
            }
            guard choices.int(in: 0...2) == 0 else { return }
            let number = localIds.count
            var photo = asset(
                "d\(number)", local: "l\(number)", checksum: "c\(choices.int(in: 0...5))"
            ).asset
            photo.remoteId = nil
            // The key may be taken.
            do { try await store.assets.put(photo) } catch is EventError { return }
            localIds.insert("l\(number)")
        }

        /// The answer to a request with a tag.
        mutating func answer(_ eTag: String?, _ choices: inout Choices) -> AssetUpdate {
            let tag = "v\(snapshots.count)"
            defer { snapshots[tag] = server }
            let all = server.values.sorted { $0.asset.id < $1.asset.id }
            guard let eTag, let known = snapshots[eTag], choices.int(in: 0...4) > 0 else {
                return .all(all, eTag: tag)
            }
            return .changed(
                all.filter { known[$0.asset.remoteId ?? ""] != $0 },
                goneRemoteIds: known.keys.filter { server[$0] == nil }, eTag: tag)
        }
    }

    @Test(.verifies("MED-20"))
    func `after any answers the library is the server's and the device's, each asset once`()
        async throws
    {
        var (leftOut, merged) = (0, 0)
        for seed in 0..<60 {
            var choices = Choices(seed: UInt64(seed) &+ 0x53)
            let store = try await open()
            var world = World()
            var reported: Set<String> = []
            for step in 0..<12 {
                try await world.change(&choices, store)
                var answers = choices
                var present = world
                let refresh = try await store.assets.refresh(of: "ada") { eTag, _ in
                    present.answer(eTag, &answers)
                }
                (choices, world) = (answers, present)
                let left = Set(refresh.leftOut.compactMap(\.remoteId))
                reported.formUnion(left)
                leftOut += left.count
                let rows = Array(store.view(AssetsView.self).all)
                merged += rows.count { $0.remoteId != nil && $0.localId != nil }
                let place: Comment = "seed \(seed), step \(step)"
                let checksums = rows.compactMap(\.checksum)
                #expect(Set(checksums).count == checksums.count, place)
                #expect(rows.compactMap(\.localId).sorted() == world.localIds.sorted(), place)
                let remoteIds = rows.compactMap(\.remoteId)
                #expect(Set(remoteIds).count == remoteIds.count, place)
                #expect(Set(remoteIds).isSubset(of: world.server.keys), place)
                for (remote, stored) in world.server where !left.contains(remote) {
                    let row = rows.first { $0.remoteId == remote }
                    // An invalid asset is reported once, and again when it changes.
                    guard stored.asset.checksum != "" else {
                        #expect(reported.contains(remote), place)
                        continue
                    }
                    #expect(
                        stored.asset.checksum == nil || row?.checksum == stored.asset.checksum,
                        place)
                    #expect(row?.fileName == stored.asset.fileName, place)
                }
            }
            try await store.close()
        }
        #expect(leftOut > 50)
        #expect(merged > 50)
    }

    @Test(.verifies("MED-20"))
    func `an asset stored during the request does not count as removed`() async throws {
        let store = try await open()
        try await store.assets.putAll([asset("old"), asset("moved")])
        let refresh = try await store.assets.refresh(of: "ada") { _, _ in
            try await store.assets.putAll([asset("uploaded"), asset("moved", remote: "r9")])
            return .all([], eTag: "v1")
        }
        #expect(Set(refresh.gone) == ["old", "moved"])
        #expect(
            Set(store.assets.assets(ownedBy: "ada").current.map(\.id)) == ["uploaded", "moved"])
    }

    @Test(.verifies("MED-20"))
    func `after two concurrent refreshes no tag is left, so that the next one requests all`()
        async throws
    {
        let store = try await open()
        try await store.assets.refresh(of: "ada") { _, _ in
            try await store.assets.refresh(of: "ada") { _, _ in
                .all([asset("newer")], eTag: "v2")
            }
            return .all([asset("older")], eTag: "v1")
        }
        await #expect(throws: CancellationError.self) {
            try await store.assets.refresh(of: "ada") { eTag, _ in
                #expect(eTag == nil)
                throw CancellationError()
            }
        }
    }

    @Test(.verifies("MED-20"))
    func `a tag that no refresh has recorded is not sent`() async throws {
        let store = try await open()
        try await store.assets.refresh(of: "grace") { _, _ in .all([], eTag: "of grace") }
        try await store.assets.refresh(of: "ada") { _, _ in .all([], eTag: "of ada") }
        try await store.deviceMedia.deleteETags(of: ["ada"])
        try await store.deviceMedia.put(
            AssetETag(id: "ada", assetCount: 1, time: ZonedTime(Timestamp(milliseconds: 0))))
        for user in ["ada", "grace"] {
            await #expect(throws: CancellationError.self) {
                try await store.assets.refresh(of: user) { eTag, _ in
                    #expect(eTag == nil)
                    throw CancellationError()
                }
            }
        }
    }

    @Test(.verifies("MED-20"))
    func `the tag of one user is not sent for another`() async throws {
        let store = try await open()
        for user in ["ada", "grace", "ada", "ada"] {
            try await store.assets.refresh(of: user) { _, _ in .all([], eTag: "of \(user)") }
            for other in ["ada", "grace"] {
                await #expect(throws: CancellationError.self) {
                    try await store.assets.refresh(of: other) { eTag, _ in
                        #expect(eTag == (other == user ? "of \(user)" : nil))
                        throw CancellationError()
                    }
                }
            }
        }
    }

    @Test(.verifies("MED-20"))
    func `an interrupted refresh records no tag without all its assets`()
        async throws
    {
        let files = SimulatedFileSystem()
        let store = try await open(files)
        try await store.assets.putAll([asset("old")])
        files.record()
        let text = String(repeating: "x", count: 300_000)
        try await store.assets.refresh(of: "ada") { _, _ in
            .all((0..<8).map { asset("\($0)", name: text) }, eTag: "v1")
        }
        var (with, without) = (0, 0)
        for point in files.crashPoints {
            var machines = [point.afterKill()]
            point.forEachState(in: .init(combinationsMax: 16, samples: 4)) { machine, _ in
                machines.append(machine)
            }
            for machine in machines {
                let again = try await open(machine)
                let count = again.assets.count.current
                if again.settings.tryGet(.assetETag) == nil {
                    without += 1
                    #expect(again.deviceMedia.etag(of: "ada").current == nil)
                } else {
                    with += 1
                    #expect(count == 8)
                    #expect(again.assets.asset("old").current == nil)
                    #expect(again.deviceMedia.etag(of: "ada").current?.assetCount == 8)
                }
                try await again.close()
            }
        }
        #expect(with > 0)
        #expect(without > 0)
    }
}

/// A screen of an app, isolated to the main actor.
@MainActor private final class Gallery {
    let store: OfflineStore
    var requests = 0
    var deleted: [String] = []

    init(_ store: OfflineStore) { self.store = store }

    func refresh() async throws {
        try await store.assets.refresh(of: "u") { _, _ in
            requests += 1
            return .unchanged
        }
        try await store.assets.freeUpSpace { localIds in
            deleted += localIds
            return localIds
        }
    }
}

@Suite struct MainActorTests {
    @Test(.verifies("MED-20")) @MainActor
    func `the closures of a main actor's type are called in its isolation`() async throws {
        let gallery = Gallery(try await OfflineStore.inMemory())
        try await gallery.refresh()
        #expect(gallery.requests == 1)
        #expect(gallery.deleted == [])
    }
}
