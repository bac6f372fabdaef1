// Frees space on the device: deletes the local copies of assets that the server has. The assets stay.
// Spec/model/media.md, MED-14 to MED-17.

import Daybook
import Foundation

/// The local copies that stay when space is freed.
public struct CleanUpSettings: Hashable, Sendable {
    /// Whether favourites stay. The setting `cleanupKeepFavorites`.
    public var keepFavorites: Bool
    /// The kinds of media that stay. The setting `cleanupKeepMediaType`.
    public var keepMediaType: KeptMediaType
    /// The albums whose assets stay, by their ids in this store; an album that was removed keeps none. An album
    /// that the store has never had, such as one of the device, or that has had no asset yet, whose links may arrive
    /// later, keeps all assets, because its own are not known.
    /// The setting `cleanupKeepAlbumIds`.
    public var keepAlbumIds: [String]
    /// The age in days up to which assets stay. Below 1 no age is chosen, and all assets stay. The setting
    /// `cleanupCutoffDaysAgo`.
    public var cutoffDaysAgo: Int
    /// The relation of the hashes of the device's files to the checksums of assets.
    public var deviceHashes: DeviceHashes
    /// Whether copies stay of which nothing shows that the server has them: without a record of the file
    /// (`DeviceAsset`), without a checksum, or with a hash that may be of another kind. If false, the app decides:
    /// `freeUpSpace` asks for these copies as well, and the closure leaves those that must stay. A copy that was
    /// edited since its backup, or whose asset was changed on the server since (`Asset.isChangedOnServer`), stays in
    /// any case.
    public var keepUnverified: Bool
    /// The settings whose stored values have another type or an unknown choice. If there is any, all
    /// assets stay.
    public private(set) var unreadable: [String] = []

    /// Creates settings. By default no age is chosen, so all assets stay.
    public init(
        keepFavorites: Bool = true, keepMediaType: KeptMediaType = .none,
        keepAlbumIds: [String] = [], cutoffDaysAgo: Int = 0,
        deviceHashes: DeviceHashes = .undeclared, keepUnverified: Bool = true
    ) {
        self.keepFavorites = keepFavorites
        self.keepMediaType = keepMediaType
        self.keepAlbumIds = keepAlbumIds
        self.cutoffDaysAgo = cutoffDaysAgo
        self.deviceHashes = deviceHashes
        self.keepUnverified = keepUnverified
    }

    /// Reads the user's settings. `deviceHashes` and `keepUnverified` are the app's.
    public init(
        _ settings: SettingsView, deviceHashes: DeviceHashes = .undeclared,
        keepUnverified: Bool = true
    ) {
        let kind = KeptMediaType(rawValue: settings[.cleanupKeepMediaType])
        self.init(
            keepFavorites: settings[.cleanupKeepFavorites], keepMediaType: kind ?? .both,
            keepAlbumIds: settings[.cleanupKeepAlbumIds],
            cutoffDaysAgo: settings[.cleanupCutoffDaysAgo], deviceHashes: deviceHashes,
            keepUnverified: keepUnverified)
        func check<Value>(_ setting: UserSetting<Value>) {
            if settings.isUnreadable(setting.key) { unreadable.append(setting.key.name) }
        }
        check(.cleanupKeepFavorites)
        check(.cleanupKeepMediaType)
        if kind == nil { unreadable.append(UserSetting<String>.cleanupKeepMediaType.key.name) }
        check(.cleanupKeepAlbumIds)
        check(.cleanupCutoffDaysAgo)
    }

    /// The albums to keep whose assets are not known.
    fileprivate func unknownAlbums(_ albums: AlbumsView) -> [String] {
        keepAlbumIds.filter { !albums.isContentKnown($0) }
    }

    /// - Throws: `EventError` (`refused`) if a stored value is unreadable, or an album is unknown.
    fileprivate func requireReadable(_ albums: AlbumsView) throws(EventError) {
        let unknown = unknownAlbums(albums)
        guard unknown.isEmpty else {
            throw EventError(
                .refused,
                "no local copy is deleted: the assets of the kept album "
                    + "\(unknown.joined(separator: ", ")) are not known; store the album with its assets, or remove it "
                    + "from \(UserSetting<[String]>.cleanupKeepAlbumIds.key.name)")
        }
        guard unreadable.isEmpty else {
            throw EventError(
                .refused,
                "no local copy is deleted: the value of \(unreadable.joined(separator: ", ")) has "
                    + "another type or is no choice of this release; put it again or delete it")
        }
    }
}

/// The kinds of media that stay on the device when space is freed. Assets that are neither photos nor
/// videos are kept by none of them.
public enum KeptMediaType: String, Hashable, Sendable, CaseIterable {
    /// No kind.
    case none
    /// All photos.
    case photos
    /// All videos.
    case videos
    /// All photos and all videos.
    case both

