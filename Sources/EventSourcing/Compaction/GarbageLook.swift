// A cheap look at how much of a log is garbage: some frames, spread evenly. Spec/format/compaction.md, CMP-29.

import LogFormat
import LogStorage

/// What a look for garbage found.
public struct GarbageEstimate: Hashable, Sendable {
    /// Bytes of the log on disk, without room that is not used yet.
    public var bytes = 0
    /// How much of them compaction would free, about.
    public var garbageBytes = 0
    /// Views whose states are not stored; while there are any, nothing may go.
    public var heldBackBy: [String] = []

    /// Creates an estimate.
    public init() {}

    /// The share of the log that is garbage, 0 to 1.
    public var share: Double { bytes == 0 ? 0 : Double(garbageBytes) / Double(bytes) }
}

/// One look.
struct GarbageLook: Sendable {
    let log: Log
    let catalogue: EventCatalogue
    let environment: LogEnvironment
    let horizon: CompactionHorizon
    /// The log when the horizon was taken; what came since does not count.
    let sealedCount: Int
    let liveBytes: Int
    /// A log that is smaller is not looked at again.
    let bytesMin: Int

    private static let sampledFrames = 64

    /// Samples the log.
    ///
    /// - Returns: nil if the log is too small.
    /// - Throws: `LogError`.
    /// - Complexity: O(segments), and 64 frames to read.
    func run() throws -> GarbageEstimate? {
        let reader = LogReader(log.directory, fileSystem: environment.fileSystem)
        var estimate = GarbageEstimate()
        estimate.bytes = try reader.outline().prefix(sealedCount).reduce(liveBytes) {
            $0 + $1.bytes
        }
        estimate.heldBackBy = horizon.heldBackBy
        guard estimate.bytes >= bytesMin else { return nil }
        let judge = CompactionJudge(horizon, catalogue: catalogue)
        var tally = CompactionTally()
        try log.forEachLine(inSampleOf: Self.sampledFrames) { prefix, line in
            guard prefix.position <= horizon.limit else { return }
            let event = try LogReader.event(line, prefix, catalogue, directory: log.directory)
            tally.add(event, judge.verdict(on: event))
        }
        if tally.lineBytes > 0 {
            let share = Double(tally.freedBytes) / Double(tally.lineBytes)
            estimate.garbageBytes = Int(Double(estimate.bytes) * share)
        }
        return estimate
    }
}
