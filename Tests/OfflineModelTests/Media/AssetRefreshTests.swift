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
