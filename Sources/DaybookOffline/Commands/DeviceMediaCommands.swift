// The commands of an app on the device's media library and its backup. Spec/model/media.md.

import Daybook

/// Commands and queries on the small collections: backup albums, duplicates, ETags, the device's own
/// assets.
///
/// No event of these commands is shipped. Every command is durable on return. It throws `EventError` with
/// nothing recorded: `invalidData` for data that breaks the rules of the type (`Spec/model/events.md`, EVT-7),
/// `tooLarge` for deletions of more than 4 MiB; `LogError` as `EventStore.append`. Deletions of absent entries
/// are ignored. A command is O(its arguments).
///
/// The lists that `put` and `addDuplicates` take come from the device's library, so one bad element keeps no other
/// out: it is left out, and returned with the reason. All others are stored, in commits of about 1 MiB, between
/// which the call can be cancelled (`CancellationError`). Only a list of which nothing can be stored is refused.
/// Every other command is one commit.
public struct DeviceMediaCommands: Sendable {
    let store: EventStore

    init(_ store: EventStore) { self.store = store }

    // MARK: Backup albums

    /// Stores albums of the device, or replaces those with their ids.
    ///
    /// - Returns: the albums that could not be stored.
    @discardableResult
    public func put(_ albums: [BackupAlbum]) async throws -> [ListFault] {
        try await recordList(albums, "albums", id: \.id) {
            BackupAlbumStored($0)
        } after: {
            $0.lwwTimestamp(ofBackupAlbum: $1.id)
        }
    }

    /// Deletes albums of the device from the store.
    public func deleteBackupAlbums(_ ids: [String]) async throws {
        try await record(ids.map { BackupAlbumRemoved(albumId: $0) }) { view, event in
            view.lwwTimestamp(ofBackupAlbum: event.albumId)
        } where: { view, event in
            view.backupAlbum(event.albumId) != nil
        }
    }

    /// The albums of the device, by id. O(n log n).
    public var backupAlbums: ViewQuery<[BackupAlbum]> {
        store.query(DeviceMediaView.self) { $0.backupAlbums }
    }

    // MARK: Backups

    /// The assets to be uploaded, the oldest first: those that are on the device, not on the server and no
    /// duplicates, and have a checksum, so that it is known that the server does not have them; and those
    /// whose files were edited since their backup (MED-22); that are not in the trash, and are in an album of the
    /// device that is selected and in none that is excluded.
    ///
    /// - Parameters:
    ///   - count: the maximum number of assets.
    ///   - hashes: the relation of the hashes of `DeviceAsset` to the checksums of assets.
    ///   - albums: returns the ids of the device's albums that contain an asset, by the device's id of
    ///     the asset. The store does not record them.
    /// - Complexity: O(assets), and one call for each asset to upload.
    public func backupCandidates(
        _ count: Int = .max, hashes: DeviceHashes = .undeclared,
        albums: (_ localId: String) throws -> [String]
    ) rethrows -> [Asset] {
        let media = store.view(DeviceMediaView.self)
        let assets = store.view(AssetsView.self)
        var candidates: [Asset] = []
        for asset in assets.all {
            guard candidates.count < count else { break }
            guard let localId = asset.localId, !asset.isTrashed,
                let record = assets.entry(asset.id),
                asset.remoteId == nil
                    ? asset.checksum != nil && !media.isDuplicate(localId)
                    : media.mustUploadEdit(of: record, hashes, assets)
            else { continue }
            let selections = try albums(localId).map { media.backupAlbum($0)?.selection ?? .none }
            guard selections.contains(.include), !selections.contains(.exclude) else { continue }
            candidates.append(asset)
        }
        return candidates
    }

    /// Records that a backup of albums of the device was completed: sets `lastBackup` of the stored ones
    /// and deletes `backupFailedSince`.
    public func recordBackup(of albumIds: [String]) async throws {
        try await store.write { transaction in
            let view = transaction.view(DeviceMediaView.self)
            for id in albumIds {
                guard var album = view.backupAlbum(id) else { continue }
                album.lastBackup = ZonedTime(transaction.now)
                try transaction.append(
                    BackupAlbumStored(album), replacing: view.lwwTimestamp(ofBackupAlbum: id))
            }
            try transaction.delete(.backupFailedSince)
        }
    }

    /// Records the time of the first failed backup (`backupFailedSince`), unless one is recorded that is not ahead of
    /// the clock.
    public func recordBackupFailure() async throws {
        try await store.write { transaction in
            let since = transaction.view(SettingsView.self)[.backupFailedSince]
            guard since.map({ $0 > transaction.now }) ?? true else { return }
            try transaction.put(.backupFailedSince, transaction.now)
        }
    }

    // MARK: Duplicates

