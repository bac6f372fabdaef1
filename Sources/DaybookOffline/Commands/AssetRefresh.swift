// Updates a user's assets from the server: first all assets, later the changes. The tags for the next
// request are recorded last. Spec/model/media.md, MED-20.

import Daybook

/// A server's response to a request for a user's assets.
public enum AssetUpdate: Sendable {
    /// Nothing has changed since the request's tag (HTTP 304).
    case unchanged
    /// The changes since then: new and changed assets, and the server's ids of deleted ones; with the
    /// tag of the present state.
    case changed(_ assets: [any StorableAsset], goneRemoteIds: [String], eTag: String?)
    /// All assets of the user, with their tag.
    case all(_ assets: [any StorableAsset], eTag: String?)
}

/// The result of a refresh, and of storing assets in batches.
public struct AssetRefresh: Hashable, Sendable {
    /// The number of recorded assets.
    public var stored = 0
    /// After a refresh: the ids of assets that the server no longer has. Those with a copy on the device are not uploaded
    /// again until `DeviceMediaCommands.deleteDuplicates(_:)` is called with their local ids.
    public var gone: [String] = []
    /// The assets of the response or the batch that could not be stored. What is stored of them stays.
    public var leftOut: [AssetFault] = []

    /// Creates an empty result.
    public init() {}
}

extension AssetCommands {
    /// Updates the assets of a user from the server.
    ///
    /// `fetch` requests the changes from the server. Its arguments are the results of this user's last
    /// refresh: the server's tag, for `If-None-Match`, and the number and time of the assets then. Both
    /// are nil at first; the tag is also nil if another user was refreshed since. The response is
    /// recorded in commits of about 1 MiB, and the tags (`assetETag` of the settings, and the user's ETag)
    /// with the last commit: after a kill the next refresh sends the same request again.
    ///
    /// The server does not know the copies on this device. An asset of its response that is stored here, by
    /// its `remoteId` or its id, or as a copy on the device with its `localId` or its owner and checksum,
    /// keeps the id and the `localId` that are stored; no two assets of the response become one. A response
    /// without checksums does not erase those that `setChecksums(_:)` has recorded, unless `fileModifiedAt`
    /// says that the file has changed. An asset
    /// that the server no longer has is deleted; one with a copy on the device stays, without its
    /// `remoteId`, and counts as a duplicate, so that it is not uploaded again. Assets that were stored
    /// while `fetch` ran are not deleted.
    ///
    /// If the server gives an asset that is stored the checksum of another one on this device alone, the two become
    /// one, with the albums of both.
    ///
    /// An asset that breaks the rules of the type is left out, and one with a key that another asset has in
    /// the end (MED-4). In the second case `assetETag` is deleted, so that the next refresh requests all
    /// assets. What is stored of an asset that is left out stays, but is no proof of a backup any more: its copy on
    /// the device is not deleted to free space (`Asset.isChangedOnServer`).
    ///
    /// - Returns: the number of stored assets, the ids of deleted ones and what was left out; durable on
    ///   return.
    /// - Throws: what `fetch` throws, with nothing recorded; `CancellationError` between two commits;
    ///   `EventError` (`refused`) if other commands keep changing the same assets; `LogError` as
    ///   `EventStore.append`.
    /// - Complexity: O(bytes of the response), and with `all` O(assets of the user).
    @discardableResult
    nonisolated(nonsending) public func refresh(
        of userId: String,
        fetch: (_ eTag: String?, _ last: AssetETag?) async throws -> AssetUpdate
    ) async throws -> AssetRefresh {
        let before = store.view(AssetsView.self)
        let media = store.view(DeviceMediaView.self)
        let settings = store.view(SettingsView.self)
        let tagTimestamps = TagTimestamps(userId, media, settings)
        let response = try await fetch(
            tagTimestamps.isOfOneCommit ? settings[.assetETag] : nil, media.etag(of: userId))
        let answer: [AssetStored]
        let leaving: [Asset]
        let eTag: String?
        switch response {
        case .unchanged: return AssetRefresh()
        case .changed(let changed, let goneRemoteIds, let tag):
            (answer, eTag) = (changed.map(\.stored), tag)
            leaving = goneRemoteIds.flatMap { before.all(remoteId: $0).compactMap(\.asset) }
        case .all(let all, let tag):
            (answer, eTag) = (all.map(\.stored), tag)
            leaving = before.assets(ownedBy: userId).filter { $0.remoteId != nil }
        }
        // Assets may have been stored while `fetch` ran.
        let known = store.view(AssetsView.self)
        let merge = try AssetMerge(
            answer,
            leaving: Set(
                leaving.filter { known[$0.id]?.remoteId == $0.remoteId }.map { EntityID($0.id) }),
            into: known)
        var result = AssetRefresh()
        result.leftOut = merge.leftOut
        try await markChangedOnServer(merge.outdated)
        // Before the assets: after a kill the next refresh finds no asset that gets its server's id back.
        try await removeDuplicates(of: merge.regained)
        result.stored = try await recordInBatches(merge.assets)
        let gone = leaving.filter { !merge.names($0.id) }
        result.gone = gone.map(\.id)
        try await apply(.removal, to: gone)
        let hasConflicts = try await !deleteAbsorbed(merge.absorbed) || merge.hasConflicts
        try await store.write { transaction in
            if hasConflicts {
                // The change of another asset may make it possible to store what was left out.
                try transaction.delete(.assetETag)
            } else {
                try Self.record(eTag, of: userId, tagTimestamps, in: &transaction)
            }
        }
        return result
    }

