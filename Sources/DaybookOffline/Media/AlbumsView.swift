// The albums: one register for each, and one for each link to an asset or a user. The removal of an
// album or of an asset is a stamp: links that have not passed it are gone. Spec/model/media.md;
// Spec/model/views.md.

import Daybook
import HashTreeCollections

/// The albums of a library, what is in them, and with whom they are shared.
public struct AlbumsView: ListableView {
    public static let name = "albums"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        AlbumStored.type, AlbumRemoved.type, AlbumLinked.type, AlbumUnlinked.type,
        AssetRemoved.type,
    ]

    typealias Links = TreeDictionary<EntityID, Register<Bool>>

    /// What is known of one album: all of it came behind its removal.
    struct Entry: Sendable {
        /// Everything up to here is gone.
        var removed: Stamp?
        var album: Register<Album>?
        var assets: Links = [:]
        var users: Links = [:]
    }

    /// An album among those with one server's id.
    private struct Place: Comparable, Sendable {
        var stamp: Stamp
        var id: EntityID

        static func < (lhs: Place, rhs: Place) -> Bool {
            (lhs.stamp, lhs.id) < (rhs.stamp, rhs.id)
        }
    }

    private(set) var entries: TreeDictionary<EntityID, Entry> = [:]
    /// When assets were removed.
    private(set) var removedAssets: TreeDictionary<EntityID, Stamp> = [:]
    /// Events whose data no rule can make sense of.
    public private(set) var ignored = 0
    /// Follow from the entries: the albums that have a register for an asset, and those with a
    /// server's id.
    private var mentions: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]
    private var remote: TreeDictionary<EntityID, SortedIndex<Place>> = [:]

    public init() {}

    // MARK: Folding

    public mutating func fold(_ event: Event) {
        let stamp = event.stamp
        do {
            switch event.type {
            case AlbumStored.type: set(try event.payload(as: AlbumStored.self).album, stamp)
            case AlbumRemoved.type:
                remove(EntityID(try event.payload(as: AlbumRemoved.self).albumId), stamp)
            case AlbumLinked.type: set(true, try event.payload(as: AlbumLinked.self).links, stamp)
            case AlbumUnlinked.type:
                set(false, try event.payload(as: AlbumUnlinked.self).links, stamp)
            case AssetRemoved.type:
                removeAsset(EntityID(try event.payload(as: AssetRemoved.self).assetId), stamp)
            default: break
            }
        } catch { ignored += 1 }
    }

    /// Changes what is known of an album unless it was removed later.
    private mutating func change(
        _ id: EntityID, _ stamp: Stamp, _ body: (inout Entry) -> Void
    ) {
        guard entries[id]?.removed.map({ $0 < stamp }) ?? true else { return }
        body(&entries[id, default: Entry()])
    }

    private mutating func set(_ album: Album, _ stamp: Stamp) {
        let id = EntityID(album.id)
        let old = entries[id]?.album
        change(id, stamp) { $0.album.set(album, stamp) }
        relist(id, old, entries[id]?.album)
    }

    private mutating func relist(_ id: EntityID, _ old: Register<Album>?, _ new: Register<Album>?) {
        guard old?.stamp != new?.stamp else { return }
        if let old, let key = old.value.remoteId.map(EntityID.init) {
            remote[key]?.remove(Place(stamp: old.stamp, id: id))
            if remote[key]?.count == 0 { remote[key] = nil }
        }
        if let new, let key = new.value.remoteId.map(EntityID.init) {
            remote[key, default: SortedIndex()].insert(Place(stamp: new.stamp, id: id))
        }
    }

    private mutating func set(_ isLinked: Bool, _ links: AlbumLinks, _ stamp: Stamp) {
        let id = EntityID(links.albumId)
        guard entries[id]?.removed.map({ $0 < stamp }) ?? true else { return }
        let assets = links.assetIds.map(EntityID.init).filter { asset in
            removedAssets[asset].map { $0 < stamp } ?? true
        }
        guard !assets.isEmpty || !links.userIds.isEmpty else { return }
        change(id, stamp) { entry in
            for asset in assets { entry.assets[asset].set(isLinked, stamp) }
            for user in links.userIds { entry.users[EntityID(user)].set(isLinked, stamp) }
        }
        for asset in assets { mentions[asset, default: []].insert(id) }
    }

    private mutating func remove(_ id: EntityID, _ stamp: Stamp) {
        var entry = entries[id] ?? Entry()
        guard entry.removed.map({ $0 < stamp }) ?? true else { return }
        entry.removed = stamp
        if let album = entry.album, album.stamp < stamp {
            entry.album = nil
            relist(id, album, nil)
        }
        for (asset, link) in entry.assets where link.stamp < stamp { forget(id, asset) }
        entry.assets = entry.assets.filter { $0.value.stamp > stamp }
        entry.users = entry.users.filter { $0.value.stamp > stamp }
        entries[id] = entry
    }

    private mutating func removeAsset(_ asset: EntityID, _ stamp: Stamp) {
        guard removedAssets[asset].map({ $0 < stamp }) ?? true else { return }
        removedAssets[asset] = stamp
        for id in mentions[asset] ?? [] {
            guard var entry = entries[id], let link = entry.assets[asset], link.stamp < stamp else {
                continue
            }
            entry.assets[asset] = nil
            entries[id] = entry.isEmpty ? nil : entry
            forget(id, asset)
        }
    }

    private mutating func forget(_ id: EntityID, _ asset: EntityID) {
        mentions[asset]?.remove(id)
        if mentions[asset]?.isEmpty ?? false { mentions[asset] = nil }
    }

    // MARK: What counts

    /// What the next event of an album and of some of its links must pass to count. O(links named).
    func newest(_ links: AlbumLinks) -> Stamp? {
        let entry = entries[EntityID(links.albumId)]
        let assets = links.assetIds.map(EntityID.init).map {
            entry?.assets[$0]?.stamp ?? removedAssets[$0]
        }
        let users = links.userIds.map { entry?.users[EntityID($0)]?.stamp }
        return ([entry?.removed] + assets + users).compactMap(\.self).max()
    }

    /// What the next event that stores an album must pass to count. O(1).
    func stamp(of id: String) -> Stamp? {
        let entry = entries[EntityID(id)]
        return entry?.album?.stamp ?? entry?.removed
    }

    /// The newest event of an album and its links. O(links of the album).
    func newest(of id: String) -> Stamp? {
        guard let entry = entries[EntityID(id)] else { return nil }
        let links = entry.assets.values.map(\.stamp) + entry.users.values.map(\.stamp)
        return ([entry.removed, entry.album?.stamp].compactMap(\.self) + links).max()
    }

    /// The newest event of an asset's links. O(albums of the asset).
    func newest(linksOf assetId: String) -> Stamp? {
        let asset = EntityID(assetId)
        return (mentions[asset] ?? []).compactMap { entries[$0]?.assets[asset]?.stamp }.max()
    }

    /// Whether an album is linked to an asset. O(1).
    func isLinked(_ albumId: String, asset: String) -> Bool {
        entries[EntityID(albumId)]?.assets[EntityID(asset)]?.value ?? false
    }

    /// Whether an album is linked to a user. O(1).
    func isLinked(_ albumId: String, user: String) -> Bool {
        entries[EntityID(albumId)]?.users[EntityID(user)]?.value ?? false
    }

    // MARK: Questions

    /// An album; nil if there is none with this id. O(1).
    public subscript(id: String) -> Album? { entries[EntityID(id)]?.album?.value }

    /// The album with the server's id; of several, the one that was stored last. O(1).
    public func album(remoteId: String) -> Album? {
        remote[EntityID(remoteId)]?.last.flatMap { entries[$0.id]?.album?.value }
    }

    /// All albums, by id. O(n log n).
    public var albums: [Album] {
        entries.sorted { $0.key < $1.key }.compactMap { $0.value.album?.value }
    }

    /// The ids of the assets in an album, sorted. Assets that were removed are not among them.
    /// O(n log n) for n links of the album.
    public func assetIDs(of albumId: String) -> [String] { linked(albumId) { $0.assets } }

    /// The users with whom an album is shared, sorted. O(n log n) for n users of the album.
    public func userIDs(of albumId: String) -> [String] { linked(albumId) { $0.users } }

    /// What an album that is there is linked to.
    private func linked(_ albumId: String, _ links: (Entry) -> Links) -> [String] {
        guard let entry = entries[EntityID(albumId)], entry.album != nil else { return [] }
        return links(entry).filter(\.value.value).map(\.key).sorted().map(\.string)
    }

    /// The albums that an asset is in, by id. O(n log n) for n albums of the asset.
    public func albums(containing assetId: String) -> [Album] {
        let asset = EntityID(assetId)
        return (mentions[asset] ?? []).sorted().compactMap { id in
            guard let entry = entries[id], entry.assets[asset]?.value ?? false else { return nil }
            return entry.album?.value
        }
    }

    public func rows() -> [ViewRow] {
        albums.map { album in
            var row = ViewRow()
            row.add("albumId", album.id)
            row.add("remoteId", album.remoteId)
            row.add("ownerId", album.ownerId)
            row.add("name", album.name)
            row.add("createdAt", album.createdAt.text)
            row.add("modifiedAt", album.modifiedAt.text)
            row.add("startDate", album.startDate?.text)
            row.add("endDate", album.endDate?.text)
            row.add("thumbnailAssetId", album.thumbnailAssetId)
            for (name, ids) in [
                ("assetIds", assetIDs(of: album.id)), ("userIds", userIDs(of: album.id)),
            ] {
                row.add(name, raw: JSONObjectWriter.array(ids.map(JSONObjectWriter.string)))
            }
            return row
        }
    }
}

