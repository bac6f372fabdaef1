// Estimates how much of a log is garbage from a sample of frames, spread evenly. Spec/format/compaction.md,
// CMP-29.

import LogFormat
import LogStorage

/// The result of a scan for garbage.
public struct GarbageEstimate: Hashable, Sendable {
    /// The bytes of the log on disk, without preallocated space.
    public var bytes = 0
    /// The estimated bytes that compaction would free.
    public var garbageBytes = 0
    /// The views whose stored states are missing or end before the others. While a view has none, nothing
    /// can be removed.
    public var heldBackBy: [String] = []

    /// Creates an estimate.
    public init() {}

    /// The share of the log that is garbage, 0 to 1.
    public var share: Double { bytes == 0 ? 0 : Double(garbageBytes) / Double(bytes) }
}

/// One scan for garbage.
struct GarbageScan: Sendable {
    let log: Log
    let catalogue: EventCatalogue
    let environment: LogEnvironment
    let horizon: CompactionHorizon
    /// The size of the log when the horizon was captured. Later bytes are not counted.
    let sealedCount: Int
    let liveBytes: Int
    /// The size below which the log is not scanned.
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
        let classifier = CompactionClassifier(horizon, catalogue: catalogue)
        var tally = CompactionTally()
        try log.forEachLine(inSampleOf: Self.sampledFrames) { prefix, line in
            guard prefix.position <= horizon.limit else { return }
            let event = try LogReader.event(line, prefix, catalogue, directory: log.directory)
            tally.count(event, as: classifier.verdict(on: event))
        }
        if tally.lineBytes > 0 {
            let share = Double(tally.freedBytes) / Double(tally.lineBytes)
            estimate.garbageBytes = Int(Double(estimate.bytes) * share)
        }
        return estimate
    }
}
