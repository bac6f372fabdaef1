// The view of the image cache: ends of images, order of use, tracked ids, and the events that are still
// needed. Spec/model/images.md.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

/// Events with times of their own, in the order in which they were added.
private struct Bench {
    var history = EventHistory()
    var view: ImagesView

    init(trackedMax: Int? = nil) { view = ImagesView(trackedMax: trackedMax) }

    @discardableResult
    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws -> Event {
        let event = history.addOwn(
            try EventDraft(payload, time: Timestamp(milliseconds: milliseconds)))
        view.fold(event)
        return event
    }

    @discardableResult
    mutating func cache(
        _ id: String, _ byte: UInt8 = 1, of kind: ImageKind = .thumbnail, at milliseconds: Int64
    ) throws -> Event {
        try add(
            ImageCached(kind: kind, id: id, file: FileID(of: [byte]), size: Int(byte)),
            at: milliseconds)
    }

    /// The retention of each event.
    var says: [Retention] { history.events.map(view.retention) }

    func superseded(by indices: Int...) -> Retention {
        .superseded(by: indices.map { history.events[$0].lwwTimestamp })
    }

    func ids(_ kind: ImageKind = .thumbnail) -> [String] {
        view.leastRecentlyUsed(kind).map(\.id)
    }
}

private func album(_ id: String) -> Album {
    let time = ZonedTime(Timestamp(milliseconds: 0))
    return Album(id: id, ownerId: "u", name: "", createdAt: time, modifiedAt: time)
}

/// Events of the image cache and events that end images, few of each kind.
private func history(
    _ choices: inout Choices, _ count: ClosedRange<Int>
) throws -> EventHistory {
    var history = EventHistory()
    let drafts = try choices.array(count) { choices in
        var draft = try EventDraft(choices.imagePayload())
        draft.id = UUID(integer: UInt128(choices.bits()) << 64 | UInt128(choices.bits()))
        draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...9)))
        return draft
    }
    for draft in drafts {
        if choices.bool() {
            history.addForeign(draft, source: UUID(integer: 2), sequence: 1)
        } else {
            history.addOwn(draft)
        }
    }
    let notes = history.events.map { event in
        "\(event.type) \(String(decoding: event.content.json ?? [], as: UTF8.self)) \(event.lwwTimestamp)"
    }
    choices.note("\(notes)")
    return history
}

private func shuffled(_ events: [Event], _ choices: inout Choices) -> [Event] {
    var events = events
    for index in events.indices.dropLast() {
        events.swapAt(index, choices.int(in: index...events.count - 1))
    }
    return events
}

private func fold(_ events: some Sequence<Event>, trackedMax: Int?) -> ImagesView {
    var view = ImagesView(trackedMax: trackedMax)
    for event in events { view.fold(event) }
    return view
}

/// A model of the view: computed from all events at once, without bounds.
private struct Exact {
    struct Name: Hashable {
        var kind: ImageKind
        var id: EntityID
    }

    var cached: [Name: LWWTimestamp] = [:]
    var ended: [Name: LWWTimestamp] = [:]
    var accessed: [Name: LWWTimestamp] = [:]
    /// The times of the accesses that are not those of their events.
    var accessTimes: [LWWTimestamp: Timestamp] = [:]
    var cleared: [ImageKind: LWWTimestamp] = [:]

    init(_ events: [Event]) {
        func raise(_ all: inout [Name: LWWTimestamp], _ name: Name, _ event: Event) {
            all[name] = max(all[name] ?? event.lwwTimestamp, event.lwwTimestamp)
        }
        for event in events {
            let json = event.content.json ?? []
            if let cached = try? ImageCached(json: json), event.type == ImageCached.type {
                raise(&self.cached, Name(kind: cached.kind, id: EntityID(cached.id)), event)
            } else if event.type == ImageRemoved.type, let gone = try? ImageRemoved(json: json) {
                raise(&ended, Name(kind: gone.kind, id: EntityID(gone.id)), event)
            } else if event.type == ImageAccessed.type, let used = try? ImageAccessed(json: json) {
                raise(&accessed, Name(kind: used.kind, id: EntityID(used.id)), event)
                accessTimes[event.lwwTimestamp] = used.accessedAt?.moment
            } else if event.type == ImagesCleared.type, let gone = try? ImagesCleared(json: json) {
                for kind in gone.kinds {
                    cleared[kind] = max(cleared[kind] ?? event.lwwTimestamp, event.lwwTimestamp)
                }
            } else if let id = event.subject.map(EntityID.init) {
                let kinds: [ImageKind] =
                    event.type == AssetRemoved.type ? [.thumbnail, .preview] : [.albumThumbnail]
                for kind in kinds { raise(&ended, Name(kind: kind, id: id), event) }
            }
        }
    }