extension AlbumsView.Entry {
    var isEmpty: Bool { removed == nil && album == nil && assets.isEmpty && users.isEmpty }
}

extension AlbumsView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        var removals = writer.entries(count: removedAssets.count)
        for (asset, stamp) in removedAssets {
            writer.begin(asset, of: &removals)
            writer.add(stamp)
        }
        writer.end(removals)
        var list = writer.entries(count: entries.count)
        for (id, entry) in entries {
            writer.begin(id, of: &list)
            writer.add(entry.removed != nil)
            if let stamp = entry.removed { writer.add(stamp) }
            writer.add(entry.album != nil)
            if let album = entry.album {
                writer.add(album.stamp)
                album.value.write(to: &writer)
            }
            for links in [entry.assets, entry.users] {
                var registers = writer.entries(count: links.count)
                for (id, link) in links {
                    writer.begin(id, of: &registers)
                    writer.add(link.stamp)
                    writer.add(link.value)
                }
                writer.end(registers)
            }
        }
        writer.end(list)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var removals = removedAssets
        try reader.entries { (reader, asset) throws(EventError) in
            removals[asset] = try reader.stamp()
        }
        var entries = self.entries
        try reader.entries { (reader, id) throws(EventError) in
            var entry = Entry()
            if try reader.bool() { entry.removed = try reader.stamp() }
            if try reader.bool() {
                let stamp = try Self.stamp(&reader, after: entry.removed)
                entry.album = Register(try Album(id: id.string, &reader), stamp)
            }
            try reader.entries { (reader, asset) throws(EventError) in
                let removed = [entry.removed, removals[asset]].compactMap(\.self).max()
                let stamp = try Self.stamp(&reader, after: removed)
                entry.assets[asset] = Register(try reader.bool(), stamp)
            }
            try reader.entries { (reader, user) throws(EventError) in
                let stamp = try Self.stamp(&reader, after: entry.removed)
                entry.users[user] = Register(try reader.bool(), stamp)
            }
            guard !entry.isEmpty else { throw reader.fault("nothing is known of an album") }
            entries[id] = entry
        }
        try reader.finish()
        self.entries = entries
        removedAssets = removals
        for (id, entry) in entries {
            relist(id, nil, entry.album)
            for asset in entry.assets.keys { mentions[asset, default: []].insert(id) }
        }
    }

    private static func stamp(
        _ reader: inout StateReader, after removed: Stamp?
    ) throws(EventError) -> Stamp {
        let stamp = try reader.stamp()
        if let removed, stamp <= removed {
            throw reader.fault("what is known of an album has gone with it or with an asset")
        }
        return stamp
    }
}

