// The live queries of an app on assets. They read from memory; only `AssetCommands.properties(of:)`
// reads the log. Spec/model/media.md.

import Daybook

extension AssetCommands {
    /// The asset with an id; nil while there is none. O(1).
    public func asset(_ id: String) -> ViewQuery<Asset?> {
        store.query(AssetsView.self) { $0[id] }
    }

    /// The asset with the server's id; nil while there is none. O(1).
    public func asset(remoteId: String) -> ViewQuery<Asset?> {
        store.query(AssetsView.self) { $0.asset(remoteId: remoteId) }
    }

    /// The asset with the device's id; nil while there is none. O(1).
    public func asset(localId: String) -> ViewQuery<Asset?> {
        store.query(AssetsView.self) { $0.asset(localId: localId) }
    }

    /// The asset of an owner with a checksum; nil while there is none. O(1).
    public func asset(ownerId: String, checksum: String) -> ViewQuery<Asset?> {
        store.query(AssetsView.self) { $0.asset(ownerId: ownerId, checksum: checksum) }
    }

    /// The assets of an owner in the order in which they were taken, then by id. O(their number) for each
    /// evaluation; an observed query is evaluated at every commit of the store.
    public func assets(ownedBy ownerId: String) -> ViewQuery<[Asset]> {
        store.query(AssetsView.self) { Array($0.assets(ownedBy: ownerId)) }
    }

    /// The assets that were taken from `start` through `end`, both included, by the time when they were
    /// taken, then by id. O(log n + their number).
    public func assets(
        takenFrom start: Timestamp, through end: Timestamp
    ) -> ViewQuery<[Asset]> {
        store.query(AssetsView.self) { Array($0.assets(takenFrom: start, through: end)) }
    }

    /// The number of assets. O(1).
    public var count: ViewQuery<Int> { store.query(AssetsView.self) { $0.count } }
}
