// Frees room on the device: local copies of what the server has go, the assets stay. Spec/model/media.md,
// MED-14 to MED-17.

import Daybook
import Foundation

/// Which local copies stay when room is freed.
public struct CleanUpSettings: Hashable, Sendable {
    /// Whether favourites stay. The setting `cleanupKeepFavorites`.
    public var keepFavorites: Bool
    /// What stays whatever else is said. The setting `cleanupKeepMediaType`.
    public var keepMediaType: KeptMediaType
    /// The albums whose assets stay. The setting `cleanupKeepAlbumIds`.
    public var keepAlbumIds: [String]
    /// Only what was taken more than so many days ago goes. The setting `cleanupCutoffDaysAgo`.
    public var cutoffDaysAgo: Int

    /// Creates settings; without anything said, favourites stay and all else goes.
    public init(
        keepFavorites: Bool = true, keepMediaType: KeptMediaType = .none,
        keepAlbumIds: [String] = [], cutoffDaysAgo: Int = 0
    ) {
        self.keepFavorites = keepFavorites
        self.keepMediaType = keepMediaType
        self.keepAlbumIds = keepAlbumIds
        self.cutoffDaysAgo = cutoffDaysAgo
    }

    /// What the user has set. A kind of media that is not known keeps all media.
    public init(_ settings: SettingsView) {
        self.init(
            keepFavorites: settings[.cleanupKeepFavorites],
            keepMediaType: KeptMediaType(rawValue: settings[.cleanupKeepMediaType]) ?? .both,
            keepAlbumIds: settings[.cleanupKeepAlbumIds],
            cutoffDaysAgo: settings[.cleanupCutoffDaysAgo])
    }
}

/// What stays on the device when room is freed. Assets that are neither photos nor videos are kept by
/// none of these.
public enum KeptMediaType: String, Hashable, Sendable, CaseIterable {
    /// Nothing for its type.
    case none
    /// All photos: only videos and the rest go.
    case photos
    /// All videos: only photos and the rest go.
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
    /// Local copies that the app is asked to delete at once.
    static let cleanUpPortion = 500
    /// Bytes of events that one commit of a clean-up takes: with the largest event behind them they
    /// stay below the limit of a commit.
    static let cleanUpBytes = 2 << 20
    /// The same when the disk is full.
    static let cleanUpBytesOnFullDisk = 16 << 10

    /// The assets whose local copies would go: the server has them, not in its trash, the device
    /// has them, and no setting keeps them. The oldest first.
    ///
    /// - Parameter settings: what stays; nil for what the user has set in this store.
    /// - Complexity: O(assets before the cutoff × albums to keep).
    public func cleanUpCandidates(_ settings: CleanUpSettings? = nil) async -> [Asset] {
        let settings = settings ?? CleanUpSettings(store.view(SettingsView.self))
        let now = await store.timestamp
        return candidates(settings, at: now).compactMap(\.asset)
    }

    private func candidates(_ settings: CleanUpSettings, at now: Timestamp) -> [AssetRecord] {
        let library = (store.view(AssetsView.self), store.view(AlbumsView.self))
        return library.0
            .records(from: Timestamp.range.lowerBound, upTo: settings.cutoff(at: now))
            .filter { settings.letsGo($0, in: library) }
    }

    /// Those of some candidates that still are: the app takes its time between two portions.
    private func present(
        _ records: some Sequence<AssetRecord>, _ settings: CleanUpSettings, at now: Timestamp
    ) -> [AssetRecord] {
        let library = (store.view(AssetsView.self), store.view(AlbumsView.self))
        let cutoff = settings.cutoff(at: now)
        return records.compactMap { library.0.entry($0.id) }
            .filter { record in
                (record.fileCreatedAt?.milliseconds ?? .max) < cutoff
                    && settings.letsGo(record, in: library)
            }
    }

