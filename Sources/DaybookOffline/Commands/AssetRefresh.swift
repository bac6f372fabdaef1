// Updates a user's assets from the server: all at first, then the changes. The tags that the next
// request needs are recorded last. Spec/model/media.md, MED-20.

import Daybook

/// A server's response to a request for a user's assets.
public enum AssetUpdate: Sendable {
    /// Nothing has changed since the request's tag (HTTP 304).
    case unchanged
    /// The changes since then: assets that are new or other, and the server's ids of those that are
    /// gone; with the tag of what there is now.
    case changed(_ assets: [AssetStored], goneRemoteIds: [String], eTag: String?)
    /// All assets of the user; with the tag of them.
    case all(_ assets: [AssetStored], eTag: String?)
}

/// The result of a refresh.
public struct AssetRefresh: Hashable, Sendable {
    /// The number of recorded assets.
    public var stored = 0
    /// The ids of assets that the server no longer has.
    public var gone: [String] = []

    /// Creates an empty result.
    public init() {}
}

extension AssetCommands {
    /// Brings the assets of a user up to date with the server.
    ///
    /// `fetch` asks the server for the changes. It gets what the last refresh of this user has left:
    /// the server's tag, for `If-None-Match`, and the number and time of the assets then. Both are nil
    /// at first; the tag is nil, too, where another user was refreshed since. What `fetch` returns is
    /// recorded as by `putInBatches`, and the tags (`assetETag` of the settings, and the user's ETag)
    /// with the last commit: after a kill the next refresh asks for the same again.
    ///
    /// A server knows no copies on this device. An asset of its response that has no `localId` and is
    /// known here, by its id, its `remoteId`, or its owner and checksum, keeps the id and the `localId`
    /// that it has here. An asset that the server no longer has is deleted; one with a copy on the
    /// device stays, without its `remoteId`. What became known while `fetch` was under way is not
    /// concerned.
    ///
    /// - Returns: what was done; durable on return.
    /// - Throws: what `fetch` throws, with nothing recorded; as `putInBatches` and `delete(_:)`.
    /// - Complexity: O(bytes of the response), and with `all` O(assets of the user).
    @discardableResult
    public func refresh(
        of userId: String,
        fetch: (_ eTag: String?, _ last: AssetETag?) async throws -> AssetUpdate
    ) async throws -> AssetRefresh {
        let before = store.view(AssetsView.self)
        let media = store.view(DeviceMediaView.self)
        let settings = store.view(SettingsView.self)
        let tagStamps = TagStamps(userId, media, settings)
        let response = try await fetch(
            tagStamps.isOfOneCommit ? settings[.assetETag] : nil, media.etag(of: userId))
        let assets: [AssetStored]
        let gone: [Asset]
        let eTag: String?
        switch response {
        case .unchanged: return AssetRefresh()
        case .changed(let changed, let goneRemoteIds, let tag):
            (assets, eTag) = (before.matching(changed), tag)
            gone = goneRemoteIds.flatMap { before.all(remoteId: $0).compactMap(\.asset) }
        case .all(let all, let tag):
            (assets, eTag) = (before.matching(all), tag)
            gone = before.assets(ownedBy: userId).filter { $0.remoteId != nil }
        }
        var result = AssetRefresh()
        result.stored = try await putInBatches(assets)
        let present = Set(assets.map { EntityID($0.asset.id) })
        for asset in gone where !present.contains(EntityID(asset.id)) {
            result.gone.append(asset.id)
        }
        try await forgetRemoteIDs(gone.filter { !present.contains(EntityID($0.id)) })
        try await store.write { transaction in
            try Self.record(eTag, of: userId, tagStamps, in: &transaction)
        }
        return result
    }