extension Album {
    fileprivate func write(to writer: inout StateWriter) {
        writer.add(optional: remoteId)
        writer.add(ownerId)
        writer.add(name)
        writer.add(packed: createdAt)
        writer.add(packed: modifiedAt)
        writer.add(packed: startDate)
        writer.add(packed: endDate)
        writer.add(optional: thumbnailAssetId)
    }

    fileprivate init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        remoteId = try reader.optionalString()
        ownerId = try reader.string()
        name = try reader.string()
        createdAt = try reader.packedTime()
        modifiedAt = try reader.packedTime()
        startDate = try reader.packedTimeIfThere()
        endDate = try reader.packedTimeIfThere()
        thumbnailAssetId = try reader.optionalString()
    }
}

extension AlbumsView: CompactableView {
    /// An event is needed while it holds a register; the last removal of an album or of an asset is
    /// needed for ever, and supersedes all links that came before.
    public func retention(of event: Event) -> Retention {
        do {
            switch event.type {
            case AlbumStored.type:
                let id = try event.payload(as: AlbumStored.self).album.id
                return .of(event, heldBy: [stamp(of: id)])
            case AlbumLinked.type:
                return retention(of: event, try event.payload(as: AlbumLinked.self).links)
            case AlbumUnlinked.type:
                return retention(of: event, try event.payload(as: AlbumUnlinked.self).links)
            case AlbumRemoved.type:
                let id = try event.payload(as: AlbumRemoved.self).albumId
                return Self.retention(of: event, removedBy: entries[EntityID(id)]?.removed)
            case AssetRemoved.type:
                let id = try event.payload(as: AssetRemoved.self).assetId
                return Self.retention(of: event, removedBy: removedAssets[EntityID(id)])
            default: return .unconcerned
            }
        } catch { return .needed(.notUnderstood) }
    }

    private static func retention(of event: Event, removedBy holder: Stamp?) -> Retention {
        holder == event.stamp ? .needed(.deletion) : .of(event, heldBy: [holder])
    }

    private func retention(of event: Event, _ links: AlbumLinks) -> Retention {
        let entry = entries[EntityID(links.albumId)]
        let assets = links.assetIds.map(EntityID.init).map { asset in
            entry?.assets[asset]?.stamp
                ?? [entry?.removed, removedAssets[asset]].compactMap(\.self).max()
        }
        let users = links.userIds.map { entry?.users[EntityID($0)]?.stamp ?? entry?.removed }
        return .of(event, heldBy: assets + users)
    }
}
