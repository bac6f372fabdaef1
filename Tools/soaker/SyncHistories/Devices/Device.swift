// One device of an account: its disk, its clock, its store, and its line to the server. Part of
// DeviceHistory. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation

/// One device.
final class Device {
    /// The disk as it was once.
    struct Backup {
        var files: SimulatedFileSystem
        var folder: String
        /// What the store had acknowledged by then.
        var acknowledged: Set<UUID>
    }

    let name: Int
    /// Milliseconds by which its clock is wrong.
    let skew: Int64
    let network: SimulatedNetwork
    let resolver: any ConflictResolver
    var files = SimulatedFileSystem()
    var folder = "/log"
    var store: OfflineStore?
    var lives: UInt64 = 0
    var backup: Backup?
    /// Events that the app was told are recorded, and has not given up since.
    var acknowledged: Set<UUID> = []

    init(
        _ name: Int, skew: Int64, network: SimulatedNetwork, resolver: any ConflictResolver
    ) {
        self.name = name
        self.skew = skew
        self.network = network
        self.resolver = resolver
    }

    func opened() throws -> OfflineStore {
        guard let store else { throw HistoryFailure("device \(name) is not open") }
        return store
    }
}
