// What an app does with assets: put them, find them, delete them. Beside it: AssetQueries, CleanUp.
// Spec/model/media.md.

import Daybook
import Foundation

/// Commands and questions on the assets of a library.
///
/// Nothing here is shipped. Every command returns when what it has recorded is on the disk.
public struct AssetCommands: Sendable {
    let store: EventStore

    init(_ store: EventStore) { self.store = store }

    // MARK: Writing

    /// Stores an asset, or replaces the one with its id: nothing of the old one is kept.
    ///
    /// - Parameters:
    ///   - asset: the asset.
    ///   - properties: what else is known of it, a JSON object with other members than an asset has.
    ///     It is kept in the log; `properties(of:)` reads it.
    /// - Throws: as `putAll(_:)`.
    /// - Complexity: O(bytes).
    public func put(_ asset: Asset, properties: [UInt8]? = nil) async throws {
        try await putAll([AssetStored(asset, properties: properties)])
    }

    /// Stores assets, all or none, in one commit. Of several with one id the last counts.
    ///
    /// - Throws: `EventError` with nothing recorded: `refused` where an asset has the remote id, the
    ///   local id, or the owner and checksum of another one, which it names; `invalidData` for an
    ///   empty id or what else breaks the rules of the type (`Spec/model/events.md`, EVT-7); `tooLarge`
    ///   for an asset of more than 1 MiB, or more than 4 MiB together: the error names the limit;
    ///   `putInBatches` has none. `LogError` as `EventStore.append`.
    /// - Complexity: O(bytes), and one look-up for each key of each asset.
    public func putAll(_ assets: [Asset]) async throws {
        try await putAll(assets.map { AssetStored($0) })
    }

    /// Stores assets with what else is known of them, as `putAll(_:)`.
    ///
    /// - Throws: as the other one.
    /// - Complexity: as the other one.
    public func putAll(_ assets: [AssetStored]) async throws {
        guard !assets.isEmpty else { return }
        try await store.write { transaction in
            let known = transaction.view(AssetsView.self)
            try Self.checkUnique(Self.lastOfEach(assets), known)
            for stored in assets {
                try transaction.append(stored, replacing: known.stamp(of: stored.asset.id))
            }
        }
    }

    /// Stores any number of assets, in commits of about 1 MiB: each is there whole, or not at all. What
    /// is stored already, without properties, is passed over; so after a kill the same call goes on
    /// where it was. Durable on return.
    ///
    /// What would be refused is refused before the first commit. Others that store an asset with the
    /// same key meanwhile are not noticed: the keys are then as after an import (MED-4).
    ///
    /// - Parameters:
    ///   - assets: the assets; of several with one id the last counts.
    ///   - progress: called after each commit with the number of ids that are done.
    /// - Returns: how many were recorded.
    /// - Throws: as `putAll(_:)`, but `tooLarge` for one asset only; `CancellationError` between two
    ///   commits.
    /// - Complexity: O(bytes), and one look-up for each key of each asset.
    @discardableResult
    public func putInBatches(
        _ assets: [AssetStored], progress: (@Sendable (_ done: Int) -> Void)? = nil
    ) async throws -> Int {
        // The others would be recorded again by every call.
        let assets = Self.lastOfEach(assets)
        try Self.checkUnique(assets, store.view(AssetsView.self))
        let sizes = try assets.map { try EventDraft.checked($0).json?.count ?? 0 }
        var recorded = 0
        var start = 0
        while start < assets.count {
            try Task.checkCancellation()
            var (end, bytes) = (start, 0)
            while end < assets.count, end == start || bytes + sizes[end] <= Self.batchBytes {
                bytes += sizes[end]
                end += 1
            }
            let batch = assets[start..<end]
            recorded += try await store.write { transaction in
                let known = transaction.view(AssetsView.self)
                var count = 0
                for stored in batch where try !known.has(stored) {
                    try transaction.append(stored, replacing: known.stamp(of: stored.asset.id))
                    count += 1
                }
                return count
            }
            start = end
            progress?(end)
        }
        return recorded
    }

    /// Bytes of the data of a batch of `putInBatches`.
    private static let batchBytes = 1_048_576

    /// The assets without those that a later one with the same id replaces, in order. O(assets).
    private static func lastOfEach(_ assets: [AssetStored]) -> [AssetStored] {
        var last: [EntityID: Int] = [:]
        for (index, stored) in assets.enumerated() { last[EntityID(stored.asset.id)] = index }
        guard last.count < assets.count else { return assets }
        return last.values.sorted().map { assets[$0] }
    }

    /// Refuses assets with a key of another one, as things are when all of them are stored.
    ///
    /// - Parameter assets: each id once.
    private static func checkUnique(
        _ assets: [AssetStored], _ known: AssetsView
    ) throws(EventError) {
        let ids = Set(assets.map { EntityID($0.asset.id) })
        var taken: [AssetKeyText: String] = [:]
        for asset in assets.map(\.asset) {
            for key in AssetKeyText.all(of: asset) {
                let holder = key.holders(known).map(\.id).first { !ids.contains(EntityID($0)) }
                if let other = holder ?? taken[key] {
                    throw EventError(
                        .refused,
                        "the asset \(asset.id) cannot have \(key): the asset \(other) has it")
                }
                taken[key] = asset.id
            }
        }
    }

