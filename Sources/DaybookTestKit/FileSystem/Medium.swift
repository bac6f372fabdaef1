// The guarantees of a simulated disk. The default is what Spec/format/recovery.md assumes (REC-1). On a
// weaker medium the log's guarantees are weaker, too.

/// The guarantees of the storage below a simulated file system.
public struct Medium: Hashable, Sendable {
    /// The size of a sector in bytes: 512 or 4,096.
    public var sectorBytes: Int
    /// Whether a torn write damages only bytes within the range written (SQLite's powersafe overwrite). If
    /// false, it may damage the whole of each sector that it touches. A log can detect that damage, but not
    /// recover from it.
    public var hasPowersafeOverwrite: Bool
    /// Whether a sync makes anything durable. False stands for drives that lie, and for plain `fsync` on
    /// Apple systems, which does not flush the drive's cache: synced bytes may be lost, in any order.
    public var honoursSync: Bool

    /// Whether the medium guarantees what Spec/format/recovery.md assumes.
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