    /// Deletes the local copies of assets that the server has and no setting keeps. The assets stay,
    /// without a local id.
    ///
    /// The app is asked to delete in portions, and what it reports as deleted is on record before
    /// it is asked for the next: killed at any moment, calling it again goes on. A copy that was
    /// deleted before a kill and is not on record is asked for again.
    ///
    /// - Parameters:
    ///   - settings: what stays; nil for what the user has set in this store.
    ///   - delete: deletes local copies by the device's ids and returns the ids of those that are
    ///     gone, those that were not there included. What it does not return stays on record as it
    ///     is.
    /// - Returns: the ids of the assets whose local copies are gone. Durable on return.
    /// - Throws: what `delete` throws, with all earlier portions on record; `EventError` (`refused`)
    ///   where others keep changing the same assets; `LogError` as `EventStore.append` and
    ///   `properties(of:)`.
    /// - Complexity: as `cleanUpCandidates(_:)`, and O(bytes of what goes); one frame to read for
    ///   each asset with properties.
    @discardableResult
    public func freeUpSpace(
        _ settings: CleanUpSettings? = nil,
        delete: (_ localIds: [String]) async throws -> [String]
    ) async throws -> [String] {
        let settings = settings ?? CleanUpSettings(store.view(SettingsView.self))
        let now = await store.timestamp
        var rest = candidates(settings, at: now)[...]
        var freed: [String] = []
        while !rest.isEmpty {
            let portion = present(rest.prefix(Self.cleanUpPortion), settings, at: now)
            rest = rest.dropFirst(Self.cleanUpPortion)
            guard !portion.isEmpty else { continue }
            let gone = Set(try await delete(portion.compactMap(\.localId)).map(EntityID.init))
            freed += try await forgetLocalCopies(
                portion.filter { $0.localId.map(EntityID.init).map(gone.contains) ?? false })
        }
        return freed
    }

    /// Takes the local ids out of assets, unless they have got others meanwhile.
    private func forgetLocalCopies(_ records: [AssetRecord]) async throws -> [String] {
        var waiting = records.compactMap { record in
            record.localId.map { (id: record.id, localId: EntityID($0)) }
        }[...]
        var freed: [String] = []
        var bytesMax = Self.cleanUpBytes
        // Each once, and a few that others change at the same moment.
        var attempts = waiting.count + 100
        while !waiting.isEmpty {
            guard attempts > 0 else {
                throw EventError(
                    .refused, "others keep changing the assets whose local copies go. Try again")
            }
            var changes: [(change: LocalCopyGone, bytes: Int)] = []
            var bytes = 0
            for (id, localId) in waiting where bytes < bytesMax {
                let change = try await LocalCopyGone(id, localId, self)
                changes.append((change, change.bytes))
                bytes += change.bytes
            }
            attempts -= 1
            let list = changes.map(\.change)
            let recorded: [LocalCopyGone.Outcome]
            do {
                recorded = try await store.write(drawingOnReserve: true) { transaction in
                    try list.map { try $0.record(in: &transaction) }
                }
            } catch let error as LogError
                where error.code == .diskFull && bytesMax > Self.cleanUpBytesOnFullDisk
            {
                // What the log keeps aside is little.
                bytesMax = Self.cleanUpBytesOnFullDisk
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

/// An asset as it is to be stored without its local copy.
private struct LocalCopyGone: Sendable {
    enum Outcome: Sendable {
        /// The asset has no local copy any more.
        case recorded
        /// It was stored again since it was looked at.
        case changed
        /// It is gone, or has another copy.
        case other
    }

    let id: String
    let localId: EntityID
    /// What was looked at; nil if the asset was gone by then.
    private let old: AssetRecord?
    private let new: AssetStored?
    /// About what it takes in the log.
    let bytes: Int

    init(_ id: String, _ localId: EntityID, _ commands: AssetCommands) async throws {
        self.id = id
        self.localId = localId
        let stored = try await commands.stored(id)
        old = stored?.record
        new = stored?.record.asset.map { asset in
            var asset = asset
            asset.localId = nil
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
        try transaction.append(new, replacing: entry.stamp)
        return .recorded
    }
}

extension CleanUpSettings {
    /// Whether the local copy of an asset may go, but for its age. It may not if another asset that
    /// must stay has the same copy.
    fileprivate func letsGo(
        _ record: AssetRecord, in library: (assets: AssetsView, albums: AlbumsView)
    ) -> Bool {
        func may(_ record: AssetRecord) -> Bool {
            record.isBackedUpCopy && !(keepFavorites && record.isFavorite)
                && !keepMediaType.keeps(record.type)
                && !keepAlbumIds.contains { library.albums.isLinked($0, asset: record.id) }
        }
        guard let localId = record.localId, may(record) else { return false }
        return library.assets.all(localId: localId).allSatisfy(may)
    }

    /// What was taken before this moment may go.
    fileprivate func cutoff(at now: Timestamp) -> Int64 {
        let (days, isOver) = Int64(cutoffDaysAgo).multipliedReportingOverflow(by: 86_400_000)
        let (cutoff, isUnder) = now.milliseconds.subtractingReportingOverflow(days)
        guard !isOver, !isUnder else {
            return cutoffDaysAgo > 0 ? Timestamp.range.lowerBound : .max
        }
        return cutoff
    }
}
