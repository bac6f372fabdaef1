// Records checksums that the app computes after it has stored the assets: a list of photos can be shown before
// their files are read. Spec/model/media.md, MED-23.

import Daybook

extension AssetCommands {
    /// Records the checksums of stored assets, in commits of about 1 MiB, and removes the duplicates that
    /// they reveal. Ids without an asset are ignored; a checksum that is stored is not recorded again.
    /// Durable on return; after a kill the same call records the rest.
    ///
    /// A backed-up asset that has a checksum keeps it: it says what the server has, and the hash of an edited file
    /// in its place would make the file's only copy deletable. The hash of the file as it is now belongs into
    /// `DeviceMediaCommands.put(_:)`. The checksum of a backed-up asset for which the server has given none is
    /// recorded as one of this device (`Asset.isChecksumOfDevice`).
    ///
    /// If the server has an asset of the same owner with the checksum, and that asset has no copy on this
    /// device, the two are one: that asset gets the local id, the albums and the mark of a favourite, and the other
    /// one is deleted.
    ///
    /// - Parameter checksums: the checksum of each asset, by the asset's id.
    /// - Returns: the assets whose checksum could not be stored, such as the second of two equal files on the
    ///   device, or a backed-up asset with another checksum. They stay as they are.
    /// - Throws: `CancellationError` between two commits; `EventError` (`refused`) if other commands keep
    ///   changing the same assets; `LogError` as `EventStore.append` and `properties(of:)`.
    /// - Complexity: O(bytes of the assets); one frame to read for each asset with properties.
    @discardableResult
    public func setChecksums(_ checksums: [String: String]) async throws -> [AssetFault] {
        var waiting = checksums.map { (id: $0, checksum: $1) }
            .sorted(byID: { EntityID($0.id) })[...]
        var faults: [AssetFault] = []
        // One attempt for each asset, and 100 for assets that another task changes at the same time.
        var attempts = waiting.count + 100
        while !waiting.isEmpty {
            try Task.checkCancellation()
            guard attempts > 0 else {
                throw EventError(
                    .refused,
                    "other commands keep changing the assets whose checksums are set; try again")
            }
            attempts -= 1
            var portion: [ChecksumChange] = []
            var bytes = 0
            for (id, checksum) in waiting where bytes < Self.cleanUpBytes && portion.count < 1_000 {
                let change = try await ChecksumChange(id, checksum, self)
                portion.append(change)
                bytes += change.bytes
            }
            let list = portion
            let results = try await store.write { transaction in
                var merged: [String] = []
                let results = try list.map { try $0.record(in: &transaction, &merged) }
                _ = try Self.delete(merged, in: &transaction)
                return results
            }
            var again: [(id: String, checksum: String)] = []
            for (item, result) in zip(waiting, results) {
                switch result {
                case .done: break
                case .changed: again.append(item)
                case .fault(let fault): faults.append(fault)
                }
            }
            waiting = (again + waiting.dropFirst(list.count))[...]
        }
        return faults
    }
}

/// The replacement of an asset by one with another checksum, or its merge with the server's asset.
private struct ChecksumChange: Sendable {
    typealias Stored = (record: AssetRecord, properties: [UInt8]?)

    enum Result: Sendable {
        case done
        /// An asset was stored again since it was read.
        case changed
        case fault(AssetFault)
    }

    private let id: String
    private let checksum: String
    /// The asset that was read; nil if there is none.
    private let old: Stored?
    /// The other asset with the checksum; nil if there is none.
    private let other: Stored?
    /// The approximate bytes of the events in the log.
    let bytes: Int

    init(_ id: String, _ checksum: String, _ commands: AssetCommands) async throws {
        (self.id, self.checksum) = (id, checksum)
        old = try await commands.stored(id)
        let view = commands.store.view(AssetsView.self)
        let holder = old?.record.asset.flatMap { Self.other(than: $0, checksum, view) }
        other = if let holder { try await commands.stored(holder.id) } else { nil }
        bytes = [old, other].compactMap(\.self).reduce(0) {
            $0 + $1.record.bytes.count + ($1.properties?.count ?? 0) + 1_024
        }
    }

    /// The other asset of the same owner with a checksum.
    private static func other(
        than asset: Asset, _ checksum: String, _ view: AssetsView
    ) -> AssetRecord? {
        view.all(ownerId: asset.ownerId, checksum: checksum)
            .first { EntityID($0.id) != EntityID(asset.id) }
    }

    /// - Parameter merged: receives the id if the asset is to be deleted.
    func record(
        in transaction: inout EventStore.Transaction, _ merged: inout [String]
    ) throws -> Result {
        let view = transaction.view(AssetsView.self)
        let entry = view.entry(id).flatMap { $0.isStored ? $0 : nil }
        guard entry == old?.record else { return .changed }
        guard let old, var asset = old.record.asset, asset.checksum != checksum else {
            return .done
        }
        if asset.remoteId != nil, let known = asset.checksum {
            return fault(
                asset,
                "it is backed up with the checksum \(known); put the hash of its file into deviceMedia"
            )
        }
        let holder = Self.other(than: asset, checksum, view)
        guard holder == other?.record else { return .changed }
        if let other, let known = other.record.asset {
            return try merge(asset, into: known, other.properties, in: &transaction, &merged)
        }
        asset.checksum = checksum
        asset.isChecksumOfDevice = asset.remoteId != nil
        let stored = AssetStored(asset, properties: old.properties)
        do { _ = try EventDraft.checked(stored) } catch let error as EventError {
            return fault(asset, error.detail)
        }
        try transaction.append(stored, replacing: old.record.lwwTimestamp)
        return .done
    }

    /// Stores the server's asset with the local id and the albums of the device's, which is to be deleted.
    private func merge(
        _ asset: Asset, into known: Asset, _ properties: [UInt8]?,
        in transaction: inout EventStore.Transaction, _ merged: inout [String]
    ) throws -> Result {
        guard asset.remoteId == nil, known.remoteId != nil, known.localId == nil else {
            let key = UniqueAssetKey.checksum(owner: EntityID(asset.ownerId), EntityID(checksum))
            return fault(asset, "it cannot have \(key): the asset \(known.id) has it")
        }
        var remaining = known
        remaining.localId = asset.localId
        // A mark of this device, of which the server does not know yet.
        remaining.isFavorite = known.isFavorite || asset.isFavorite
        try AssetCommands.copyAlbums(of: asset.id, to: known.id, in: &transaction)
        try transaction.append(
            AssetStored(remaining, properties: properties), replacing: other?.record.lwwTimestamp)
        merged.append(asset.id)
        return .done
    }

    private func fault(_ asset: Asset, _ reason: String) -> Result {
        .fault(AssetFault(id: asset.id, remoteId: asset.remoteId, reason: reason))
    }
}
