// When a store compacts by itself, and what it says about it. Spec/format/compaction.md, CMP-29.

/// When a store looks for garbage and compacts by itself.
///
/// It looks when the policy is set and when a segment is sealed, but not again before the log has
/// grown by a quarter. A look reads at most 64 frames, some 8 MiB of lines, in the background.
public struct CompactionPolicy: Sendable {
    /// The least share of the log's bytes that must be garbage, 0 to 1.
    public var garbageShare = 0.3
    /// The least bytes on disk that must be garbage.
    public var garbageBytesMin = 1024 * 1024
    /// Whether now is a good time: the device is charged, nobody uses the app. Asked when compaction
    /// is due, and then every minute until it says so.
    public var isIdle: @Sendable () -> Bool
    /// How long to wait before it is asked again.
    package var idlePause = Duration.seconds(60)

    /// Creates a policy: 30 % of the log and 1 MiB at least, at any time unless `isIdle` is given.
    public init(isIdle: @escaping @Sendable () -> Bool = { true }) { self.isIdle = isIdle }

    /// Checks that all numbers are in range.
    ///
    /// - Throws: `EventError` (`refused`), naming the number.
    // Not inlined: Swift 6.3 crashes where it optimises the caller.
    @inline(never)
    package func check() throws(EventError) {
        guard (0...1).contains(garbageShare) else {
            throw EventError(
                .refused,
                "the compaction policy's garbageShare is \(garbageShare). Give it a share from 0 to 1"
            )
        }
        guard garbageBytesMin >= 0 else {
            throw EventError(
                .refused,
                "the compaction policy's garbageBytesMin is \(garbageBytesMin). Give it 0 or more")
        }
    }
}

/// What a store did by itself.
public enum MaintenanceReport: Sendable {
    /// It looked, and there is not enough garbage.
    case notWorthIt(GarbageEstimate)
    /// There is enough, and it waits until the device is idle.
    case waitsForIdle(GarbageEstimate)
    /// It compacted.
    case compacted(CompactionReport)
    /// It could not; the log is as sound as before, and it tries again at the next occasion.
    case failed(any Error)
}
