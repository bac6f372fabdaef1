// The commands of an app on assets: put, find, delete. See also AssetQueries, AssetRefresh, CleanUp.
// Spec/model/media.md.

import Daybook
import Foundation

/// Commands and queries on the assets of a library.
///
/// No event of these commands is shipped. Every command is durable on return.
public struct AssetCommands: Sendable {
    let store: EventStore

    init(_ store: EventStore) { self.store = store }

    // MARK: Writing

    /// Stores an asset, or replaces the one with its id completely.
    ///
    /// - Parameters:
    ///   - asset: the asset.
    ///   - properties: further data, a JSON object without the members of an asset. It is kept in the
    ///     log; `properties(of:)` reads it.
    /// - Throws: as `putAll(_:)`.
    /// - Complexity: O(bytes).
    public func put(_ asset: Asset, properties: [UInt8]? = nil) async throws {
        try await putAll([AssetStored(asset, properties: properties)])
    }

    /// Stores assets, all or none, in one commit. Of several assets with one id the last one wins. For assets that
    /// come from outside, such as a server's or the device's library, use `putInBatches`: there one that cannot be
    /// stored keeps no other out.
    ///
    /// - Throws: `EventError` with nothing recorded: `refused` if an asset has the remote id, the
    ///   local id, or the owner and checksum of another one, which the error names; `invalidData` for
    ///   an empty id or other data that breaks the rules of the type (`Spec/model/events.md`, EVT-7);
    ///   `tooLarge` for an asset of more than 1 MiB, or more than 4 MiB together: the error names the
    ///   limit; `putInBatches` has none. `LogError` as `EventStore.append`.
    /// - Complexity: O(bytes), and one lookup for each key of each asset.
    public func putAll(_ assets: [any StorableAsset]) async throws {
        guard !assets.isEmpty else { return }
        let assets = assets.map(\.stored)
        try await store.write { transaction in
            let known = transaction.view(AssetsView.self)
            try Self.checkUnique(Self.lastOfEachID(assets), known)
            for stored in assets {
                try transaction.append(stored, replacing: known.lwwTimestamp(of: stored.asset.id))
            }
        }
    }

    /// Stores any number of assets, in commits of about 1 MiB. Each asset is stored completely or not at
    /// all. Unchanged assets without properties are skipped, so after a kill the same call continues
    /// where it stopped. Durable on return.
    ///
    /// An asset that cannot be stored is left out: one that breaks the rules of the type
    /// (`Spec/model/events.md`, EVT-7) or exceeds 1 MiB, or that would share a key with another one after all
    /// others are stored (MED-4). Of two such assets the one that is stored already, else the first, is stored.
    ///
    /// All assets are checked before the first commit. An asset with the same key that another task
    /// stores between two commits is not detected: the keys are then as after an import (MED-4).
    ///
    /// - Parameters:
    ///   - assets: the assets; of several with one id the last one wins.
    ///   - progress: called after each commit with the number of processed ids, without those left out.
    /// - Returns: the number of recorded assets, and what was left out, with the reasons.
    /// - Throws: `CancellationError` between two commits; `LogError` as `EventStore.append`.
    /// - Complexity: O(bytes), and one lookup for each key of each asset.
    @discardableResult
    public func putInBatches(
        _ assets: [any StorableAsset], progress: (@Sendable (_ done: Int) -> Void)? = nil
    ) async throws -> AssetRefresh {
        // An asset that a later one replaces would be recorded again by every call.
        let merge = try AssetMerge(
            storing: Self.lastOfEachID(assets.map(\.stored)), into: store.view(AssetsView.self))
        var result = AssetRefresh()
        result.leftOut = merge.leftOut
        try await markChangedOnServer(merge.outdated)
        result.stored = try await recordInBatches(merge.assets, progress: progress)
        return result
    }