    /// Ids, the least recently used first.
    func ids(_ kind: ImageKind) -> [String] {
        cached.filter { name, lwwTimestamp in
            name.kind == kind && (ended[name].map { $0 < lwwTimestamp } ?? true)
                && (cleared[kind].map { $0 < lwwTimestamp } ?? true)
        }.sorted { a, b in
            (lastAccess(a.key, a.value), a.key.id) < (lastAccess(b.key, b.value), b.key.id)
        }.map(\.key.id.string)
    }

    private func lastAccess(_ name: Name, _ cached: LWWTimestamp) -> LWWTimestamp {
        guard let access = accessed[name], access > cached else { return cached }
        return accessTimes[access].map {
            LWWTimestamp(time: $0, source: access.source, sequence: access.sequence)
        } ?? access
    }
}

@Suite struct ImagesViewTests {
    @Test(.verifies("IMG-1", "IMG-2", "VIEW-25"))
    func `an image is the one cached last, unless a later event ended it`() throws {
        var bench = Bench()
        try bench.cache("a", 7, at: 9)
        try bench.cache("a", 3, at: 5)
        try bench.cache("a", 4, of: .preview, at: 1)
        #expect(bench.view.image(.thumbnail, "a")?.size == 7)
        #expect(bench.view.image(.preview, "a")?.size == 4)
        #expect(bench.view.size(of: .thumbnail) == ImageCacheSize(images: 1, bytes: 7))
        #expect(!bench.view.refers(to: FileID(of: [3])))
        try bench.add(ImageRemoved(kind: .thumbnail, id: "a", reason: .user), at: 8)
        #expect(bench.view.image(.thumbnail, "a") != nil)
        try bench.add(ImageRemoved(kind: .thumbnail, id: "a", reason: .user), at: 10)
        #expect(bench.view.image(.thumbnail, "a") == nil)
        #expect(bench.view.size(of: .thumbnail) == ImageCacheSize(images: 0, bytes: 0))
        #expect(!bench.view.refers(to: FileID(of: [7])))
        #expect(bench.view.refers(to: FileID(of: [4])))
        #expect(
            bench.view.rows().map { String(decoding: $0.json, as: UTF8.self) } == [
                #"{"kind":"preview","id":"a","file":"\#(FileID(of: [4]))","size":4,"#
                    + #""cachedAt":"1970-01-01T00:00:00.001Z","#
                    + #""lastAccessedAt":"1970-01-01T00:00:00.001Z"}"#
            ])
    }

    @Test(.verifies("IMG-3"))
    func `the removal of an asset ends its images; later ones count`() throws {
        var bench = Bench()
        try bench.cache("a", at: 1)
        try bench.cache("a", of: .preview, at: 1)
        try bench.cache("a", of: .albumThumbnail, at: 1)
        try bench.cache("b", at: 1)
        try bench.add(AssetRemoved(assetId: "a"), at: 5)
        #expect(bench.ids() == ["b"])
        #expect(bench.ids(.preview) == [])
        #expect(bench.ids(.albumThumbnail) == ["a"])
        // Arrives late, and was cached before the removal.
        try bench.cache("a", at: 4)
        #expect(bench.ids() == ["b"])
        try bench.cache("a", at: 6)
        #expect(bench.ids() == ["b", "a"])
    }

    @Test(.verifies("IMG-3"))
    func `every change of an album ends its thumbnail`() throws {
        let links = AlbumLinks(albumId: "a", assetIds: ["x"])
        let changes: [any EventPayload] = [
            AlbumStored(album("a")), AlbumLinked(links), AlbumUnlinked(links),
            AlbumRemoved(albumId: "a"),
        ]
        for change in changes {
            var bench = Bench()
            try bench.cache("a", of: .albumThumbnail, at: 1)
            try bench.cache("b", of: .albumThumbnail, at: 1)
            try bench.cache("a", at: 1)
            try bench.add(change, at: 5)
            #expect(bench.ids(.albumThumbnail) == ["b"])
            #expect(bench.ids() == ["a"])
            try bench.cache("a", of: .albumThumbnail, at: 4)
            #expect(bench.ids(.albumThumbnail) == ["b"])
        }
    }

    @Test(.verifies("IMG-2"))
    func `clearing ends the images of the given kinds`() throws {
        var bench = Bench()
        try bench.cache("a", at: 1)
        try bench.cache("b", at: 9)
        try bench.cache("a", of: .preview, at: 1)
        try bench.cache("a", of: .albumThumbnail, at: 1)
        try bench.add(ImagesCleared(kinds: [.thumbnail, .albumThumbnail]), at: 5)
        #expect(bench.ids() == ["b"])
        #expect(bench.ids(.preview) == ["a"])
        #expect(bench.ids(.albumThumbnail) == [])
        try bench.cache("c", at: 4)
        #expect(bench.ids() == ["b"])
    }

    @Test(.verifies("IMG-5"))
    func `images are sorted by last access, caching included`() throws {
        var bench = Bench()
        for (id, time) in [("a", 1), ("b", 2), ("c", 3)] { try bench.cache(id, at: Int64(time)) }
        try bench.add(ImageAccessed(kind: .thumbnail, id: "a"), at: 7)
        try bench.add(ImageAccessed(kind: .thumbnail, id: "a"), at: 2)
        try bench.add(ImageAccessed(kind: .preview, id: "b"), at: 9)
        #expect(bench.ids() == ["b", "c", "a"])
        #expect(bench.view.image(.thumbnail, "a")?.lastAccessedAt == Timestamp(milliseconds: 7))
        #expect(bench.view.image(.thumbnail, "a")?.cachedAt == Timestamp(milliseconds: 1))
    }

    @Test(.verifies("VIEW-3"))
    func `events with invalid data are counted, and events of other types cost nothing`()
        throws
    {
        var bench = Bench()
        for (type, data) in [
            ("image.cached", #"{"kind":"thumbnail","id":"","file":"x","size":1}"#),
            ("image.cached", #"{"kind":"x","id":"a","file":"\#(FileID(of: []))","size":1}"#),
            ("image.cached", #"{"kind":"preview","id":"a","file":"","size":1}"#),
            ("image.cached", #"{"kind":"preview","id":"a","file":"\#(FileID(of: []))"}"#),
            ("image.removed", #"{"kind":"preview","id":"a","reason":"age"}"#),
            ("image.accessed", #"{"kind":"preview"}"#), ("images.cleared", #"{"kinds":[]}"#),
            ("images.cleared", #"{"kinds":["all"]}"#), ("images.cleared", "{}"),
            ("asset.removed", "{}"), ("album.stored", "{}"), ("album.linked", "7"),
        ] {
            bench.view.fold(
                bench.history.addOwn(
                    EventDraft(type: "daybook.\(type)", data: .json(Array(data.utf8)))))
        }
        for type in ["daybook.images.moved", "daybook.album.x", "daybook.asset.stored"] {
            bench.view.fold(
                bench.history.addOwn(EventDraft(type: type, data: .json(Array("{}".utf8)))))
        }
        #expect(bench.view.ignored == 12)
        #expect(bench.says[..<12].allSatisfy { $0 == .needed(.notUnderstood) })
        #expect(bench.says[12...].allSatisfy { $0 == .unconcerned })
    }

    @Test(.verifies("IMG-2", "IMG-3", "IMG-5"))
    func `the view equals a model of all events`() throws {
        try Property.check("fold = the exact rule", runs: 300) { choices in
            let events = try history(&choices, 1...30).events
            let (view, exact) = (fold(events, trackedMax: nil), Exact(events))
            for kind in ImageKind.allCases {
                let ids = view.leastRecentlyUsed(kind).map(\.id)
                try #require(ids.map(EntityID.init) == exact.ids(kind).map(EntityID.init))
                try #require(view.size(of: kind).images == ids.count)
            }
        }
    }

    @Test(.verifies("IMG-4", "VIEW-2"))
    func `for any number of tracked ids order does not matter, and no ended image is found`()
        throws
    {
        try Property.check(
            "small tables", runs: 500, covering: ["something was summed up"]
        ) { choices in
            let events = try history(&choices, 1...30).events
            let most = choices.int(in: 1...3)
            let (view, exact) = (fold(events, trackedMax: most), Exact(events))
            let other = fold(shuffled(events, &choices), trackedMax: most)
            try #require(view.encodedState() == other.encodedState())
            try #require(view.rows() == other.rows())
            for kind in ImageKind.allCases {
                let ids = Set(view.leastRecentlyUsed(kind).map { EntityID($0.id) })
                let all = Set(exact.ids(kind).map(EntityID.init))
                try #require(ids.isSubset(of: all))
                try #require(
                    ids == Set(other.leastRecentlyUsed(kind).map { EntityID($0.id) }))
                if ids != all { choices.count("something was summed up") }
            }
        }
    }

    @Test(.verifies("CMP-1", "IMG-4"))
    func `superseded events can be removed, whatever arrives later`() throws {
        try Property.check(
            "fold(L - R + X) = fold(L + X)", runs: 500, covering: ["went"]
        ) { choices in
            let all = try history(&choices, 1...30).events
            let most = choices.bool() ? choices.int(in: 1...3) : nil
            let cut = choices.int(in: 0...all.count)
            let (past, later) = (Array(all[..<cut]), all[cut...])
            let view = fold(past, trackedMax: most)
            let lwwTimestamps = Set(past.map(\.lwwTimestamp))
            let kept = try past.filter { event in
                guard case .superseded(let others) = view.retention(of: event) else { return true }
                // By events that exist and are needed themselves.
                try #require(!others.isEmpty)
                try #require(lwwTimestamps.isSuperset(of: others))
                for other in past where others.contains(other.lwwTimestamp) {
                    guard case .needed = view.retention(of: other) else {
                        Issue.record("superseded by what is not needed")
                        continue
                    }
                }
                choices.count("went")
                return false
            }
            let gone = past.filter { event in
                !kept.contains { $0.lwwTimestamp == event.lwwTimestamp }
            }
            let some = kept + gone.filter { _ in choices.bool() }
            try #require(
                fold(some + later, trackedMax: most).encodedState()
                    == fold(all, trackedMax: most).encodedState())
        }
    }

    @Test(.verifies("CMP-3"))
    func `the view needs cached images, last accesses, and the events that ended images`() throws {
        var bench = Bench()
        try bench.cache("a", at: 1)
        try bench.cache("a", at: 3)
        try bench.add(ImageAccessed(kind: .thumbnail, id: "a"), at: 4)
        try bench.add(ImageAccessed(kind: .thumbnail, id: "a"), at: 2)
        #expect(
            bench.says == [
                bench.superseded(by: 1), .needed(.current), .needed(.current),
                bench.superseded(by: 2),
            ])
        try bench.add(AssetRemoved(assetId: "a"), at: 5)
        try bench.add(AssetRemoved(assetId: "a"), at: 6)
        #expect(bench.says[1] == bench.superseded(by: 5))
        #expect(bench.says[4] == bench.superseded(by: 5))
        #expect(bench.says[5] == .needed(.deletion))
        try bench.add(ImagesCleared(kinds: [.thumbnail]), at: 9)
        #expect(
            bench.says == [
                bench.superseded(by: 6), bench.superseded(by: 6), bench.superseded(by: 6),
                bench.superseded(by: 6), bench.superseded(by: 5), .needed(.deletion),
                .needed(.deletion),
            ])
        try bench.add(ImagesCleared(kinds: [.thumbnail, .preview]), at: 10)
        #expect(bench.says[6] == bench.superseded(by: 7, 7))
    }

    @Test(.verifies("IMG-4"))
    func `assets without images cost their tracked ids and no more`() throws {
        var bench = Bench()
        try bench.cache("kept", at: 1_000_000)
        for number in 0..<100_000 {
            let time = ZonedTime(Timestamp(milliseconds: 0))
            let id = "8f14e45f-ceea-467f-a8d2-\(100_000_000_000 + number)"
            try bench.add(AssetRemoved(assetId: id), at: Int64(number))
            if number % 100 == 0 {
                try bench.add(
                    AssetStored(
                        Asset(
                            id: id, ownerId: "u", checksum: "c", type: .image, fileName: "",
                            fileCreatedAt: time, fileModifiedAt: time, updatedAt: time)),
                    at: Int64(number) + 1)
            }
        }
        let bytes = try #require(bench.view.encodedState()).count
        print("the state has \(bytes) bytes after 100,000 removed assets")
        #expect(bytes < 400_000)
        #expect(bench.ids() == ["kept"])
    }
}
