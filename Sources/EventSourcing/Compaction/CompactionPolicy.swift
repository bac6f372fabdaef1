// When a store compacts automatically, and its reports. Spec/format/compaction.md, CMP-29.

/// When a store scans for garbage and compacts automatically.
///
/// It scans when the policy is set and when a segment is sealed, but not before the log has grown by a
/// quarter since the last scan. A scan reads at most 64 frames, about 8 MiB of lines, in the background.
public struct CompactionPolicy: Sendable {
    /// The least share of the log's bytes that must be garbage, 0 to 1.
    public var garbageShare = 0.3
    /// The least bytes on disk that must be garbage.
    public var garbageBytesMin = 1024 * 1024
    /// True if compaction may run now: for example, the device is charging and the app is not in use.
    /// Called when compaction is due, then every minute until it returns true.
    public var isIdle: @Sendable () -> Bool
    /// The time between two calls of `isIdle`.
    package var idlePause = Duration.seconds(60)

    /// Creates a policy: at least 30 % of the log and 1 MiB, at any time unless `isIdle` is given.
    public init(isIdle: @escaping @Sendable () -> Bool = { true }) { self.isIdle = isIdle }

    /// Checks that all numbers are in range.
    ///
    /// - Throws: `EventError` (`refused`), naming the number.
    // Not inlined: Swift 6.3 crashes when it optimises the caller.
    @inline(never)
    package func check() throws(EventError) {
        guard (0...1).contains(garbageShare) else {
            throw EventError(
                .refused,
                "the compaction policy's garbageShare is \(garbageShare). Set it to a share from 0 to 1"
            )
        }
        guard garbageBytesMin >= 0 else {
            throw EventError(
                .refused,
                "the compaction policy's garbageBytesMin is \(garbageBytesMin). Set it to 0 or more"
            )
        }
    }
}

/// A report of automatic compaction.
public enum MaintenanceReport: Sendable {
    /// A scan found too little garbage.
    case notWorthIt(GarbageEstimate)
    /// A scan found enough garbage; compaction waits until the device is idle.
    case waitsForIdle(GarbageEstimate)
    /// A compaction ended.
    case compacted(CompactionReport)
    /// A scan or a compaction failed. The log is intact; the store tries again after the next scan.
    case failed(any Error)
}