    /// Stores assets as `putInBatches`, without the check of their keys. Each id occurs once.
    func recordInBatches(
        _ assets: [AssetStored], progress: (@Sendable (_ done: Int) -> Void)? = nil
    ) async throws -> Int {
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
                    try transaction.append(
                        stored, replacing: known.lwwTimestamp(of: stored.asset.id))
                    count += 1
                }
                return count
            }
            start = end
            progress?(end)
        }
        return recorded
    }

    /// The maximum bytes of event data in a batch of `putInBatches`.
    private static let batchBytes = 1_048_576

    /// The last asset of each id, in order. O(assets).
    private static func lastOfEachID(_ assets: [AssetStored]) -> [AssetStored] {
        var last: [EntityID: Int] = [:]
        for (index, stored) in assets.enumerated() { last[EntityID(stored.asset.id)] = index }
        guard last.count < assets.count else { return assets }
        return last.values.sorted().map { assets[$0] }
    }

    /// Refuses the assets if two assets would share a key after all of them are stored.
    ///
    /// - Parameter assets: the assets; each id occurs once.
    private static func checkUnique(
        _ assets: [AssetStored], _ known: AssetsView
    ) throws(EventError) {
        let ids = Set(assets.map { EntityID($0.asset.id) })
        var assetIDs: [UniqueAssetKey: String] = [:]
        for asset in assets.map(\.asset) {
            for key in UniqueAssetKey.all(of: asset) {
                let owner = key.records(known).map(\.id).first { !ids.contains(EntityID($0)) }
                if let other = owner ?? assetIDs[key] {
                    throw EventError(
                        .refused,
                        "the asset \(asset.id) cannot have \(key): the asset \(other) has it")
                }
                assetIDs[key] = asset.id
            }
        }
    }

    /// Deletes assets in one commit, and removes them from their albums. Ids without an asset are
    /// ignored.
    ///
    /// - Returns: the ids of the deleted assets.
    /// - Throws: `EventError` (`tooLarge`) for more than 4 MiB of deletions, which is about 15,000;
    ///   nothing is recorded then. `LogError` as `EventStore.append`.
    /// - Complexity: O(ids + the albums that contain them + all albums).
    @discardableResult
    public func delete(_ ids: [String]) async throws -> [String] {
        return try await store.write { transaction in
            try Self.delete(ids, in: &transaction)
        }
    }

    /// Deletes the assets with these ids of the server, as `delete(_:)`.
    ///
    /// - Returns: the ids, not the server's, of the deleted assets.
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
        var removedFromAlbum: [EntityID: [String]] = [:]
        for id in ids {
            guard let entry = assets.entry(id), entry.isStored,
                deleted.insert(EntityID(id)).inserted
            else { continue }
            // The removal also ends the asset's album links and its cached images.
            let last = [
                entry.lwwTimestamp, albums.newest(linksOf: id), images.newest(ofAsset: id),
            ].compactMap(\.self).max()
            try transaction.append(AssetRemoved(assetId: id), replacing: last)
            order.append(id)
            for album in albums.albums(containing: id) {
                removedFromAlbum[EntityID(album.id), default: []].append(id)
            }
        }
        // The unlink also ends the album's cached thumbnail, which may show a deleted asset.
        for album in deleted.isEmpty ? [] : albums.albums {
            let cover = album.thumbnailAssetId.map(EntityID.init)
            let deletedCover = cover.flatMap { deleted.contains($0) ? [$0.string] : nil }
            guard let ids = removedFromAlbum[EntityID(album.id)] ?? deletedCover else { continue }
            let links = AlbumLinks(albumId: album.id, assetIds: ids, userIds: [])
            try transaction.append(
                AlbumUnlinked(links),
                replacing: transaction.lwwTimestamp(albums.newest(links), ofAlbum: album.id))
        }
        return order
    }

    // MARK: Reading

    /// The properties of an asset, from the log: a JSON object with the members that `Asset` does not
    /// name; nil if it has none, or there is no such asset.
    ///
    /// - Throws: `LogError`, `corrupt` if the log has lost the event that contains them.
    /// - Complexity: O(1) without properties, else one frame to read.
    public func properties(of id: String) async throws -> [UInt8]? {
        try await stored(id)?.properties
    }

    /// The record of an asset and the properties of its event.
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

/// A key that no two assets should share.
enum UniqueAssetKey: Hashable, CustomStringConvertible {
    case remoteId(EntityID)
    case localId(EntityID)
    case checksum(owner: EntityID, EntityID)

    static func all(of asset: Asset) -> [UniqueAssetKey] {
        [
            checksum(of: asset), asset.remoteId.map { .remoteId(EntityID($0)) },
            asset.localId.map { .localId(EntityID($0)) },
        ].compactMap(\.self)
    }

    static func checksum(of asset: Asset) -> UniqueAssetKey? {
        asset.checksum.map { .checksum(owner: EntityID(asset.ownerId), EntityID($0)) }
    }

    /// The stored assets with this key.
    func records(_ view: AssetsView) -> [AssetRecord] {
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
