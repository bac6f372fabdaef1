// What a simulated disk promises. The default is what Spec/format/recovery.md assumes (REC-1); the others
// are weaker, and what the log promises on them is weaker, too. Used by SimulatedDisk.

/// The kind of storage behind a simulated file system.
public struct Medium: Hashable, Sendable {
    /// What is written in one piece, in bytes: 512 or 4,096.
    public var sectorBytes: Int
    /// Whether a torn write harms only bytes within the range written (powersafe overwrite, as
    /// SQLite calls it). Without it, it may harm all of each sector that it touches: that can be
    /// noticed, and not survived.
    public var hasPowersafeOverwrite: Bool
    /// Whether a sync makes anything durable. Drives that lie, and plain `fsync` on Apple systems,
    /// which empties no cache of the drive: what was synced may be lost, in any order.
    public var honoursSync: Bool

    /// Whether it promises what Spec/format/recovery.md assumes.
    public var isSound: Bool { hasPowersafeOverwrite && honoursSync }

    /// Creates a medium.
    public init(
        sectorBytes: Int = 512, hasPowersafeOverwrite: Bool = true, honoursSync: Bool = true
    ) {
        precondition(sectorBytes > 0)
        self.sectorBytes = sectorBytes
        self.hasPowersafeOverwrite = hasPowersafeOverwrite
        self.honoursSync = honoursSync
    }
}
