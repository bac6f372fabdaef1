// The albums: one register for each, and one for each link to an asset or a user. The removal of an album or
// of an asset is an LWW timestamp, which removes all older links. Spec/model/media.md; Spec/model/views.md.

import Daybook
import HashTreeCollections

/// The albums of a library, their assets, and the users with whom they are shared.
public struct AlbumsView: ListableView {
    public static let name = "albums"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        AlbumStored.type, AlbumRemoved.type, AlbumLinked.type, AlbumUnlinked.type,
        AssetRemoved.type,
    ]

    typealias Links = TreeDictionary<EntityID, Register<Bool>>

    /// The state of one album. Its registers have LWW timestamps greater than its removal.
    struct Entry: Sendable {
        /// The LWW timestamp of the removal.
        var removed: LWWTimestamp?
        var album: Register<Album>?
        var assets: Links = [:]
        var users: Links = [:]
    }

    /// An album in the index of a server's id.
    private struct RemoteIDEntry: Comparable, Sendable {
        var lwwTimestamp: LWWTimestamp
        var id: EntityID

        static func < (lhs: RemoteIDEntry, rhs: RemoteIDEntry) -> Bool {
            (lhs.lwwTimestamp, lhs.id) < (rhs.lwwTimestamp, rhs.id)
        }
    }

    private(set) var entries: TreeDictionary<EntityID, Entry> = [:]
    /// The LWW timestamps of removed assets.
    private(set) var removedAssets: TreeDictionary<EntityID, LWWTimestamp> = [:]
    /// The number of events with invalid data.
    public private(set) var ignored = 0
    /// Indexes, computed from the entries: the albums with a register for an asset, and those with a
    /// server's id.
    private var byAsset: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]
    private var byRemoteID: TreeDictionary<EntityID, SortedIndex<RemoteIDEntry>> = [:]

    public init() {}

    // MARK: Folding

    public mutating func fold(_ event: Event) {
        let lwwTimestamp = event.lwwTimestamp
        do {
            switch event.type {
            case AlbumStored.type:
                setAlbum(try event.payload(as: AlbumStored.self).album, lwwTimestamp)
            case AlbumRemoved.type:
                removeAlbum(
                    EntityID(try event.payload(as: AlbumRemoved.self).albumId), lwwTimestamp)
            case AlbumLinked.type:
                setLinks(true, try event.payload(as: AlbumLinked.self).links, lwwTimestamp)
            case AlbumUnlinked.type:
                setLinks(false, try event.payload(as: AlbumUnlinked.self).links, lwwTimestamp)
            case AssetRemoved.type:
                removeAsset(
                    EntityID(try event.payload(as: AssetRemoved.self).assetId), lwwTimestamp)
            default: break
            }
        } catch { ignored += 1 }
    }

    /// Changes an album's entry unless the album was removed later.
    private mutating func updateEntry(
        _ id: EntityID, _ lwwTimestamp: LWWTimestamp, _ body: (inout Entry) -> Void
    ) {
        guard entries[id]?.removed.map({ $0 < lwwTimestamp }) ?? true else { return }
        body(&entries[id, default: Entry()])
    }

    private mutating func setAlbum(_ album: Album, _ lwwTimestamp: LWWTimestamp) {
        let id = EntityID(album.id)
        let old = entries[id]?.album
        updateEntry(id, lwwTimestamp) { $0.album.set(album, lwwTimestamp) }
        updateRemoteIDIndex(id, old, entries[id]?.album)
    }

    private mutating func updateRemoteIDIndex(
        _ id: EntityID, _ old: Register<Album>?, _ new: Register<Album>?
    ) {
        guard old?.lwwTimestamp != new?.lwwTimestamp else { return }
        if let old, let key = old.value.remoteId.map(EntityID.init) {
            byRemoteID[key]?.remove(RemoteIDEntry(lwwTimestamp: old.lwwTimestamp, id: id))
            if byRemoteID[key]?.count == 0 { byRemoteID[key] = nil }
        }
        if let new, let key = new.value.remoteId.map(EntityID.init) {
            byRemoteID[key, default: SortedIndex()].insert(
                RemoteIDEntry(lwwTimestamp: new.lwwTimestamp, id: id))
        }
    }

    private mutating func setLinks(
        _ isLinked: Bool, _ links: AlbumLinks, _ lwwTimestamp: LWWTimestamp
    ) {
        let id = EntityID(links.albumId)
        guard entries[id]?.removed.map({ $0 < lwwTimestamp }) ?? true else { return }
        let assets = links.assetIds.map(EntityID.init).filter { asset in
            removedAssets[asset].map { $0 < lwwTimestamp } ?? true
        }
        guard !assets.isEmpty || !links.userIds.isEmpty else { return }
        updateEntry(id, lwwTimestamp) { entry in
            for asset in assets { entry.assets[asset].set(isLinked, lwwTimestamp) }
            for user in links.userIds { entry.users[EntityID(user)].set(isLinked, lwwTimestamp) }
        }
        for asset in assets { byAsset[asset, default: []].insert(id) }
    }

    private mutating func removeAlbum(_ id: EntityID, _ lwwTimestamp: LWWTimestamp) {
        var entry = entries[id] ?? Entry()
        guard entry.removed.map({ $0 < lwwTimestamp }) ?? true else { return }
        entry.removed = lwwTimestamp
        if let album = entry.album, album.lwwTimestamp < lwwTimestamp {
            entry.album = nil
            updateRemoteIDIndex(id, album, nil)
        }
        for (asset, link) in entry.assets where link.lwwTimestamp < lwwTimestamp {
            removeFromAssetIndex(id, asset)
        }
        entry.assets = entry.assets.filter { $0.value.lwwTimestamp > lwwTimestamp }
        entry.users = entry.users.filter { $0.value.lwwTimestamp > lwwTimestamp }
        entries[id] = entry
    }

    private mutating func removeAsset(_ asset: EntityID, _ lwwTimestamp: LWWTimestamp) {
        guard removedAssets[asset].map({ $0 < lwwTimestamp }) ?? true else { return }
        removedAssets[asset] = lwwTimestamp
        for id in byAsset[asset] ?? [] {
            guard var entry = entries[id], let link = entry.assets[asset],
                link.lwwTimestamp < lwwTimestamp
            else {
                continue
            }
            entry.assets[asset] = nil
            entries[id] = entry.isEmpty ? nil : entry
            removeFromAssetIndex(id, asset)
        }
    }

    private mutating func removeFromAssetIndex(_ id: EntityID, _ asset: EntityID) {
        byAsset[asset]?.remove(id)
        if byAsset[asset]?.isEmpty ?? false { byAsset[asset] = nil }
    }

    // MARK: LWW timestamps

    /// The LWW timestamp that the next event of an album and the given links must exceed to take effect.
    /// O(given links).
    func newest(_ links: AlbumLinks) -> LWWTimestamp? {
        let entry = entries[EntityID(links.albumId)]
        let assets = links.assetIds.map(EntityID.init).map {
            entry?.assets[$0]?.lwwTimestamp ?? removedAssets[$0]
        }
        let users = links.userIds.map { entry?.users[EntityID($0)]?.lwwTimestamp }
        return ([entry?.removed] + assets + users).compactMap(\.self).max()
    }

    /// The LWW timestamp that the next event that stores an album must exceed to take effect. O(1).
    func lwwTimestamp(of id: String) -> LWWTimestamp? {
        let entry = entries[EntityID(id)]
        return entry?.album?.lwwTimestamp ?? entry?.removed
    }

    /// The LWW timestamp of the newest event of an album and its links. O(links of the album).
    func newest(of id: String) -> LWWTimestamp? {
        guard let entry = entries[EntityID(id)] else { return nil }
        let links = entry.assets.values.map(\.lwwTimestamp) + entry.users.values.map(\.lwwTimestamp)
        return ([entry.removed, entry.album?.lwwTimestamp].compactMap(\.self) + links).max()
    }

    /// The LWW timestamp of the newest event of an asset's links. O(albums of the asset).
    func newest(linksOf assetId: String) -> LWWTimestamp? {
        let asset = EntityID(assetId)
        return (byAsset[asset] ?? []).compactMap { entries[$0]?.assets[asset]?.lwwTimestamp }.max()
    }

    /// True if an album is linked to an asset. O(1).
    func isLinked(_ albumId: String, asset: String) -> Bool {
        entries[EntityID(albumId)]?.assets[EntityID(asset)]?.value ?? false
    }

    /// True if an album is linked to a user. O(1).
    func isLinked(_ albumId: String, user: String) -> Bool {
        entries[EntityID(albumId)]?.users[EntityID(user)]?.value ?? false
    }

    // MARK: Queries

    /// The album with this id; nil if there is none. O(1).
    public subscript(id: String) -> Album? { entries[EntityID(id)]?.album?.value }

    /// Returns the album with the server's id; of several, the one stored last. O(1).
    public func album(remoteId: String) -> Album? {
        byRemoteID[EntityID(remoteId)]?.last.flatMap { entries[$0.id]?.album?.value }
    }

    /// All albums, by id. O(n log n).
    public var albums: [Album] {
        entries.sorted { $0.key < $1.key }.compactMap { $0.value.album?.value }
    }

    /// Returns the ids of the assets in an album, sorted, without removed assets. O(n log n) for n links of
    /// the album.
    public func assetIDs(of albumId: String) -> [String] { linkedIDs(albumId) { $0.assets } }

    /// Returns the ids of the users with whom an album is shared, sorted. O(n log n) for n users of the
    /// album.
    public func userIDs(of albumId: String) -> [String] { linkedIDs(albumId) { $0.users } }

    /// Returns the ids that a stored album is linked to, sorted.
    private func linkedIDs(_ albumId: String, _ links: (Entry) -> Links) -> [String] {
        guard let entry = entries[EntityID(albumId)], entry.album != nil else { return [] }
        return links(entry).filter(\.value.value).map(\.key).sorted().map(\.string)
    }

    /// Returns the albums that contain an asset, by id. O(n log n) for n albums of the asset.
    public func albums(containing assetId: String) -> [Album] {
        let asset = EntityID(assetId)
        return (byAsset[asset] ?? []).sorted().compactMap { id in
            guard let entry = entries[id], entry.assets[asset]?.value ?? false else { return nil }
            return entry.album?.value
        }
    }

    public static let columns = [
        "albumId", "remoteId", "ownerId", "name", "createdAt", "modifiedAt", "startDate",
        "endDate", "thumbnailAssetId", "assetIds", "userIds",
    ]

    public func rows() -> ViewRows {
        ViewRows(albums) { album in
            var row = ViewRow()
            row.appendField("albumId", album.id)
            row.appendField("remoteId", album.remoteId)
            row.appendField("ownerId", album.ownerId)
            row.appendField("name", album.name)
            row.appendField("createdAt", album.createdAt.text)
            row.appendField("modifiedAt", album.modifiedAt.text)
            row.appendField("startDate", album.startDate?.text)
            row.appendField("endDate", album.endDate?.text)
            row.appendField("thumbnailAssetId", album.thumbnailAssetId)
            for (name, ids) in [
                ("assetIds", assetIDs(of: album.id)), ("userIds", userIDs(of: album.id)),
            ] {
                row.appendField(name, raw: JSONObjectWriter.array(ids.map(JSONObjectWriter.string)))
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
        writer.write(count: ignored)
        var removals = writer.entries(count: removedAssets.count)
        for (asset, lwwTimestamp) in removedAssets {
            writer.begin(asset, of: &removals)
            writer.write(lwwTimestamp)
        }
        writer.end(removals)
        var list = writer.entries(count: entries.count)
        for (id, entry) in entries {
            writer.begin(id, of: &list)
            writer.write(entry.removed != nil)
            if let lwwTimestamp = entry.removed { writer.write(lwwTimestamp) }
            writer.write(entry.album != nil)
            if let album = entry.album {
                writer.write(album.lwwTimestamp)
                album.value.write(to: &writer)
            }
            for links in [entry.assets, entry.users] {
                var registers = writer.entries(count: links.count)
                for (id, link) in links {
                    writer.begin(id, of: &registers)
                    writer.write(link.lwwTimestamp)
                    writer.write(link.value)
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
            removals[asset] = try reader.lwwTimestamp()
        }
        var entries = self.entries
        try reader.entries { (reader, id) throws(EventError) in
            var entry = Entry()
            if try reader.bool() { entry.removed = try reader.lwwTimestamp() }
            if try reader.bool() {
                let lwwTimestamp = try Self.lwwTimestamp(&reader, after: entry.removed)
                entry.album = Register(try Album(id: id.string, &reader), lwwTimestamp)
            }
            try reader.entries { (reader, asset) throws(EventError) in
                let removed = [entry.removed, removals[asset]].compactMap(\.self).max()
                let lwwTimestamp = try Self.lwwTimestamp(&reader, after: removed)
                entry.assets[asset] = Register(try reader.bool(), lwwTimestamp)
            }
            try reader.entries { (reader, user) throws(EventError) in
                let lwwTimestamp = try Self.lwwTimestamp(&reader, after: entry.removed)
                entry.users[user] = Register(try reader.bool(), lwwTimestamp)
            }
            guard !entry.isEmpty else { throw reader.fault("the entry of an album is empty") }
            entries[id] = entry
        }
        try reader.finish()
        self.entries = entries
        removedAssets = removals
        for (id, entry) in entries {
            updateRemoteIDIndex(id, nil, entry.album)
            for asset in entry.assets.keys { byAsset[asset, default: []].insert(id) }
        }
    }

    private static func lwwTimestamp(
        _ reader: inout StateReader, after removed: LWWTimestamp?
    ) throws(EventError) -> LWWTimestamp {
        let lwwTimestamp = try reader.lwwTimestamp()
        if let removed, lwwTimestamp <= removed {
            throw reader.fault(
                "a register of an album is older than the removal of the album or asset")
        }
        return lwwTimestamp
    }
}

extension Album {
    fileprivate func write(to writer: inout StateWriter) {
        writer.write(optional: remoteId)
        writer.write(ownerId)
        writer.write(name)
        writer.write(packed: createdAt)
        writer.write(packed: modifiedAt)
        writer.write(packed: startDate)
        writer.write(packed: endDate)
        writer.write(optional: thumbnailAssetId)
    }

    fileprivate init(id: String, _ reader: inout StateReader) throws(EventError) {
        self.id = id
        remoteId = try reader.optionalString()
        ownerId = try reader.string()
        name = try reader.string()
        createdAt = try reader.packedTime()
        modifiedAt = try reader.packedTime()
        startDate = try reader.optionalPackedTime()
        endDate = try reader.optionalPackedTime()
        thumbnailAssetId = try reader.optionalString()
    }
}

extension AlbumsView: CompactableView {
    /// An event is needed while it is the winner of a register. The last removal of an album or of an asset
    /// is always needed, and supersedes all older links.
    public func retention(of event: Event) -> Retention {
        do {
            switch event.type {
            case AlbumStored.type:
                let id = try event.payload(as: AlbumStored.self).album.id
                return .of(event, heldBy: [lwwTimestamp(of: id)])
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

    private static func retention(of event: Event, removedBy winner: LWWTimestamp?) -> Retention {
        winner == event.lwwTimestamp ? .needed(.deletion) : .of(event, heldBy: [winner])
    }

    private func retention(of event: Event, _ links: AlbumLinks) -> Retention {
        let entry = entries[EntityID(links.albumId)]
        let assets = links.assetIds.map(EntityID.init).map { asset in
            entry?.assets[asset]?.lwwTimestamp
                ?? [entry?.removed, removedAssets[asset]].compactMap(\.self).max()
        }
        let users = links.userIds.map { entry?.users[EntityID($0)]?.lwwTimestamp ?? entry?.removed }
        return .of(event, heldBy: assets + users)
    }
}