    /// Deletes assets in one commit; they go from their albums, too. Ids of which there is no asset
    /// are passed over.
    ///
    /// - Returns: the ids of the assets that were there.
    /// - Throws: `EventError` (`tooLarge`) for more than 4 MiB of deletions, which is about 15,000;
    ///   nothing is recorded then. `LogError` as `EventStore.append`.
    /// - Complexity: O(ids, the albums that they are in, and all albums once).
    @discardableResult
    public func delete(_ ids: [String]) async throws -> [String] {
        return try await store.write { transaction in
            try Self.delete(ids, in: &transaction)
        }
    }

    /// Deletes the assets with some of the server's ids, as `delete(_:)`.
    ///
    /// - Returns: the ids, not the server's, of the assets that were there.
    /// - Throws: as `delete(_:)`.
    /// - Complexity: as `delete(_:)`.
    @discardableResult
    public func deleteAllByRemoteId(_ remoteIds: [String]) async throws -> [String] {
        return try await store.write { transaction in
            let known = transaction.view(AssetsView.self)
            let ids = remoteIds.flatMap { known.all(remoteId: $0).map(\.id) }
            return try Self.delete(ids, in: &transaction)
        }
    }

    static func delete(
        _ ids: [String], in transaction: inout EventStore.Transaction
    ) throws -> [String] {
        let assets = transaction.view(AssetsView.self)
        let albums = transaction.view(AlbumsView.self)
        let images = transaction.view(ImagesView.self)
        var deleted: Set<EntityID> = []
        var order: [String] = []
        var left: [EntityID: [String]] = [:]
        for id in ids {
            guard let entry = assets.entry(id), entry.isStored,
                deleted.insert(EntityID(id)).inserted
            else { continue }
            // It takes the asset out of its albums, and ends its cached images.
            let last = [
                entry.stamp, albums.newest(linksOf: id), images.newest(ofAsset: id),
            ].compactMap(\.self).max()
            try transaction.append(AssetRemoved(assetId: id), replacing: last)
            order.append(id)
            for album in albums.albums(containing: id) {
                left[EntityID(album.id), default: []].append(id)
            }
        }
        // The album has changed, and its cached thumbnail with it, which may show what was deleted.
        for album in deleted.isEmpty ? [] : albums.albums {
            let cover = album.thumbnailAssetId.map(EntityID.init)
            let shown = cover.flatMap { deleted.contains($0) ? [$0.string] : nil }
            guard let ids = left[EntityID(album.id)] ?? shown else { continue }
            let links = AlbumLinks(albumId: album.id, assetIds: ids, userIds: [])
            try transaction.append(
                AlbumUnlinked(links),
                replacing: transaction.stamp(albums.newest(links), ofAlbum: album.id))
        }
        return order
    }

    // MARK: Reading

    /// What else is known of an asset, from the log: a JSON object with the members that an asset
    /// has no name for; nil if there are none, or no such asset.
    ///
    /// - Throws: `LogError`, `corrupt` where the log has lost the event that holds it.
    /// - Complexity: O(1) without any, else one frame to read.
    public func properties(of id: String) async throws -> [UInt8]? {
        try await stored(id)?.properties
    }

    /// An asset with all that its event says.
    func stored(_ id: String) async throws -> (record: AssetRecord, properties: [UInt8]?)? {
        let record = store.view(AssetsView.self).entry(id)
        if let record, record.isStored, !record.hasProperties { return (record, nil) }
        let stored = try await store.named(
            AssetStored.self,
            by: {
                store.view(AssetsView.self).entry(id).flatMap { record in
                    record.event.map { (record: record, event: $0) }
                }
            },
            event: { $0.event })
        return stored.map { ($0.found.record, $0.payload.properties) }
    }
}

/// A key that no two assets should have.
private enum AssetKeyText: Hashable, CustomStringConvertible {
    case remoteId(EntityID)
    case localId(EntityID)
    case checksum(owner: EntityID, EntityID)

    static func all(of asset: Asset) -> [AssetKeyText] {
        [
            .checksum(owner: EntityID(asset.ownerId), EntityID(asset.checksum)),
            asset.remoteId.map { .remoteId(EntityID($0)) },
            asset.localId.map { .localId(EntityID($0)) },
        ].compactMap(\.self)
    }

    func holders(_ view: AssetsView) -> [AssetRecord] {
        switch self {
        case .remoteId(let id): view.all(remoteId: id.string)
        case .localId(let id): view.all(localId: id.string)
        case .checksum(let owner, let checksum):
            view.all(ownerId: owner.string, checksum: checksum.string)
        }
    }

    var description: String {
        switch self {
        case .remoteId(let id): "the remote id \(id)"
        case .localId(let id): "the local id \(id)"
        case .checksum(let owner, let checksum): "the checksum \(checksum) of the owner \(owner)"
        }
    }
}
