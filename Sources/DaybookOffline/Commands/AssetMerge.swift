// Merges the assets of a server's answer with the stored ones, so that no two assets have one key
// afterwards. Spec/model/media.md, MED-20.

import Daybook
import Foundation

/// An asset of a server's answer, or of a batch, that was not stored.
public struct AssetFault: Hashable, Sendable, CustomStringConvertible {
    /// The id in the answer or the batch.
    public let id: String
    /// The server's id.
    public let remoteId: String?
    /// The reason.
    public let reason: String

    /// The ids and the reason in one line.
    public var description: String {
        "the asset \(id)\(remoteId.map { " (remote id \($0))" } ?? ""): \(reason)"
    }
}

/// The assets to store for a server's answer.
///
/// Each asset of the answer is matched with at most one stored asset, and each stored asset with at most one
/// of the answer. Then the assets are admitted, one after the other, unless an asset that remains or an
/// admitted one has one of their keys.
struct AssetMerge {
    private struct Item {
        /// The asset of the answer, with the ids of the stored one.
        var stored: AssetStored
        let given: Asset
        /// The stored asset that it replaces.
        var record: AssetRecord?
        /// Another stored asset, of this device alone, that it becomes one with.
        var absorbed: AssetRecord?
        var isLeftOut = false
    }

    private let view: AssetsView
    /// The stored assets that the server has no longer.
    private let leaving: Set<EntityID>
    private var items: [Item] = []
    /// The item of each stored asset that is matched.
    private var matches: [EntityID: Int] = [:]
    /// The admitted item that has a key.
    private var holders: [UniqueAssetKey: Int] = [:]
    /// The assets of the answer that cannot be stored.
    private(set) var leftOut: [AssetFault] = []
    /// Whether an asset is left out for its keys. Another asset's change may make it storable.
    private(set) var hasConflicts = false

    /// The assets to store, in the order of the answer.
    var assets: [AssetStored] { items.filter { !$0.isLeftOut }.map(\.stored) }

    /// The local ids of the stored assets that have no server's id, and get one.
    var regained: [String] {
        items.flatMap { item -> [String] in
            guard !item.isLeftOut, item.given.remoteId != nil else { return [] }
            return [item.record, item.absorbed].compactMap { $0?.asset }
                .filter { $0.remoteId == nil }.compactMap(\.localId)
        }
    }

    /// The stored assets of this device alone that are one with another asset of the store, with the ids of those.
    var absorbed: [(record: AssetRecord, into: String)] {
        items.compactMap { item in
            guard !item.isLeftOut, let record = item.absorbed else { return nil }
            return (record, item.stored.asset.id)
        }
    }

    /// The stored assets with a copy on the device whose change at the server is not stored: what is stored of them
    /// does not show any more what the server has. O(assets of the answer).
    var outdated: [Asset] {
        items.flatMap { item -> [Asset] in
            guard let remoteId = item.given.remoteId else { return [] }
            return view.all(remoteId: remoteId).filter { record in
                item.isLeftOut
                    || ![item.record, item.absorbed].contains { $0?.id == record.id }
            }.compactMap(\.asset).filter { known in
                // A checksum of this device says nothing of the server, and may come again.
                let hasServersChecksum = known.checksum != nil && !known.isChecksumOfDevice
                guard known.localId != nil, !known.isChangedOnServer || hasServersChecksum else {
                    return false
                }
                return item.given.checksum.map { $0 != known.checksum }
                    ?? (item.given.fileModifiedAt.moment != known.fileModifiedAt.moment)
            }
        }
    }

    /// Whether the server still has a stored asset, as far as the answer says.
    func names(_ id: String) -> Bool {
        guard let match = matches[EntityID(id)] else { return false }
        let item = items[match]
        guard item.absorbed.map({ EntityID($0.id) }) != EntityID(id) else { return !item.isLeftOut }
        return !item.isLeftOut || item.record?.asset?.remoteId == item.given.remoteId
    }

    /// Merges an answer. O(assets of the answer).
    ///
    /// - Throws: what the encoding of an asset throws, except `EventError`.
    init(_ answer: [AssetStored], leaving: Set<EntityID>, into view: AssetsView) throws {
        self.view = view
        self.leaving = leaving
        addItems(answer)
        match { $0.remoteId.map(view.all(remoteId:)) ?? [] }
        match { asset in
            // An id that the row of another of the server's assets has got says nothing.
            (view.entry(asset.id).map { [$0] } ?? [])
                .filter { asset.remoteId == nil || Self.isLocal($0, leaving) }
        }
        match { asset in
            asset.localId.map(view.all(localId:))?
                .filter { Self.isFree($0, for: asset, leaving) } ?? []
        }
        match { asset in
            asset.checksum.map { view.all(ownerId: asset.ownerId, checksum: $0) }?
                .filter { Self.isFree($0, for: asset, leaving) } ?? []
        }
        absorbCopies()
        setIDs()
        keepChecksums()
        noteChanges()
        try admitAll()
    }

