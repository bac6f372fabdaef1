// The views of photos, albums and the device's media library: their queries after a history, and the events
// that they still need.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

private func time(_ milliseconds: Int64) -> ZonedTime {
    ZonedTime(Timestamp(milliseconds: milliseconds))
}

private func asset(
    _ id: String, remote: String? = nil, local: String? = nil, owner: String = "u",
    checksum: String? = nil, taken: Int64 = 0
) -> Asset {
    Asset(
        id: id, remoteId: remote, localId: local, ownerId: owner, checksum: checksum ?? id,
        type: .image, fileName: "\(id).jpg", fileCreatedAt: time(taken), fileModifiedAt: time(0),
        updatedAt: time(0))
}

private func album(_ id: String, remote: String? = nil) -> Album {
    Album(
        id: id, remoteId: remote, ownerId: "u", name: "Album \(id)", createdAt: time(0),
        modifiedAt: time(0))
}

/// Events with times of their own, in the order in which they were added.
private struct Bench {
    var history = EventHistory()
    var assets = AssetsView()
    var albums = AlbumsView()
    var device = DeviceMediaView()

    @discardableResult
    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws -> Event {
        let event = history.addOwn(
            try EventDraft(payload, time: Timestamp(milliseconds: milliseconds)))
        assets.fold(event)
        albums.fold(event)
        device.fold(event)
        return event
    }

    mutating func store(_ assets: Asset..., at milliseconds: Int64) throws {
        for asset in assets { try add(AssetStored(asset), at: milliseconds) }
    }

    mutating func link(_ album: String, _ assets: String..., at milliseconds: Int64) throws {
        try add(AlbumLinked(AlbumLinks(albumId: album, assetIds: assets)), at: milliseconds)
    }

    func taken(_ start: Int64, _ end: Int64) -> [String] {
        assets.assets(
            takenFrom: Timestamp(milliseconds: start), through: Timestamp(milliseconds: end)
        ).map(\.id)
    }

    func superseded(by index: Int) -> Retention {
        .superseded(by: [history.events[index].lwwTimestamp])
    }
}

@Suite struct MediaViewTests {
    @Test(.verifies("MED-2", "MED-3", "VIEW-21"))
    func `an asset is the one stored last, and nil after its removal`() throws {
        var bench = Bench()
        try bench.store(asset("a", remote: "new", local: "1"), at: 2)
        try bench.store(asset("a", remote: "old"), at: 1)
        #expect(bench.assets["a"] == asset("a", remote: "new", local: "1"))
        #expect(bench.assets.asset(remoteId: "old") == nil)
        try bench.add(AssetRemoved(assetId: "a"), at: 1)
        #expect(bench.assets.count == 1)
        try bench.store(asset("a", checksum: "z"), at: 3)
        // No value of the old asset remains.
        #expect(bench.assets["a"] == asset("a", checksum: "z"))
        #expect(bench.assets.asset(remoteId: "new") == nil)
        #expect(bench.assets.asset(localId: "1") == nil)
        #expect(bench.assets.asset(ownerId: "u", checksum: "a") == nil)
        #expect(bench.assets.asset(ownerId: "u", checksum: "z")?.id == "a")
        try bench.add(AssetRemoved(assetId: "a"), at: 4)
        #expect(bench.assets["a"] == nil)
        #expect(bench.assets.count == 0)
        #expect(bench.assets.asset(ownerId: "u", checksum: "z") == nil)
        #expect(Array(bench.assets.assets(ownedBy: "u")).isEmpty)
        #expect(bench.taken(0, 9).isEmpty)
    }

    @Test(.verifies("MED-3"))
    func `a range of dates includes both ends, and its assets are sorted`() throws {
        var bench = Bench()
        try bench.store(
            asset("d", taken: 20), asset("b", taken: 10), asset("c", taken: 10),
            asset("a", owner: "v", taken: 30), at: 1)
        #expect(bench.taken(10, 20) == ["b", "c", "d"])
        #expect(bench.taken(11, 19).isEmpty)
        #expect(bench.taken(20, 10).isEmpty)
        #expect(bench.taken(10, 10) == ["b", "c"])
        #expect(bench.taken(.min, .max).count == 4)
        #expect(bench.assets.assets(ownedBy: "u").map(\.id) == ["b", "c", "d"])
        #expect(Array(bench.assets.assets(ownedBy: "nobody")).isEmpty)
        #expect(bench.assets.all.map(\.id) == ["b", "c", "d", "a"])
    }

