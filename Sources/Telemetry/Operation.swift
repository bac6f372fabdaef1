// The names of all metrics, spans and log lines. The article Instrumentation.md shows them as a table.

import Logging

extension Instruments {
    /// An operation whose duration is measured. The raw value is the name of its spans and log lines; its
    /// metrics are `durationLabel` and `failuresLabel`.
    public enum Operation: String, CaseIterable, Sendable {
        /// Opening a log: recovery, stored states, and the events after them.
        case open = "daybook.open"
        /// Reading the views' states from a checkpoint.
        case restore = "daybook.restore"
        /// Folding events that are on the disk: when a log is opened or resumed, when events were
        /// retracted, and for the state at a position.
        case fold = "daybook.fold"
        /// Writing and syncing one commit, which one append or several share.
        case commit = "daybook.commit"
        /// Encoding the views' states and storing them.
        case checkpoint = "daybook.checkpoint"
        /// A compaction that was not a dry run, with the checkpoints before it.
        case compaction = "daybook.compaction"
        /// A sync run that has an end.
        case sync = "daybook.sync"
        /// One request to the sync server, up to its answer.
        case syncRequest = "daybook.sync.request"
        /// One attempt to download a city, a lesson or review sessions.
        case download = "daybook.download"

        /// The label of the timer of durations, in nanoseconds, of failed operations, too.
        public var durationLabel: String { rawValue + ".duration" }
        /// The label of the counter of failures. A cancelled operation is not a failure.
        public var failuresLabel: String { rawValue + ".failures" }

        /// The level of the log line after a success. A failure has the level `debug`, because the caller
        /// gets the error.
        var logLevel: Logger.Level { self == .commit ? .trace : .debug }
    }

    /// An amount that is counted. The raw value is the counter's label.
    public enum Amount: String, CaseIterable, Sendable {
        /// Events of commits.
        case committedEvents = "daybook.commit.events"
        /// Bytes of their lines, before compression.
        case committedBytes = "daybook.commit.bytes"
        /// Events that were folded: at opening, at resuming, and for the state at a position.
        case foldedEvents = "daybook.fold.events"
        /// Bytes of the states in checkpoints.
        case checkpointBytes = "daybook.checkpoint.bytes"
        /// Events that compactions have removed.
        case removedEvents = "daybook.compaction.events"
        /// Bytes of their lines, before compression.
        case removedBytes = "daybook.compaction.bytes"
        /// Bytes of batches that the sync server has answered.
        case sentBytes = "daybook.sync.sent.bytes"
        /// Bytes of the sync server's answers and of the events that it pushes.
        case receivedBytes = "daybook.sync.received.bytes"
        /// Bytes of the images of cities that were downloaded to the end.
        case downloadedBytes = "daybook.download.bytes"
    }
}
