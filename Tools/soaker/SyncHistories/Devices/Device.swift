// One device of a DeviceHistory: its disk, its clock, its store, and its network.
// Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A device of the account.
final class Device {
    /// An earlier state of the disk.
    struct Backup {
        var files: SimulatedFileSystem
        var folder: String
        /// The events that the store had acknowledged then.
        var acknowledged: Set<UUID>
    }

    let name: Int
    /// The error of its clock, in milliseconds.
    let skew: Int64
    let network: SimulatedNetwork
    let resolver: any ConflictResolver
    var files = SimulatedFileSystem()
    var folder = "/log"
    var store: OfflineStore?
    var lives: UInt64 = 0
    var backup: Backup?
    /// The events whose append returned, without discarded ones and those that a backup does not have.
    var acknowledged: Set<UUID> = []

    init(
        _ name: Int, skew: Int64, network: SimulatedNetwork, resolver: any ConflictResolver
    ) {
        self.name = name
        self.skew = skew
        self.network = network
        self.resolver = resolver
    }

    func requireStore() throws -> OfflineStore {
        guard let store else { throw HistoryFailure("device \(name) is not open") }
        return store
    }
}
