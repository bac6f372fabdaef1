// The commands and queries of an app on albums: put, delete, link to assets and users.
// Spec/model/media.md.

import Daybook

/// Commands and queries on the albums of a library.
///
/// No event of these commands is shipped. Every command is durable on return.
public struct AlbumCommands: Sendable {
    let store: EventStore

    init(_ store: EventStore) { self.store = store }

    // MARK: Writing

    /// Stores an album, or replaces the one with its id; its links stay. An unchanged album is not
    /// recorded again.
    ///
    /// - Throws: as `putAll(_:)`.
    public func put(_ album: Album) async throws { try await putAll([album]) }

    /// Stores albums, all or none, in one commit. Of several albums with one id the last one wins.
    ///
    /// - Throws: `EventError` with nothing recorded: `invalidData` for data that breaks the rules of
    ///   the type (`Spec/model/events.md`, EVT-7); `tooLarge` for more than 4 MiB. `LogError` as
    ///   `EventStore.append`.
    /// - Complexity: O(bytes).
    public func putAll(_ albums: [Album]) async throws {
        try await store.write { transaction in
            let known = transaction.view(AlbumsView.self)
            var changed: Set<EntityID> = []
            for album in albums {
                let stored = AlbumStored(album)
                let id = EntityID(album.id)
                if !changed.contains(id), let old = known[album.id],
                    try AlbumStored(old).json() == stored.json()
                {
                    continue
                }
                changed.insert(id)
                try transaction.append(
                    stored,
                    replacing: transaction.lwwTimestamp(
                        known.lwwTimestamp(of: album.id), ofAlbum: album.id))
            }
        }
    }

    /// Deletes albums in one commit, with their links; the assets stay. Ids without an album are
    /// ignored.
    ///
    /// - Returns: the ids of the deleted albums.
    /// - Throws: `EventError` (`tooLarge`) for more than 4 MiB of deletions, `LogError` as
    ///   `EventStore.append`.
    /// - Complexity: O(links of the albums).
    @discardableResult
    public func delete(_ ids: [String]) async throws -> [String] {
        return try await store.write { transaction in
            let known = transaction.view(AlbumsView.self)
            var unique: Set<EntityID> = []
            let deleted = ids.filter { known[$0] != nil && unique.insert(EntityID($0)).inserted }
            for id in deleted {
                try transaction.append(
                    AlbumRemoved(albumId: id),
                    replacing: transaction.lwwTimestamp(known.newest(of: id), ofAlbum: id))
            }
            return deleted
        }
    }

    /// Links assets to an album and shares it with users. Existing links are not recorded again.
    ///
    /// - Throws: `EventError` with nothing recorded: `refused` for an album or an asset that does not
    ///   exist; `invalidData` for an empty user id; `tooLarge` for more than 1 MiB of ids.
    ///   `LogError` as `EventStore.append`.
    /// - Complexity: O(ids).
    public func link(
        _ albumId: String, assets: [String] = [], users: [String] = []
    ) async throws {
        try await store.write { transaction in
            let albums = transaction.view(AlbumsView.self)
            guard albums[albumId] != nil else {
                throw EventError(.refused, "there is no album \(albumId)")
            }
            let known = transaction.view(AssetsView.self)
            if let missing = assets.first(where: { !(known.entry($0)?.isStored ?? false) }) {
                throw EventError(.refused, "there is no asset \(missing)")
            }
            let links = AlbumLinks(
                albumId: albumId,
                assetIds: assets.filter { !albums.isLinked(albumId, asset: $0) },
                userIds: users.filter { !albums.isLinked(albumId, user: $0) })
            guard !links.isEmpty else { return }
            try transaction.append(
                AlbumLinked(links),
                replacing: transaction.lwwTimestamp(albums.newest(links), ofAlbum: albumId))
        }
    }

    /// Removes assets from an album and no longer shares it with users. Ids that are not linked are
    /// ignored.
    ///
    /// - Throws: `EventError` with nothing recorded: `refused` for an album that does not exist;
    ///   `tooLarge` for more than 1 MiB of ids. `LogError` as `EventStore.append`.
    /// - Complexity: O(ids).
    public func unlink(
        _ albumId: String, assets: [String] = [], users: [String] = []
    ) async throws {
        try await store.write { transaction in
            let albums = transaction.view(AlbumsView.self)
            guard albums[albumId] != nil else {
                throw EventError(.refused, "there is no album \(albumId)")
            }
            let links = AlbumLinks(
                albumId: albumId,
                assetIds: assets.filter { albums.isLinked(albumId, asset: $0) },
                userIds: users.filter { albums.isLinked(albumId, user: $0) })
            guard !links.isEmpty else { return }
            try transaction.append(
                AlbumUnlinked(links),
                replacing: transaction.lwwTimestamp(albums.newest(links), ofAlbum: albumId))
        }
    }

    // MARK: Queries

    /// The album with an id; nil while there is none. O(1).
    public func album(_ id: String) -> ViewQuery<Album?> {
        store.query(AlbumsView.self) { $0[id] }
    }

    /// The album with the server's id; nil while there is none. O(1).
    public func album(remoteId: String) -> ViewQuery<Album?> {
        store.query(AlbumsView.self) { $0.album(remoteId: remoteId) }
    }

    /// All albums, by id. O(n log n).
    public var albums: ViewQuery<[Album]> { store.query(AlbumsView.self) { $0.albums } }

    /// The albums that an asset is in, by id. O(n log n) for n albums of the asset.
    public func albums(containing assetId: String) -> ViewQuery<[Album]> {
        store.query(AlbumsView.self) { $0.albums(containing: assetId) }
    }

    /// The ids of the assets in an album, sorted. O(n log n) for n assets of the album.
    public func assetIDs(of albumId: String) -> ViewQuery<[String]> {
        store.query(AlbumsView.self) { $0.assetIDs(of: albumId) }
    }

    /// The users with whom an album is shared, sorted. O(n log n) for n users of the album.
    public func userIDs(of albumId: String) -> ViewQuery<[String]> {
        store.query(AlbumsView.self) { $0.userIDs(of: albumId) }
    }

    /// The assets in an album at present, by id: those of `assetIDs(of:)` that are stored.
    /// O(n log n) for n assets of the album.
    public func assets(of albumId: String) -> [Asset] {
        let assets = store.view(AssetsView.self)
        return store.view(AlbumsView.self).assetIDs(of: albumId).compactMap { assets[$0] }
    }
}

extension AlbumLinks {
    fileprivate var isEmpty: Bool { assetIds.isEmpty && userIds.isEmpty }
}

extension EventStore.Transaction {
    /// The LWW timestamp that a change of an album must exceed to win and to end the album's cached
    /// thumbnail.
    func lwwTimestamp(_ lwwTimestamp: LWWTimestamp?, ofAlbum albumId: String) -> LWWTimestamp? {
        [lwwTimestamp, view(ImagesView.self).newest(ofAlbum: albumId)].compactMap(\.self).max()
    }
}