    /// Records that files of the device are uploaded already. Stored duplicates are not recorded again,
    /// unless their files have changed since.
    ///
    /// - Returns: the ids that could not be stored.
    @discardableResult
    public func addDuplicates(_ deviceAssetIds: [String]) async throws -> [ListFault] {
        try await recordList(deviceAssetIds, "duplicates", id: \.self) {
            DuplicateStored(deviceAssetId: $0)
        } after: {
            $0.lwwTimestamp(ofDuplicate: $1)
        } where: {
            !$0.isDuplicate($1) || $0.isChangedSinceDuplicate($1)
        }
    }

    /// Records that files of the device are not uploaded.
    public func deleteDuplicates(_ deviceAssetIds: [String]) async throws {
        try await record(deviceAssetIds.map { DuplicateRemoved(deviceAssetId: $0) }) {
            view, event in
            view.lwwTimestamp(ofDuplicate: event.deviceAssetId)
        } where: { view, event in
            view.isDuplicate(event.deviceAssetId)
        }
    }

    /// Whether a file of the device is uploaded already. O(1).
    public func isDuplicate(_ deviceAssetId: String) -> Bool {
        store.view(DeviceMediaView.self).isDuplicate(deviceAssetId)
    }

    /// The files of the device that are uploaded already, sorted. O(n log n).
    public var duplicates: ViewQuery<[String]> {
        store.query(DeviceMediaView.self) { $0.duplicateIDs }
    }

    // MARK: ETags

    /// Stores the state of a user's assets at a synchronisation.
    public func put(_ etag: AssetETag) async throws {
        try await record([ETagStored(etag)]) { view, event in
            view.lwwTimestamp(ofETag: event.etag.id)
        }
    }

    /// Deletes users' ETags, so that the next synchronisation is a full one.
    public func deleteETags(of userIds: [String]) async throws {
        try await record(userIds.map { ETagRemoved(userId: $0) }) { view, event in
            view.lwwTimestamp(ofETag: event.userId)
        } where: { view, event in
            view.etag(of: event.userId) != nil
        }
    }

    /// A user's ETag; nil before the first synchronisation. O(1).
    public func etag(of userId: String) -> ViewQuery<AssetETag?> {
        store.query(DeviceMediaView.self) { $0.etag(of: userId) }
    }

    // MARK: The device's own assets

    /// Stores the records of files of the device, or replaces them.
    ///
    /// - Returns: the records that could not be stored.
    @discardableResult
    public func put(_ assets: [DeviceAsset]) async throws -> [ListFault] {
        try await recordList(assets, "files", id: \.id) {
            DeviceAssetStored($0)
        } after: {
            $0.lwwTimestamp(ofDeviceAsset: $1.id, $1.platform)
        }
    }

    /// Deletes the records of files of the device.
    public func deleteDeviceAssets(_ ids: [String], on platform: DevicePlatform) async throws {
        let removed = ids.map { DeviceAssetRemoved(platform: platform, assetId: $0) }
        try await record(removed) { view, event in
            view.lwwTimestamp(ofDeviceAsset: event.assetId, platform)
        } where: { view, event in
            view.deviceAsset(event.assetId, on: platform) != nil
        }
    }

    /// The records of files of the device; ids without a record are left out. O(ids).
    public func deviceAssets(_ ids: [String], on platform: DevicePlatform) -> [DeviceAsset] {
        let view = store.view(DeviceMediaView.self)
        return ids.compactMap { view.deviceAsset($0, on: platform) }
    }

    /// The records of all files of the device, by id. O(n log n).
    public func deviceAssets(on platform: DevicePlatform) -> ViewQuery<[DeviceAsset]> {
        store.query(DeviceMediaView.self) { $0.deviceAssets(on: platform) }
    }

    // MARK: Recording

    /// Records the elements of a list that can be stored. Each replaces the winner of its key.
    ///
    /// - Returns: the other elements.
    private func recordList<Element: Sendable, Payload: EventPayload>(
        _ list: [Element], _ name: String, id: KeyPath<Element, String>,
        _ event: @escaping @Sendable (Element) -> Payload,
        after lwwTimestamp: @escaping @Sendable (DeviceMediaView, Element) -> LWWTimestamp?,
        where isChange: @escaping @Sendable (DeviceMediaView, Element) -> Bool = { _, _ in true }
    ) async throws -> [ListFault] {
        let storable = try StorableElements(
            of: list, name, id: id, path: "data", repeats: true, event: event)
        try await storable.record(in: store) { element, transaction in
            let view = transaction.view(DeviceMediaView.self)
            guard isChange(view, element) else { return }
            try transaction.append(event(element), replacing: lwwTimestamp(view, element))
        }
        return storable.leftOut
    }

    /// Records events in one commit. Each replaces the winner of its key.
    private func record<Payload: EventPayload>(
        _ events: [Payload],
        after lwwTimestamp: @escaping @Sendable (DeviceMediaView, Payload) -> LWWTimestamp?,
        where isChange: @escaping @Sendable (DeviceMediaView, Payload) -> Bool = { _, _ in true }
    ) async throws {
        try await store.write { transaction in
            let view = transaction.view(DeviceMediaView.self)
            for event in events where isChange(view, event) {
                try transaction.append(event, replacing: lwwTimestamp(view, event))
            }
        }
    }
}
