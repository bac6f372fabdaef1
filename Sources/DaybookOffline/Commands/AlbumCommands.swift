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
    /// - Throws: `EventError` with nothing recorded: `invalidData` for data that breaks the rules of the type
    ///   (`Spec/model/events.md`, EVT-7), `tooLarge` for more than 1 MiB; `LogError` as `EventStore.append`.
    public func put(_ album: Album) async throws { try await putAll([album]) }

    /// Stores albums, such as those of a server's answer, in commits of about 1 MiB. One that cannot be stored
    /// keeps no other out. Of several albums with one id the last one that can be stored wins.
    ///
    /// - Returns: the albums that could not be stored, with the reasons.
    /// - Throws: as `put(_:)`, if none of the albums can be stored; `CancellationError` between two commits.
    /// - Complexity: O(bytes).
    @discardableResult
    public func putAll(_ albums: [Album]) async throws -> [ListFault] {
        var storable = try StorableElements(
            of: albums, "albums", id: \.id, path: "data", repeats: true
        ) { AlbumStored($0) }
        // An album that a later one replaces would be recorded again by every call.
        storable.keepLast(of: \.id)
        try await storable.record(in: store) { album, transaction in
            let known = transaction.view(AlbumsView.self)
            let stored = AlbumStored(album)
            if let old = known[album.id], try AlbumStored(old).json() == stored.json() { return }
            try transaction.append(
                stored,
                replacing: transaction.lwwTimestamp(
                    known.lwwTimestamp(of: album.id), ofAlbum: album.id))
        }
        return storable.leftOut
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

    /// Links assets to an album and shares it with users, in one commit. Existing links are not recorded again.
    /// An asset that does not exist, such as one that a refresh has left out, or an invalid id of a user keeps no
    /// other out.
    ///
    /// - Returns: what could not be linked, with its location (`assets[3]`, `users[0]`) and the reason.
    /// - Throws: `EventError` with nothing recorded: `refused` for an album that does not exist, and if nothing of
    ///   what is given can be linked; `tooLarge` for more than 4 MiB of ids. `LogError` as `EventStore.append`.
    /// - Complexity: O(ids).
    @discardableResult
    public func link(
        _ albumId: String, assets: [String] = [], users: [String] = []
    ) async throws -> [ListFault] {
        try await store.write { transaction in
            let albums = transaction.view(AlbumsView.self)
            guard albums[albumId] != nil else {
                throw EventError(.refused, "there is no album \(albumId)")
            }
            let known = transaction.view(AssetsView.self)
            var faults: [ListFault] = []
            let assetIds = try Self.storable(assets, "assets", &faults) { id in
                guard !(known.entry(id)?.isStored ?? false) else { return }
                throw EventError(.refused, "there is no asset \(id)")
            }
            let userIds = try Self.storable(users, "users", &faults) { id in
                let links = AlbumLinks(albumId: albumId, userIds: [id])
                _ = try EventDraft.checked(AlbumLinked(links))
            }
            if assetIds.isEmpty, userIds.isEmpty, let fault = faults.first {
                throw EventError(.refused, fault.reason)
            }
            let links = AlbumLinks(
                albumId: albumId,
                assetIds: assetIds.filter { !albums.isLinked(albumId, asset: $0) },
                userIds: userIds.filter { !albums.isLinked(albumId, user: $0) })
            for links in links.portions() {
                try transaction.append(
                    AlbumLinked(links),
                    replacing: transaction.lwwTimestamp(albums.newest(links), ofAlbum: albumId))
            }
            return faults
        }
    }

    /// The ids that pass a check. The others are added to `faults`.
    private static func storable(
        _ ids: [String], _ name: String, _ faults: inout [ListFault],
        _ check: (String) throws -> Void
    ) throws -> [String] {
        var storable: [String] = []
        for (index, id) in ids.enumerated() {
            do {
                try check(id)
                storable.append(id)
            } catch let error as EventError {
                let reason = "\(name)[\(index)]: \(error.detail)"
                faults.append(ListFault(index: index, id: id, reason: reason))
            }
        }
        return storable
    }

    /// Removes assets from an album and no longer shares it with users, in one commit. Ids that are not linked
    /// are ignored.
    ///
    /// - Throws: `EventError` with nothing recorded: `refused` for an album that does not exist;
    ///   `tooLarge` for more than 4 MiB of ids. `LogError` as `EventStore.append`.
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
            for links in links.portions() {
                try transaction.append(
                    AlbumUnlinked(links),
                    replacing: transaction.lwwTimestamp(albums.newest(links), ofAlbum: albumId))
            }
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
    /// The bytes of ids in one event, which has at most 1 MiB.
    private static let portionBytes = 512 * 1_024

    /// The links in parts, each of which fits an event; none without links.
    fileprivate func portions() -> [AlbumLinks] {
        var portions: [AlbumLinks] = []
        var bytes = 0
        func append(_ id: String, to list: WritableKeyPath<AlbumLinks, [String]>) {
            let size = JSONObjectWriter.string(id).count + 1
            if portions.isEmpty || bytes + size > Self.portionBytes {
                portions.append(AlbumLinks(albumId: albumId))
                bytes = 0
            }
            portions[portions.count - 1][keyPath: list].append(id)
            bytes += size
        }
        for id in assetIds { append(id, to: \.assetIds) }
        for id in userIds { append(id, to: \.userIds) }
        return portions
    }
}

extension EventStore.Transaction {
    /// The LWW timestamp that a change of an album must exceed to win and to end the album's cached
    /// thumbnail.
    func lwwTimestamp(_ lwwTimestamp: LWWTimestamp?, ofAlbum albumId: String) -> LWWTimestamp? {
        [lwwTimestamp, view(ImagesView.self).newest(ofAlbum: albumId)].compactMap(\.self).max()
    }
}
