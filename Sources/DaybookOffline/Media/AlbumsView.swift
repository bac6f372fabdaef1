// The albums: one register for each, and one for each link to an asset or a user. The removal of an album or
// of an asset removes all older links. Spec/model/media.md; Spec/model/views.md.

import Daybook
import HashTreeCollections

/// The registers of one album.
struct AlbumRegisters: StateObject {
    typealias Links = TreeDictionary<EntityID, Register<Bool>>

    var album: Register<Album>?
    var assets: Links = [:]
    var users: Links = [:]

    mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&album, &assets, &users)
    }
}

extension Album: StateObject {
    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&id, &remoteId, &ownerId, &name)
        try state.visit(&createdAt, &modifiedAt)
        try state.visit(&startDate, &endDate, &thumbnailAssetId)
    }
}

/// The albums of a library, their assets, and the users with whom they are shared.
public struct AlbumsView: DeclaredView, ListableView {
    public static let name = "albums"
    public static let version = 2
    public static let events: ViewEvents<AlbumsView> = [
        .on(AlbumStored.self) { $1.setAlbum($0.album, &$2) },
        .on(AlbumRemoved.self) { $1.removeAlbum($0.albumId, &$2) },
        .on(AlbumLinked.self) { $1.setLinks(true, $0.links, &$2) },
        .on(AlbumUnlinked.self) { $1.setLinks(false, $0.links, &$2) },
        .on(AssetRemoved.self) { $1.removeAsset($0.assetId, &$2) },
    ]
    private static let fields: [ViewField<(album: Album, assets: [String], users: [String])>] = [
        .init("albumId") { $0.album.id }, .init("remoteId") { $0.album.remoteId },
        .init("ownerId") { $0.album.ownerId }, .init("name") { $0.album.name },
        .init("createdAt") { $0.album.createdAt }, .init("modifiedAt") { $0.album.modifiedAt },
        .init("startDate") { $0.album.startDate }, .init("endDate") { $0.album.endDate },
        .init("thumbnailAssetId") { $0.album.thumbnailAssetId },
        .init("assetIds") { $0.assets }, .init("userIds") { $0.users },
    ]

    /// An album in the index of a server's id.
    private struct RemoteIDEntry: Comparable, Sendable {
        var lwwTimestamp: LWWTimestamp
        var id: EntityID
        var remoteId: EntityID

        init?(_ id: EntityID, _ album: Register<Album>?) {
            guard let album, let remoteId = album.value.remoteId else { return nil }
            (lwwTimestamp, self.id) = (album.lwwTimestamp, id)
            self.remoteId = EntityID(remoteId)
        }

        static func < (lhs: RemoteIDEntry, rhs: RemoteIDEntry) -> Bool {
            (lhs.lwwTimestamp, lhs.id) < (rhs.lwwTimestamp, rhs.id)
        }
    }