    /// Records the tags. If another refresh has recorded tags meanwhile, deletes the tag instead: the
    /// assets of that refresh may be newer or older than these, so no tag describes the present state.
    private static func record(
        _ eTag: String?, of userId: String, _ known: TagTimestamps,
        in transaction: inout EventStore.Transaction
    ) throws {
        let media = transaction.view(DeviceMediaView.self)
        let settings = transaction.view(SettingsView.self)
        guard TagTimestamps(userId, media, settings) == known else {
            return try transaction.delete(.assetETag)
        }
        let assets = transaction.view(AssetsView.self)
        let stored = AssetETag(
            id: userId, assetCount: assets.count(ofServerAssetsOf: userId),
            time: ZonedTime(transaction.now))
        try transaction.append(ETagStored(stored), replacing: media.lwwTimestamp(ofETag: userId))
        guard let eTag else { return try transaction.delete(.assetETag) }
        // Also if the tag is unchanged: `isOfOneCommit` needs both events in one commit.
        let key = SettingKey<String>.assetETag
        try transaction.append(
            SettingPut(key: key.name, value: eTag), replacing: settings.lwwTimestamp(of: key.name))
    }

    /// Deletes the duplicates of copies whose assets the server has again. An earlier answer without them has
    /// recorded these; later edits of the files would not be uploaded.
    private func removeDuplicates(of localIds: [String]) async throws {
        var waiting = localIds.filter(store.view(DeviceMediaView.self).isDuplicate)[...]
        while !waiting.isEmpty {
            try await DeviceMediaCommands(store).deleteDuplicates(Array(waiting.prefix(1_000)))
            waiting = waiting.dropFirst(1_000)
        }
    }

    /// Deletes the assets that have become one with another, which gets their albums.
    ///
    /// - Returns: false if one of them was stored again meanwhile; it stays.
    private func deleteAbsorbed(
        _ absorbed: [(record: AssetRecord, into: String)]
    ) async throws -> Bool {
        var waiting = absorbed[...]
        var isDone = true
        while !waiting.isEmpty {
            let portion = Array(waiting.prefix(Self.cleanUpPortion))
            waiting = waiting.dropFirst(Self.cleanUpPortion)
            let deleted = try await store.write { transaction in
                let view = transaction.view(AssetsView.self)
                let unchanged = portion.filter { record, id in
                    view.entry(record.id) == record && view.entry(id)?.localId == record.localId
                }
                for (record, id) in unchanged {
                    try Self.copyAlbums(of: record.id, to: id, in: &transaction)
                }
                return try Self.delete(unchanged.map(\.record.id), in: &transaction).count
            }
            isDone = isDone && deleted == portion.count
        }
        return isDone
    }

    /// Adds an asset to the albums of another one.
    static func copyAlbums(
        of id: String, to other: String, in transaction: inout EventStore.Transaction
    ) throws {
        let albums = transaction.view(AlbumsView.self)
        for album in albums.albums(containing: id) where !albums.isLinked(album.id, asset: other) {
            let links = AlbumLinks(albumId: album.id, assetIds: [other])
            try transaction.append(
                AlbumLinked(links),
                replacing: transaction.lwwTimestamp(albums.newest(links), ofAlbum: album.id))
        }
    }

    /// Records that what is stored of assets does not show any more what the server has. Durable on return.
    func markChangedOnServer(_ assets: [Asset]) async throws {
        try await apply(.change, to: assets)
    }