    /// Takes assets with their ids as they are, each once. O(assets).
    ///
    /// - Throws: as `init(_:leaving:into:)`.
    init(storing assets: [AssetStored], into view: AssetsView) throws {
        (self.view, leaving) = (view, [])
        for (index, stored) in assets.enumerated() {
            let record = view.entry(stored.asset.id).flatMap { $0.isStored ? $0 : nil }
            items.append(Item(stored: stored, given: stored.asset, record: record))
            if record != nil { matches[EntityID(stored.asset.id)] = index }
        }
        try admitAll()
    }

    /// The last asset of each server's id.
    private mutating func addItems(_ answer: [AssetStored]) {
        var last: [EntityID: Int] = [:]
        for (index, stored) in answer.enumerated() {
            last[EntityID(stored.asset.remoteId ?? stored.asset.id)] = index
        }
        items = last.values.sorted().map { Item(stored: answer[$0], given: answer[$0].asset) }
    }

    /// Gives each asset that is not matched its id. If another asset has it, the server's id or a new one.
    private mutating func setIDs() {
        var used = Set(matches.keys)
        for index in items.indices where items[index].record == nil {
            let given = items[index].given
            let id = [given.id, given.remoteId].compactMap(\.self).first {
                !used.contains(EntityID($0)) && !(view.entry($0)?.isStored ?? false)
            }
            items[index].stored.asset.id = id ?? UUID().text
            used.insert(EntityID(items[index].stored.asset.id))
        }
    }

    /// Gives each matched asset without a checksum the stored one, which the app may have computed, unless the
    /// times of the last change say that the file is another one.
    private mutating func keepChecksums() {
        var taken = Set(items.compactMap { UniqueAssetKey.checksum(of: $0.given) })
        for index in items.indices where items[index].given.checksum == nil {
            guard let known = items[index].record?.asset,
                known.fileModifiedAt.moment == items[index].given.fileModifiedAt.moment
            else { continue }
            var asset = items[index].stored.asset
            asset.checksum = known.checksum
            asset.isChecksumOfDevice = known.remoteId == nil || known.isChecksumOfDevice
            // An asset of the answer that names a checksum has it.
            guard let key = UniqueAssetKey.checksum(of: asset), taken.insert(key).inserted
            else { continue }
            items[index].stored.asset = asset
        }
    }

    /// Notes the assets whose content the server has changed since the copy on the device was matched with it.
    private mutating func noteChanges() {
        for index in items.indices {
            let records = [items[index].absorbed, items[index].record].compactMap { $0?.asset }
            let asset = items[index].stored.asset
            guard let known = records.first, known.localId != nil, asset.remoteId != nil else {
                continue
            }
            let hasOneTime = asset.fileModifiedAt.moment == known.fileModifiedAt.moment
            // Without a checksum of the server `keepChecksums` has kept the stored one, unless the time differs. A
            // copy that is matched for the first time may have another time than the server's file.
            let isSame =
                if let old = known.checksum, let new = asset.checksum {
                    old == new
                } else {
                    hasOneTime || known.checksum == nil && known.remoteId == nil
                }
            items[index].stored.asset.isChangedOnServer =
                !isSame || records.contains(where: \.isChangedOnServer)
        }
    }

    // MARK: Matching

    /// Finds the stored assets of this device alone that are one with a matched asset: the server gives its checksum
    /// later than the asset, or the asset's local id is stored twice.
    private mutating func absorbCopies() {
        for index in items.indices where items[index].record != nil {
            let asset = items[index].stored.asset
            guard asset.remoteId != nil else { continue }
            let sharing =
                (asset.localId.map(view.all(localId:)) ?? [])
                + (asset.checksum.map { view.all(ownerId: asset.ownerId, checksum: $0) } ?? [])
            let found = sharing.first { record in
                guard record.isStored, matches[EntityID(record.id)] == nil,
                    let localId = record.localId, Self.isLocal(record, leaving)
                else { return false }
                return asset.localId.map { EntityID($0) == EntityID(localId) } ?? true
            }
            guard let found else { continue }
            matches[EntityID(found.id)] = index
            items[index].absorbed = found
            items[index].stored.asset.localId = found.localId
            if found.isFavorite { items[index].stored.asset.isFavorite = true }
        }
    }