    private var entries = EntityTable<Removable<AlbumRegisters>>()
    /// The LWW timestamps of removed assets.
    private var removedAssets: TreeDictionary<EntityID, LWWTimestamp> = [:]
    /// Indexes, computed from the entries: the albums with a register for an asset, and those with a
    /// server's id.
    private var byAsset: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]
    private var byRemoteID = GroupedIndex<EntityID, RemoteIDEntry>()
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&removedAssets, &entries)
    }

    public var stateFault: String? {
        for (id, entry) in entries.entities {
            if let album = entry.registers.album?.value, EntityID(album.id) != id {
                return "an album has the id of another one"
            }
            for (asset, link) in entry.registers.assets
            where removedAssets[asset].map({ $0 >= link.lwwTimestamp }) ?? false {
                return "a link is older than the removal of its asset"
            }
        }
        return nil
    }

    // MARK: Folding

    public mutating func computeIndexes() {
        let entries = self.entries.entities
        byRemoteID = GroupedIndex(
            entries.compactMap { RemoteIDEntry($0.id, $0.entity.registers.album) }, by: \.remoteId)
        for (id, entry) in entries {
            for asset in entry.registers.assets.keys { byAsset[asset, default: []].insert(id) }
        }
    }

    private mutating func update(
        _ id: String, _ change: inout ViewChange,
        _ body: (inout AlbumRegisters, inout ViewChange) -> Void
    ) {
        entries.update(id, &change) { $0.update(&$1, body) }
    }

    private mutating func setAlbum(_ album: Album, _ change: inout ViewChange) {
        let old = RemoteIDEntry(EntityID(album.id), register(of: album.id))
        update(album.id, &change) { $1.set(&$0.album, to: album) }
        let new = RemoteIDEntry(EntityID(album.id), register(of: album.id))
        byRemoteID.replace(old, with: new, by: \.remoteId)
    }

    private mutating func setLinks(
        _ isLinked: Bool, _ links: AlbumLinks, _ change: inout ViewChange
    ) {
        let removals = removedAssets
        update(links.albumId, &change) { album, change in
            for asset in links.assetIds.map(EntityID.init) {
                change.set(&album.assets[asset], to: isLinked, after: removals[asset])
            }
            for user in links.userIds { change.set(&album.users[EntityID(user)], to: isLinked) }
        }
        guard change.isFolding, let album = entries[links.albumId]?.registers else { return }
        for asset in links.assetIds.map(EntityID.init) where album.assets[asset] != nil {
            byAsset[asset, default: []].insert(EntityID(links.albumId))
        }
    }

    private mutating func removeAlbum(_ albumId: String, _ change: inout ViewChange) {
        let old = entries[albumId]?.registers
        entries.update(albumId, &change) { $0.remove(&$1) }
        guard change.isFolding else { return }
        let new = entries[albumId]?.registers
        let id = EntityID(albumId)
        byRemoteID.replace(
            RemoteIDEntry(id, old?.album), with: RemoteIDEntry(id, new?.album), by: \.remoteId)
        for asset in (old?.assets ?? [:]).keys where new?.assets[asset] == nil {
            removeFromAssetIndex(id, asset)
        }
    }

    private mutating func removeAsset(_ assetId: String, _ change: inout ViewChange) {
        let asset = EntityID(assetId)
        change.setLast(&removedAssets[asset], neededAs: .deletion)
        guard change.isFolding else { return }
        for id in byAsset[asset] ?? [] {
            guard let link = entries[id]?.registers.assets[asset],
                link.lwwTimestamp < change.lwwTimestamp
            else { continue }
            entries.update(id.string, &change) { entry, _ in entry.registers.assets[asset] = nil }
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
        let entry = entries[links.albumId]
        let assets = links.assetIds.map(EntityID.init).map {
            entry?.registers.assets[$0]?.lwwTimestamp ?? removedAssets[$0]
        }
        let users = links.userIds.map { entry?.registers.users[EntityID($0)]?.lwwTimestamp }
        return ([entry?.removed] + assets + users).compactMap(\.self).max()
    }

    /// The LWW timestamp that the next event that stores an album must exceed to take effect. O(1).
    func lwwTimestamp(of id: String) -> LWWTimestamp? {
        entries[id].flatMap { $0.bound(of: $0.registers.album) }
    }

    /// The LWW timestamp of the newest event of an album and its links. O(links of the album).
    func newest(of id: String) -> LWWTimestamp? { entries[id]?.newestTimestamp }

    /// The LWW timestamp of the newest event of an asset's links. O(albums of the asset).
    func newest(linksOf assetId: String) -> LWWTimestamp? {
        let asset = EntityID(assetId)
        return (byAsset[asset] ?? []).compactMap {
            entries[$0]?.registers.assets[asset]?.lwwTimestamp
        }.max()
    }

    /// True if the assets of an album are known: it has had one, or it was removed. The links of an album that is
    /// stored alone may arrive later. O(1).
    func isContentKnown(_ albumId: String) -> Bool {
        guard let entry = entries[albumId] else { return false }
        let registers = entry.registers
        return !registers.assets.isEmpty || registers.album == nil && entry.removed != nil
    }

    /// True if an album is linked to an asset. O(1).
    func isLinked(_ albumId: String, asset: String) -> Bool {
        entries[albumId]?.registers.assets[EntityID(asset)]?.value ?? false
    }

    /// True if an album is linked to a user. O(1).
    func isLinked(_ albumId: String, user: String) -> Bool {
        entries[albumId]?.registers.users[EntityID(user)]?.value ?? false
    }

    private func register(of id: String) -> Register<Album>? { entries[id]?.registers.album }

    // MARK: Queries

    /// The album with this id; nil if there is none. O(1).
    public subscript(id: String) -> Album? { register(of: id)?.value }

    /// Returns the album with the server's id; of several, the one stored last. O(1).
    public func album(remoteId: String) -> Album? {
        byRemoteID[EntityID(remoteId)].last.flatMap { self[$0.id.string] }
    }

    /// All albums, by id. O(n log n).
    public var albums: [Album] {
        entries.ids().sorted().compactMap { self[$0.string] }
    }

    /// Returns the ids of the assets in an album, sorted, without removed assets. O(n log n) for n links of
    /// the album.
    public func assetIDs(of albumId: String) -> [String] { linkedIDs(albumId) { $0.assets } }

    /// Returns the ids of the users with whom an album is shared, sorted. O(n log n) for n users of the
    /// album.
    public func userIDs(of albumId: String) -> [String] { linkedIDs(albumId) { $0.users } }

    /// Returns the ids that a stored album is linked to, sorted.
    private func linkedIDs(_ albumId: String, _ links: (AlbumRegisters) -> AlbumRegisters.Links)
        -> [String]
    {
        guard let album = entries[albumId]?.registers, album.album != nil else { return [] }
        return links(album).filter(\.value.value).map(\.key).sorted().map(\.string)
    }

    /// Returns the albums that contain an asset, by id. O(n log n) for n albums of the asset.
    public func albums(containing assetId: String) -> [Album] {
        let asset = EntityID(assetId)
        return (byAsset[asset] ?? []).sorted().compactMap { id in
            isLinked(id.string, asset: assetId) ? self[id.string] : nil
        }
    }

    public static let columns = fields.map(\.name)

    public func rows() -> ViewRows {
        ViewRows(albums) {
            ViewRow(($0, assetIDs(of: $0.id), userIDs(of: $0.id)), Self.fields)
        }
    }
}
