// What the server says of a user's assets comes to the device: all of it the first time, then what has
// changed since. The tags that the next request needs are recorded last. Spec/media.md, MED-20.

import EventSourcing

/// What a server answers to a request for a user's assets.
public enum AssetUpdate: Sendable {
    /// Nothing has changed since the request's tag (HTTP 304).
    case unchanged
    /// What has changed since: assets that are new or other, and the server's ids of those that are
    /// gone; with the tag of what there is now.
    case changed(_ assets: [AssetStored], goneRemoteIds: [String], eTag: String?)
    /// All assets of the user; with the tag of them.
    case all(_ assets: [AssetStored], eTag: String?)
}

/// What a refresh has done.
public struct AssetRefresh: Hashable, Sendable {
    /// How many assets were recorded.
    public var stored = 0
    /// The ids of those that the server has no more.
    public var gone: [String] = []

    /// Nothing.
    public init() {}
}

extension AssetCommands {
    /// Brings the assets of a user up to date with the server.
    ///
    /// `fetch` asks the server for what has changed. It gets what the last refresh of this user has
    /// left: the server's tag, for `If-None-Match`, and the number and time of the assets then; both
    /// are nil at first, and where another user was refreshed since the tag is. What it returns is
    /// recorded with `putInBatches`, and the tags (`assetETag` of the settings, and the user's ETag)
    /// with the last commit: after a kill the next refresh asks for the same again.
    ///
    /// An asset that the server has no more is deleted; one of which there is a copy on the device
    /// stays, without its `remoteId`.
    ///
    /// - Returns: what was done; durable on return.
    /// - Throws: what `fetch` throws, with nothing recorded; as `putInBatches` and `delete(_:)`.
    /// - Complexity: O(bytes of the answer), and with `all` O(assets of the user).
    @discardableResult
    public func refresh(
        of userId: String,
        fetch: (_ eTag: String?, _ last: AssetETag?) async throws -> AssetUpdate
    ) async throws -> AssetRefresh {
        var result = AssetRefresh()
        let media = store.view(DeviceMediaView.self)
        let eTag = store.view(SettingsView.self)[.assetETag]
        let isOwn = media.newestETag?.id == userId
        let assets: [AssetStored]
        let gone: [Asset]
        let newTag: String?
        switch try await fetch(isOwn ? eTag : nil, media.etag(of: userId)) {
        case .unchanged: return result
        case .changed(let changed, let goneRemoteIds, let tag):
            (assets, newTag) = (changed, tag)
            let view = store.view(AssetsView.self)
            gone = goneRemoteIds.flatMap { view.all(remoteId: $0).compactMap(\.asset) }
        case .all(let all, let tag):
            (assets, newTag) = (all, tag)
            let ids = Set(all.map { EntityID($0.asset.id) })
            gone = store.view(AssetsView.self).assets(ownedBy: userId)
                .filter { $0.remoteId != nil && !ids.contains(EntityID($0.id)) }
        }
        // First: an asset may have the key of one that is gone.
        result.gone = gone.map(\.id)
        var stay: [AssetStored] = []
        for asset in gone where asset.localId != nil {
            guard let stored = try await stored(asset.id), var kept = stored.record.asset else {
                continue
            }
            kept.remoteId = nil
            stay.append(AssetStored(kept, properties: stored.properties))
        }
        try await putInBatches(stay)
        for start in stride(from: 0, to: gone.count, by: Self.deletionsMax) {
            let portion = gone[start..<min(gone.count, start + Self.deletionsMax)]
            try await delete(portion.filter { $0.localId == nil }.map(\.id))
        }
        result.stored = try await putInBatches(assets)
        let count = store.view(AssetsView.self).count(ofServerAssetsOf: userId)
        try await store.write { transaction in
            let view = transaction.view(DeviceMediaView.self)
            let tag = AssetETag(
                id: userId, assetCount: count, time: ZonedTime(transaction.now))
            // So that it is the newest, whatever the clock says.
            try transaction.append(
                ETagStored(tag), replacing: view.newestETag.flatMap { view.stamp(ofETag: $0.id) })
            if let newTag {
                try transaction.put(.assetETag, newTag)
            } else {
                try transaction.delete(.assetETag)
            }
        }
        return result
    }

    /// Deletions in one commit.
    private static let deletionsMax = 1_000
}