    /// Matches assets that are not matched yet with the first of some stored assets that is not either.
    private mutating func match(_ records: (Asset) -> [AssetRecord]) {
        for index in items.indices where items[index].record == nil {
            let found = records(items[index].given).first {
                $0.isStored && matches[EntityID($0.id)] == nil
            }
            guard let found else { continue }
            matches[EntityID(found.id)] = index
            items[index].record = found
            items[index].stored.asset.id = found.id
            if items[index].given.localId == nil {
                items[index].stored.asset.localId = found.localId
            }
            // A mark of this device, of which the server does not know yet.
            if found.isFavorite, found.asset?.remoteId == nil {
                items[index].stored.asset.isFavorite = true
            }
        }
    }

    /// Whether a stored asset may be the device's copy of an asset with another server's id.
    private static func isFree(
        _ record: AssetRecord, for asset: Asset, _ leaving: Set<EntityID>
    ) -> Bool {
        guard let known = record.asset, isLocal(record, leaving) else { return false }
        return asset.localId == nil || known.localId == nil
            || asset.localId.map(EntityID.init) == known.localId.map(EntityID.init)
    }

    /// Whether the server does not have a stored asset, or no longer.
    private static func isLocal(_ record: AssetRecord, _ leaving: Set<EntityID>) -> Bool {
        record.asset?.remoteId == nil || leaving.contains(EntityID(record.id))
    }

    // MARK: Admitting

    /// Admits the assets that the store knows first: of two with one key they are stored.
    private mutating func admitAll() throws {
        let order =
            items.indices.filter { items[$0].record != nil }
            + items.indices.filter { items[$0].record == nil }
        for index in order { try admit(index) }
    }

    private mutating func admit(_ index: Int) throws {
        let stored = items[index].stored
        do { _ = try EventDraft.checked(stored) } catch let error as EventError {
            return leaveOut(index, error.detail, isConflict: false)
        }
        let keys = UniqueAssetKey.all(of: stored.asset)
        for key in keys {
            guard let other = holder(of: key) else { continue }
            if case .checksum = key, items[index].given.checksum == nil {
                // The checksum is not the server's: it must not keep the asset out.
                items[index].stored.asset.checksum = nil
                items[index].stored.asset.isChecksumOfDevice = false
                return try admit(index)
            }
            return leaveOut(
                index, "it cannot have \(key): the asset \(other) has it", isConflict: true)
        }
        for key in keys { holders[key] = index }
    }

    /// The id of the asset that has a key after the assets admitted so far are stored.
    private func holder(of key: UniqueAssetKey) -> String? {
        if let index = holders[key] { return items[index].stored.asset.id }
        return key.records(view).first { remains($0, with: key) }?.id
    }

    /// Whether a stored asset remains with one of its keys.
    private func remains(_ record: AssetRecord, with key: UniqueAssetKey) -> Bool {
        if let match = matches[EntityID(record.id)] { return items[match].isLeftOut }
        guard leaving.contains(EntityID(record.id)) else { return true }
        // It is deleted, or stays as the device's without the server's id.
        if case .remoteId = key { return false }
        return record.localId != nil
    }

    /// Leaves an asset out. The stored asset that it would have replaced remains then, so admitted assets
    /// with one of its keys are left out as well.
    private mutating func leaveOut(_ index: Int, _ reason: String, isConflict: Bool) {
        hasConflicts = hasConflicts || isConflict
        var waiting = [(index, reason)]
        while let (index, reason) = waiting.popLast() {
            guard !items[index].isLeftOut else { continue }
            items[index].isLeftOut = true
            let given = items[index].given
            leftOut.append(AssetFault(id: given.id, remoteId: given.remoteId, reason: reason))
            for key in UniqueAssetKey.all(of: items[index].stored.asset) where holders[key] == index
            {
                holders[key] = nil
            }
            for known in [items[index].record, items[index].absorbed].compactMap({ $0?.asset }) {
                for key in UniqueAssetKey.all(of: known) {
                    guard let other = holders[key] else { continue }
                    hasConflicts = true
                    waiting.append(
                        (other, "it cannot have \(key): the asset \(known.id) has it"))
                }
            }
        }
    }
}