    @Test(.verifies("MED-4"))
    func `of imported assets with one key the one stored last is found`() throws {
        var bench = Bench()
        try bench.store(asset("a", remote: "r", local: "1", checksum: "x"), at: 3)
        try bench.store(asset("b", remote: "r", local: "1", checksum: "x"), at: 5)
        try bench.store(asset("c", remote: "r"), at: 4)
        func found() -> [String?] {
            [
                bench.assets.asset(remoteId: "r")?.id, bench.assets.asset(localId: "1")?.id,
                bench.assets.asset(ownerId: "u", checksum: "x")?.id,
            ]
        }
        #expect(found() == ["b", "b", "b"])
        #expect(bench.assets.count == 3)
        try bench.add(AssetRemoved(assetId: "b"), at: 6)
        #expect(found() == ["c", "a", "a"])
        try bench.store(asset("c", remote: "s"), at: 7)
        #expect(found() == ["a", "a", "a"])
        try bench.add(AssetRemoved(assetId: "a"), at: 8)
        #expect(found() == [nil, nil, nil])
    }

    @Test(.verifies("MED-3", "MED-4", "MED-9", "VIEW-10"))
    func `every key finds the same asset as a search of all assets`() throws {
        try Property.check(
            "index = search", runs: 400, covering: ["removed", "several with one key"]
        ) { choices in
            var history = EventHistory()
            for _ in 0..<choices.int(in: 1...30) {
                let payload: any EventPayload =
                    choices.bool(oneIn: 5)
                    ? AssetRemoved(assetId: choices.asset().id) : AssetStored(choices.asset())
                var draft = try EventDraft(payload)
                draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...9)))
                draft.id = UUID(integer: UInt128(choices.bits()))
                history.addOwn(draft)
                if payload is AssetRemoved { choices.count("removed") }
            }
            let folded = AssetsView(folding: history.events)
            try Self.check(folded, history.events, &choices)
            let read = try AssetsView(encodedState: try #require(try folded.encodedState()))
            try Self.check(read, history.events, &choices)
        }
    }

    /// Compares a view with the simplest model: the last event of each asset in an array.
    private static func check(
        _ view: AssetsView, _ events: [Event], _ choices: inout Choices
    ) throws {
        var last: [EntityID: Event] = [:]
        for event in events.sorted(by: { $0.lwwTimestamp < $1.lwwTimestamp }) {
            last[EntityID(event.subject ?? "")] = event
        }
        // The asset stored last is first.
        let all = try last.values.filter { $0.type == AssetStored.type }
            .sorted { $0.lwwTimestamp > $1.lwwTimestamp }
            .map { try AssetStored(json: $0.content.json ?? []).asset }
        func same(_ one: String?, _ other: String?) -> Bool {
            one.map(EntityID.init) == other.map(EntityID.init)
        }
        try #require(view.count == all.count)
        for asset in all {
            try #require(view[asset.id] == asset)
            if let remoteId = asset.remoteId {
                let holders = all.filter { same($0.remoteId, remoteId) }
                try #require(view.asset(remoteId: remoteId) == holders.first)
                if holders.count > 1 { choices.count("several with one key") }
            }
            if let localId = asset.localId {
                try #require(
                    view.asset(localId: localId) == all.first { same($0.localId, localId) })
            }
            try #require(
                view.asset(ownerId: asset.ownerId, checksum: asset.checksum ?? "")
                    == all.first {
                        same($0.ownerId, asset.ownerId) && same($0.checksum, asset.checksum)
                    })
        }
        let ordered = all.sorted {
            ($0.fileCreatedAt.moment, EntityID($0.id)) < ($1.fileCreatedAt.moment, EntityID($1.id))
        }
        try #require(Array(view.all) == ordered)
        for owner in ["u", "caf\u{E9}", "cafe\u{301}"] {
            try #require(
                Array(view.assets(ownedBy: owner)) == ordered.filter { same($0.ownerId, owner) })
        }
        let (start, end) = (
            Timestamp(milliseconds: Int64(choices.int(in: -4...10))),
            Timestamp(milliseconds: Int64(choices.int(in: -4...10)))
        )
        try #require(
            Array(view.assets(takenFrom: start, through: end))
                == ordered.filter {
                    start <= $0.fileCreatedAt.moment && $0.fileCreatedAt.moment <= end
                })
    }

    // MARK: Albums

    @Test(.verifies("MED-7", "VIEW-22"))
    func `an album has its linked assets and users, and an asset has its albums`()
        throws
    {
        var bench = Bench()
        try bench.add(AlbumStored(album("summer", remote: "r")), at: 1)
        try bench.link("summer", "b", "a", at: 2)
        try bench.link("pets", "a", at: 2)
        try bench.add(
            AlbumLinked(AlbumLinks(albumId: "summer", userIds: ["w", "v"])), at: 2)
        #expect(bench.albums.assetIDs(of: "summer") == ["a", "b"])
        #expect(bench.albums.userIDs(of: "summer") == ["v", "w"])
        #expect(bench.albums.albums(containing: "a").map(\.id) == ["summer"])
        #expect(bench.albums.album(remoteId: "r")?.id == "summer")
        // The links arrived before their album.
        #expect(bench.albums.assetIDs(of: "pets").isEmpty)
        try bench.add(AlbumStored(album("pets")), at: 1)
        #expect(bench.albums.albums(containing: "a").map(\.id) == ["pets", "summer"])
        try bench.add(
            AlbumUnlinked(AlbumLinks(albumId: "summer", assetIds: ["a"], userIds: ["v"])), at: 3)
        #expect(bench.albums.assetIDs(of: "summer") == ["b"])
        #expect(bench.albums.userIDs(of: "summer") == ["w"])
        // Storing the album again keeps the links.
        try bench.add(AlbumStored(album("summer")), at: 4)
        #expect(bench.albums.album(remoteId: "r") == nil)
        #expect(bench.albums.assetIDs(of: "summer") == ["b"])
        try bench.add(AlbumRemoved(albumId: "summer"), at: 5)
        #expect(bench.albums.albums.map(\.id) == ["pets"])
        try bench.add(AlbumStored(album("summer")), at: 6)
        #expect(bench.albums.assetIDs(of: "summer").isEmpty)
        #expect(bench.albums.userIDs(of: "summer").isEmpty)
    }

    @Test(.verifies("MED-7"))
    func `a removed asset leaves its albums, and does not return by itself`()
        throws
    {
        var bench = Bench()
        try bench.add(AlbumStored(album("summer")), at: 1)
        try bench.link("summer", "a", "b", at: 2)
        try bench.add(AssetRemoved(assetId: "a"), at: 3)
        #expect(bench.albums.assetIDs(of: "summer") == ["b"])
        #expect(bench.albums.albums(containing: "a").isEmpty)
        try bench.store(asset("a"), at: 4)
        try bench.link("summer", "a", at: 2)
        #expect(bench.albums.assetIDs(of: "summer") == ["b"])
        try bench.link("summer", "a", at: 5)
        #expect(bench.albums.assetIDs(of: "summer") == ["a", "b"])
    }

    // MARK: The small collections

    @Test(.verifies("MED-10", "VIEW-23"))
    func `the small collections have the winner of each key`() throws {
        var bench = Bench()
        let camera = BackupAlbum(id: "1", name: "Camera", selection: .include, lastBackup: time(5))
        try bench.add(BackupAlbumStored(camera), at: 2)
        try bench.add(
            BackupAlbumStored(BackupAlbum(id: "1", name: "Old", selection: .exclude)), at: 1)
        try bench.add(DuplicateStored(deviceAssetId: "d"), at: 1)
        try bench.add(ETagStored(AssetETag(id: "u", assetCount: .max, time: time(7))), at: 1)
        let android = DeviceAsset.android(id: "x", hash: "h")
        let ios = DeviceAsset.ios(id: "x", hash: "i", modifiedTime: time(1))
        try bench.add(DeviceAssetStored(android), at: 1)
        try bench.add(DeviceAssetStored(ios), at: 1)
        #expect(bench.device.backupAlbums == [camera])
        #expect(bench.device.backupAlbum("1") == camera)
        #expect(bench.device.isDuplicate("d"))
        #expect(bench.device.duplicateIDs == ["d"])
        #expect(bench.device.etag(of: "u")?.assetCount == .max)
        #expect(bench.device.deviceAsset("x", on: .android) == android)
        #expect(bench.device.deviceAssets(on: .ios) == [ios])
        try bench.add(DeviceAssetRemoved(platform: .ios, assetId: "x"), at: 2)
        try bench.add(BackupAlbumRemoved(albumId: "1"), at: 2)
        try bench.add(DuplicateRemoved(deviceAssetId: "d"), at: 2)
        try bench.add(ETagRemoved(userId: "u"), at: 2)
        #expect(bench.device.deviceAsset("x", on: .ios) == nil)
        #expect(bench.device.deviceAsset("x", on: .android) == android)
        // The removal at 2 is after the album at 2: same time, later sequence.
        #expect(bench.device.backupAlbums.isEmpty)
        #expect(bench.device.etag(of: "u") == nil)
        #expect(!bench.device.isDuplicate("d"))
        #expect(bench.device.rows().count == 1)
    }

    // MARK: All together

    private static func history(
        _ choices: inout Choices, _ count: ClosedRange<Int>
    ) throws -> EventHistory {
        var history = EventHistory()
        for _ in 0..<choices.int(in: count) {
            var draft = try EventDraft(choices.mediaPayload())
            if choices.bool(oneIn: 15) { draft.data = .json(Array("{}".utf8)) }
            draft.id = UUID(integer: UInt128(choices.bits()) << 64 | UInt128(choices.bits()))
            draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...5)))
            if choices.bool() {
                history.addOwn(draft)
            } else {
                history.addForeign(draft, source: UUID(integer: 2), sequence: 7)
            }
        }
        choices.note("\(history.events.map { "\($0.type) \($0.lwwTimestamp)" })")
        return history
    }

    @Test(.verifies("MED-2", "MED-7", "MED-10", "VIEW-1", "VIEW-2", "VIEW-10"))
    func `any permutation of a history folds to the same states, rows and query results`() throws {
        func state<View: ListableView>(_ view: View.Type, _ events: [Event]) throws -> [[UInt8]] {
            let view = View(folding: events)
            let state = try #require(try view.encodedState())
            let read = try View(encodedState: state)
            try #require(try read.encodedState() == state)
            try #require(read.rows() == view.rows())
            return [state] + view.rows().map(\.json)
        }
        func answers(_ events: [Event]) -> [String?] {
            let (assets, albums) = (AssetsView(folding: events), AlbumsView(folding: events))
            return ["r", "s", "cafe\u{301}"].map { assets.asset(remoteId: $0)?.id }
                + ["1", "2", "3"].map { assets.asset(ownerId: "u", checksum: $0)?.id }
                + ["r", "s"].map { albums.album(remoteId: $0)?.id }
                + ["a", "b", "c"].map { "\(albums.albums(containing: $0).map(\.id))" }
        }
        try Property.check(
            "fold(permutation) = fold", runs: 400, covering: ["removed", "linked", "ignored"]
        ) { choices in
            let events = try Self.history(&choices, 1...24).events
            var shuffled = events
            for index in shuffled.indices.dropLast() {
                shuffled.swapAt(index, choices.int(in: index...shuffled.count - 1))
            }
            let assets = try state(AssetsView.self, events)
            try #require(try state(AssetsView.self, shuffled) == assets)
            let albums = try state(AlbumsView.self, events)
            try #require(try state(AlbumsView.self, shuffled) == albums)
            try #require(
                try state(DeviceMediaView.self, shuffled) == state(DeviceMediaView.self, events))
            try #require(answers(shuffled) == answers(events))
            // Folding an event twice is folding it once.
            try #require(
                try state(AssetsView.self, events + shuffled).dropFirst() == assets.dropFirst())
            try #require(
                try state(AlbumsView.self, events + shuffled).dropFirst() == albums.dropFirst())
            if events.contains(where: { $0.type == AssetRemoved.type }) { choices.count("removed") }
            let view = AlbumsView(folding: events)
            if view.albums.contains(where: { !view.assetIDs(of: $0.id).isEmpty }) {
                choices.count("linked")
            }
            if AssetsView(folding: events).ignored > 0 { choices.count("ignored") }
        }
    }

    @Test(.verifies("MED-9", "VIEW-10"))
    func `damaged states are refused with an error or are another valid state`() throws {
        func check<View: ListableView>(
            _ view: View.Type, _ events: [Event], _ choices: inout Choices
        ) throws {
            let good = try #require(try View(folding: events).encodedState())
            for count in good.indices {
                #expect(throws: EventError.self) { try View(encodedState: Array(good[..<count])) }
            }
            for _ in 0..<60 {
                var bad = good
                for _ in 0...choices.int(in: 0...2) {
                    bad[choices.int(in: 0...bad.count - 1)] ^= 1 << UInt8(choices.int(in: 0...7))
                }
                guard var state = try? View(encodedState: bad) else { continue }
                choices.count("another state")
                try #require(try state.encodedState() == bad, "\(View.name)")
                for event in events { state.fold(event) }
                _ = state.rows()
                _ = try View(encodedState: try #require(try state.encodedState()))
            }
        }
        try Property.check("no bytes trap", runs: 60, covering: ["another state"]) { choices in
            let events = try Self.history(&choices, 1...8).events
            try check(AssetsView.self, events, &choices)
            try check(AlbumsView.self, events, &choices)
            try check(DeviceMediaView.self, events, &choices)
        }
    }

    // MARK: What compaction may remove

    @Test(.verifies("CMP-3", "MED-13"))
    func `assets need the winner of each register`() throws {
        var bench = Bench()
        func says() -> [Retention] { bench.history.events.map(bench.assets.retention) }
        try bench.store(asset("a"), asset("b"), at: 1)
        try bench.store(asset("a"), at: 2)
        try bench.add(AssetRemoved(assetId: "b"), at: 2)
        #expect(
            says() == [
                bench.superseded(by: 2), bench.superseded(by: 3), .needed(.current),
                .needed(.current),
            ])
        try bench.store(asset("b"), at: 3)
        #expect(says()[3...] == [bench.superseded(by: 4), .needed(.current)])
        // Older links must meet the removal, however late they arrive.
        #expect(bench.albums.retention(of: bench.history.events[3]) == .needed(.deletion))
    }

    @Test(.verifies("CMP-3", "MED-13"))
    func `albums need the winners of their registers and the last removals`() throws {
        var bench = Bench()
        func says() -> [Retention] { bench.history.events.map(bench.albums.retention) }
        try bench.add(AlbumStored(album("s")), at: 1)
        try bench.add(AlbumStored(album("s")), at: 2)
        try bench.link("s", "a", "b", at: 3)
        try bench.add(AlbumUnlinked(AlbumLinks(albumId: "s", assetIds: ["a"])), at: 4)
        #expect(
            says() == [
                bench.superseded(by: 1), .needed(.current), .needed(.current), .needed(.current),
            ])
        try bench.add(AssetRemoved(assetId: "b"), at: 5)
        #expect(
            says()[2...] == [
                .superseded(by: [
                    bench.history.events[3].lwwTimestamp, bench.history.events[4].lwwTimestamp,
                ]),
                .needed(.current), .needed(.deletion),
            ])
        try bench.add(AlbumRemoved(albumId: "s"), at: 6)
        #expect(says()[1] == bench.superseded(by: 5))
        #expect(says()[3] == bench.superseded(by: 5))
        #expect(says()[4...] == [.needed(.deletion), .needed(.deletion)])
        try bench.add(AlbumRemoved(albumId: "s"), at: 7)
        try bench.add(AssetRemoved(assetId: "b"), at: 7)
        #expect(
            says()[4...] == [
                bench.superseded(by: 7), bench.superseded(by: 6), .needed(.deletion),
                .needed(.deletion),
            ])
    }

    @Test(.verifies("CMP-3", "MED-13"))
    func `the small collections need the winner of each register`() throws {
        var bench = Bench()
        for time in [2, 1] as [Int64] {
            try bench.add(DuplicateStored(deviceAssetId: "d"), at: time)
            try bench.add(DeviceAssetStored(.android(id: "d", hash: "h")), at: time)
            try bench.add(DeviceAssetRemoved(platform: .ios, assetId: "d"), at: time)
            try bench.add(ETagRemoved(userId: "d"), at: time)
            try bench.add(
                BackupAlbumStored(BackupAlbum(id: "d", name: "", selection: .none)), at: time)
        }
        for number in 0..<5 {
            #expect(bench.device.retention(of: bench.history.events[number]) == .needed(.current))
            #expect(
                bench.device.retention(of: bench.history.events[number + 5])
                    == bench.superseded(by: number))
        }
    }

    @Test(.verifies("CMP-1", "MED-13"))
    func
        `without the events that compaction may remove, every later history folds to the same states`()
        throws
    {
        func check<View: CompactableView & ListableView>(
            _ view: View.Type, _ events: [Event], _ later: [Event], _ choices: inout Choices
        ) throws {
            let state = View(folding: events)
            let left = events.filter { event in
                if case .superseded = state.retention(of: event) { return !choices.bool() }
                return true
            }
            if left.count < events.count { choices.count("taken of \(View.name)") }
            let (one, other) = (View(folding: left + later), View(folding: events + later))
            try #require(try one.encodedState() == other.encodedState(), "\(View.name)")
        }
        let labels = [AssetsView.name, AlbumsView.name, DeviceMediaView.name]
        try Property.check(
            "fold(L - R + X) = fold(L + X)", runs: 400, covering: labels.map { "taken of \($0)" }
        ) { choices in
            let history = try Self.history(&choices, 2...30)
            let cut = choices.int(in: 1...history.events.count)
            let (events, later) = (history.events[..<cut], history.events[cut...])
            try check(AssetsView.self, Array(events), Array(later), &choices)
            try check(AlbumsView.self, Array(events), Array(later), &choices)
            try check(DeviceMediaView.self, Array(events), Array(later), &choices)
        }
    }

    @Test(.verifies("CMP-4"))
    func `invalid data are counted, change nothing and are kept`() throws {
        let ofAlbums = [
            AlbumStored.type, AlbumRemoved.type, AlbumLinked.type, AlbumUnlinked.type,
        ]
        let ofDevice = [
            BackupAlbumStored.type, BackupAlbumRemoved.type, DuplicateStored.type,
            DuplicateRemoved.type, ETagStored.type, ETagRemoved.type, DeviceAssetStored.type,
            DeviceAssetRemoved.type,
        ]
        var history = EventHistory()
        for type in [AssetStored.type, AssetRemoved.type] + ofAlbums + ofDevice {
            history.addOwn(EventDraft(type: type, data: .json(Array(#"{"assetId":7}"#.utf8))))
        }
        let assets = AssetsView(folding: history.events)
        let albums = AlbumsView(folding: history.events)
        let device = DeviceMediaView(folding: history.events)
        #expect(assets.ignored == 2)
        #expect(albums.ignored == 5)
        #expect(device.ignored == 8)
        #expect(assets.rows().isEmpty)
        #expect(albums.rows().isEmpty)
        #expect(device.rows().isEmpty)
        for event in history.events {
            func says(_ isConcerned: Bool) -> Retention {
                isConcerned ? .needed(.notUnderstood) : .unconcerned
            }
            let type = event.type
            #expect(
                assets.retention(of: event)
                    == says([AssetStored.type, AssetRemoved.type].contains(type)))
            #expect(
                albums.retention(of: event)
                    == says((ofAlbums + [AssetRemoved.type]).contains(type)))
            #expect(device.retention(of: event) == says(ofDevice.contains(type)))
        }
    }
}