    /// Records the tags, unless another refresh has recorded some meanwhile: its assets may be newer
    /// than these or older, so that no tag stands for what there is now.
    private static func record(
        _ eTag: String?, of userId: String, _ known: TagStamps,
        in transaction: inout EventStore.Transaction
    ) throws {
        let media = transaction.view(DeviceMediaView.self)
        let settings = transaction.view(SettingsView.self)
        guard TagStamps(userId, media, settings) == known else {
            return try transaction.delete(.assetETag)
        }
        let assets = transaction.view(AssetsView.self)
        let stored = AssetETag(
            id: userId, assetCount: assets.count(ofServerAssetsOf: userId),
            time: ZonedTime(transaction.now))
        try transaction.append(ETagStored(stored), replacing: media.stamp(ofETag: userId))
        guard let eTag else { return try transaction.delete(.assetETag) }
        // Also where the tag is the same as before: the two events are one commit.
        let key = SettingKey<String>.assetETag
        try transaction.append(
            SettingPut(key: key.name, value: eTag), replacing: settings.stamp(of: key.name))
    }

    /// Deletes assets that the server no longer has, or takes the server's ids out of those with a copy
    /// on the device. Those that have got another server's id meanwhile stay as they are.
    private func forgetRemoteIDs(_ gone: [Asset]) async throws {
        var waiting = gone[...]
        // Each once, and a few that others change at the same moment.
        var attempts = gone.count + 100
        while !waiting.isEmpty {
            guard attempts > 0 else {
                throw EventError(
                    .refused,
                    "others keep changing the assets that the server no longer has. Try again")
            }
            attempts -= 1
            var portion: [RemoteIDGone] = []
            var bytes = 0
            for asset in waiting where bytes < Self.cleanUpBytes && portion.count < 1_000 {
                let change = try await RemoteIDGone(asset, self)
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

/// An asset as it is to be stored without the server's id.
private struct RemoteIDGone: Sendable {
    private let asset: Asset
    /// What was looked at; nil if the asset was gone by then, or has another server's id.
    private let old: AssetRecord?
    /// nil where it is deleted.
    private let new: AssetStored?
    /// About what it takes in the log.
    let bytes: Int

    init(_ asset: Asset, _ commands: AssetCommands) async throws {
        self.asset = asset
        let stored = try await commands.stored(asset.id)
        let record = stored?.record
        guard let record, var kept = record.asset, kept.remoteId == asset.remoteId else {
            (old, new, bytes) = (nil, nil, 0)
            return
        }
        old = record
        kept.remoteId = nil
        new =
            kept.localId == nil
            ? nil : AssetStored(kept, properties: stored?.properties)
        bytes = (try new?.json().count ?? 0) + 512
    }

    /// - Parameter deleted: gets the id where the asset is to be deleted.
    /// - Returns: whether it is done; false if the asset was stored again since it was looked at.
    func record(
        in transaction: inout EventStore.Transaction, _ deleted: inout [String]
    ) throws -> Bool {
        guard let old else { return true }
        guard let entry = transaction.view(AssetsView.self).entry(asset.id), entry == old else {
            return false
        }
        if let new {
            try transaction.append(new, replacing: entry.stamp)
        } else {
            deleted.append(asset.id)
        }
        return true
    }
}

/// When the tags of a user were recorded.
private struct TagStamps: Hashable, Sendable {
    private let collection: Stamp?
    private let setting: Stamp?

    init(_ userId: String, _ media: DeviceMediaView, _ settings: SettingsView) {
        collection = media.etag(of: userId) == nil ? nil : media.stamp(ofETag: userId)
        setting = settings.stamp(of: SettingKey<String>.assetETag.name)
    }

    /// Whether a refresh of this user has recorded both: the setting is then the event after the
    /// other one.
    var isOfOneCommit: Bool {
        guard let collection, let setting else { return false }
        return collection.source == setting.source
            && collection.sequence.addingReportingOverflow(1) == (setting.sequence, false)
    }
}

extension AssetsView {
    /// Assets of a server as they are to be stored here.
    fileprivate func matching(_ assets: [AssetStored]) -> [AssetStored] {
        assets.map { stored in
            guard stored.asset.localId == nil,
                let known = self[stored.asset.id]
                    ?? stored.asset.remoteId.flatMap({ self.asset(remoteId: $0) })
                    ?? self.asset(
                        ownerId: stored.asset.ownerId, checksum: stored.asset.checksum)
            else { return stored }
            var stored = stored
            stored.asset.id = known.id
            stored.asset.localId = known.localId
            return stored
        }
    }
}