    /// Records that the server has changed assets or no longer has them. An asset that has another server's id by
    /// now is not changed.
    private func apply(_ kind: ServerChange.Kind, to assets: [Asset]) async throws {
        var waiting = assets[...]
        // One attempt for each asset, and 100 for assets that another task changes at the same time.
        var attempts = assets.count + 100
        while !waiting.isEmpty {
            guard attempts > 0 else {
                throw EventError(
                    .refused,
                    "other commands keep changing the assets that the server has changed or no "
                        + "longer has; try again")
            }
            attempts -= 1
            var portion: [ServerChange] = []
            var bytes = 0
            for asset in waiting where bytes < Self.cleanUpBytes && portion.count < 1_000 {
                let change = try await ServerChange(kind, asset, self)
                portion.append(change)
                bytes += change.bytes
            }
            let list = portion
            let isDone = try await store.write { transaction in
                var deleted: [String] = []
                let isDone = try list.map { try $0.record(in: &transaction, &deleted) }
                _ = try Self.delete(deleted, in: &transaction)
                return isDone
            }
            let again = zip(waiting, isDone).filter { !$0.1 }.map(\.0)
            waiting = (again + waiting.dropFirst(list.count))[...]
        }
    }
}

/// The replacement of an asset that the server has changed or no longer has, or its deletion.
private struct ServerChange: Sendable {
    enum Kind {
        /// The server no longer has the asset: it loses the server's id, and is deleted without a copy on the device.
        case removal
        /// The server's asset is another one, which is not stored: the asset loses its checksum.
        case change
    }

    private let kind: Kind
    private let asset: Asset
    /// The record that was read; nil if the asset no longer exists or has another server's id.
    private let old: AssetRecord?
    /// The new asset; nil if the asset is deleted.
    private let new: AssetStored?
    /// The approximate bytes of the event in the log.
    let bytes: Int

    init(_ kind: Kind, _ asset: Asset, _ commands: AssetCommands) async throws {
        (self.kind, self.asset) = (kind, asset)
        let stored = try await commands.stored(asset.id)
        let record = stored?.record
        guard let record, var kept = record.asset, kept.remoteId == asset.remoteId,
            // A change matters to a copy on the device, which another task may have removed meanwhile.
            kind == .removal || kept.localId != nil
        else {
            (old, new, bytes) = (nil, nil, 0)
            return
        }
        old = record
        switch kind {
        // What the server had before may not be what the copy is, so a mark of a change stays.
        case .removal: kept.remoteId = nil
        case .change:
            kept.checksum = nil
            kept.isChecksumOfDevice = false
            kept.isChangedOnServer = true
        }
        new =
            kept.localId == nil
            ? nil : AssetStored(kept, properties: stored?.properties)
        bytes = (try new?.json().count ?? 0) + 512
    }

    /// - Parameter deleted: receives the id if the asset is to be deleted.
    /// - Returns: false if the asset was stored again since it was read.
    func record(
        in transaction: inout EventStore.Transaction, _ deleted: inout [String]
    ) throws -> Bool {
        guard let old else { return true }
        guard let entry = transaction.view(AssetsView.self).entry(asset.id), entry == old else {
            return false
        }
        if let new {
            try transaction.append(new, replacing: entry.lwwTimestamp)
            // Else a backup would upload what was deleted on the server.
            let media = transaction.view(DeviceMediaView.self)
            if kind == .removal, let localId = new.asset.localId, !media.isDuplicate(localId) {
                try transaction.append(
                    DuplicateStored(deviceAssetId: localId),
                    replacing: media.lwwTimestamp(ofDuplicate: localId))
            }
        } else {
            deleted.append(asset.id)
        }
        return true
    }
}

/// The LWW timestamps of a user's tags.
private struct TagTimestamps: Hashable, Sendable {
    private let collection: LWWTimestamp?
    private let setting: LWWTimestamp?

    init(_ userId: String, _ media: DeviceMediaView, _ settings: SettingsView) {
        collection = media.etag(of: userId) == nil ? nil : media.lwwTimestamp(ofETag: userId)
        setting = settings.lwwTimestamp(of: SettingKey<String>.assetETag.name)
    }

    /// Whether one refresh of this user has recorded both tags. The setting is then the event right
    /// after the user's ETag.
    var isOfOneCommit: Bool {
        guard let collection, let setting else { return false }
        return collection.source == setting.source
            && collection.sequence.addingReportingOverflow(1) == (setting.sequence, false)
    }
}