    func keeps(_ type: AssetType) -> Bool {
        switch type {
        case .image: self == .photos || self == .both
        case .video: self == .videos || self == .both
        case .audio, .other: false
        }
    }
}

extension AssetCommands {
    /// The number of local copies that the app is asked to delete in one call.
    static let cleanUpPortion = 500
    /// The bytes of events after which a commit of a clean-up ends. With one more event of the maximum
    /// size the commit stays below its limit.
    static let cleanUpBytes = 2 << 20
    /// `cleanUpBytes` for a full disk: the space that the log reserves is small.
    static let cleanUpBytesOnFullDisk = 16 << 10

    /// The assets whose local copies would be deleted, the oldest first: they are on the server and not
    /// in its trash, they are on the device, no setting keeps them, and the records of their files show that
    /// the server has them (MED-22; `CleanUpSettings.keepUnverified`). Empty without a chosen age, if a setting cannot be read
    /// (`CleanUpSettings.unreadable`), and if the store does not know an album to keep.
    ///
    /// - Parameter settings: the copies that stay; nil for the user's settings in this store.
    /// - Complexity: O(assets before the cutoff × albums to keep).
    public func cleanUpCandidates(_ settings: CleanUpSettings? = nil) async -> [Asset] {
        let settings = settings ?? CleanUpSettings(store.view(SettingsView.self))
        let now = await store.timestamp
        return candidates(settings, at: now).compactMap(\.asset)
    }

    private func candidates(_ settings: CleanUpSettings, at now: Timestamp) -> [AssetRecord] {
        let library = CleanUpSettings.Library(store)
        guard settings.unreadable.isEmpty, settings.unknownAlbums(library.albums).isEmpty else {
            return []
        }
        let cutoff = settings.cutoff(at: now)
        return library.assets
            .records(from: Timestamp.range.lowerBound, upTo: cutoff)
            .filter { settings.allowsDeletion(of: $0, before: cutoff, in: library) }
    }

    /// The records that are still candidates. Other commands may run while the app deletes a portion.
    private func remainingCandidates(
        _ records: some Sequence<AssetRecord>, _ settings: CleanUpSettings, at now: Timestamp
    ) -> [AssetRecord] {
        let library = CleanUpSettings.Library(store)
        let cutoff = settings.cutoff(at: now)
        return records.compactMap { library.assets.entry($0.id) }
            .filter { settings.allowsDeletion(of: $0, before: cutoff, in: library) }
    }

    /// Deletes the local copies of assets that the server has and no setting keeps. The assets stay,
    /// without a local id.
    ///
    /// The app deletes in portions. The result of a portion is recorded before the next call, so after a
    /// kill the call can be repeated. A copy that was deleted before a kill and is not recorded is in a
    /// portion again.
    ///
    /// - Parameters:
    ///   - settings: the copies that stay; nil for the user's settings in this store.
    ///   - delete: deletes local copies by the device's ids and returns the ids of those that no longer
    ///     exist, including those that did not exist before. Assets whose ids it does not return are
    ///     not changed.
    /// - Returns: the ids of the assets whose local copies are gone. Durable on return.
    /// - Throws: what `delete` throws, with all earlier portions recorded; `EventError` (`refused`) if a
    ///   setting cannot be read or the store does not know an album to keep, which it names, and if other
    ///   commands keep changing the same assets;
    ///   `LogError` as `EventStore.append` and
    ///   `properties(of:)`.
    /// - Complexity: as `cleanUpCandidates(_:)`, and O(bytes of the changed assets); one frame to read
    ///   for each asset with properties.
    @discardableResult
    nonisolated(nonsending) public func freeUpSpace(
        _ settings: CleanUpSettings? = nil,
        delete: (_ localIds: [String]) async throws -> [String]
    ) async throws -> [String] {
        let settings = settings ?? CleanUpSettings(store.view(SettingsView.self))
        try settings.requireReadable(store.view(AlbumsView.self))
        let now = await store.timestamp
        var remaining = candidates(settings, at: now)[...]
        var freed: [String] = []
        while !remaining.isEmpty {
            let portion = remainingCandidates(
                remaining.prefix(Self.cleanUpPortion), settings, at: now)
            remaining = remaining.dropFirst(Self.cleanUpPortion)
            guard !portion.isEmpty else { continue }
            let gone = Set(try await delete(portion.compactMap(\.localId)).map(EntityID.init))
            freed += try await removeLocalIDs(
                portion.filter { $0.localId.map(EntityID.init).map(gone.contains) ?? false })
        }
        return freed
    }

    /// Removes the local ids from assets, except from those that have another local id by now.
    private func removeLocalIDs(_ records: [AssetRecord]) async throws -> [String] {
        var waiting = records.compactMap { record in
            record.localId.map { (id: record.id, localId: EntityID($0)) }
        }[...]
        var freed: [String] = []
        var maxBytes = Self.cleanUpBytes
        // One attempt for each asset, and 100 for assets that another task changes at the same time.
        var attempts = waiting.count + 100
        while !waiting.isEmpty {
            guard attempts > 0 else {
                throw EventError(
                    .refused,
                    "other commands keep changing the assets whose local copies were deleted; "
                        + "try again")
            }
            var changes: [(change: LocalIDRemoval, bytes: Int)] = []
            var bytes = 0
            for (id, localId) in waiting where bytes < maxBytes {
                let change = try await LocalIDRemoval(id, localId, self)
                changes.append((change, change.bytes))
                bytes += change.bytes
            }
            attempts -= 1
            let list = changes.map(\.change)
            let recorded: [LocalIDRemoval.Outcome]
            do {
                recorded = try await store.write(drawingOnReserve: true) { transaction in
                    try list.map { try $0.record(in: &transaction) }
                }
            } catch let error as LogError
                where error.code == .diskFull && maxBytes > Self.cleanUpBytesOnFullDisk
            {
                maxBytes = Self.cleanUpBytesOnFullDisk
                continue
            }
            var again: [(id: String, localId: EntityID)] = []
            for (change, outcome) in zip(list, recorded) {
                switch outcome {
                case .recorded: freed.append(change.id)
                case .changed: again.append((change.id, change.localId))
                case .other: break
                }
            }
            waiting = (again + waiting.dropFirst(list.count))[...]
        }
        return freed
    }
}

/// The replacement of an asset by one without its local id.
private struct LocalIDRemoval: Sendable {
    enum Outcome: Sendable {
        /// The replacement was recorded.
        case recorded
        /// The asset was stored again since it was read.
        case changed
        /// The asset no longer exists, or has another local id.
        case other
    }

    let id: String
    let localId: EntityID
    /// The record that was read; nil if the asset no longer exists.
    private let old: AssetRecord?
    private let new: AssetStored?
    /// The approximate bytes of the event in the log.
    let bytes: Int

    init(_ id: String, _ localId: EntityID, _ commands: AssetCommands) async throws {
        self.id = id
        self.localId = localId
        let stored = try await commands.stored(id)
        old = stored?.record
        new = stored?.record.asset.map { asset in
            var asset = asset
            asset.localId = nil
            asset.isChangedOnServer = false
            return AssetStored(asset, properties: stored?.properties)
        }
        bytes = (try new?.json().count ?? 0) + 512
    }

    func record(
        in transaction: inout EventStore.Transaction
    ) throws -> Outcome {
        guard let entry = transaction.view(AssetsView.self).entry(id),
            let local = entry.localId, EntityID(local) == localId
        else { return .other }
        guard entry == old, let new else { return .changed }
        try transaction.append(new, replacing: entry.lwwTimestamp)
        return .recorded
    }
}

extension CleanUpSettings {
    /// What decides about local copies.
    fileprivate struct Library {
        let assets: AssetsView
        let albums: AlbumsView
        let media: DeviceMediaView

        init(_ store: EventStore) {
            assets = store.view(AssetsView.self)
            albums = store.view(AlbumsView.self)
            media = store.view(DeviceMediaView.self)
        }
    }

    /// Whether the local copy of an asset may be deleted. It must stay if another asset with the same copy
    /// must stay.
    ///
    /// - Parameter cutoff: `cutoff(at:)`.
    fileprivate func allowsDeletion(
        of record: AssetRecord, before cutoff: Int64, in library: Library
    ) -> Bool {
        func isDeletable(_ record: AssetRecord) -> Bool {
            record.isBackedUpCopy && (record.fileCreatedAt?.milliseconds ?? .max) < cutoff
                && !(keepFavorites && record.isFavorite)
                && !keepMediaType.keeps(record.type)
                && !keepAlbumIds.contains { library.albums.isLinked($0, asset: record.id) }
        }
        guard let localId = record.localId, isDeletable(record) else { return false }
        let sharing = library.assets.all(localId: localId)
        guard sharing.allSatisfy(isDeletable) else { return false }
        return sharing.allSatisfy {
            switch library.media.copy(of: $0, deviceHashes) {
            case .same: true
            case .unverified: !keepUnverified
            case .edited, .changedOnServer: false
            }
        }
    }

    /// The time, in milliseconds, before which a candidate must have been taken.
    fileprivate func cutoff(at now: Timestamp) -> Int64 {
        let (days, isOver) = Int64(cutoffDaysAgo).multipliedReportingOverflow(by: 86_400_000)
        let (cutoff, isUnder) = now.milliseconds.subtractingReportingOverflow(days)
        return cutoffDaysAgo < 1 || isOver || isUnder ? Timestamp.range.lowerBound : cutoff
    }
}
