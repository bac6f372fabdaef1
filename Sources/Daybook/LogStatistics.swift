// The statistics of a log, as `logtool inspect` prints them, for a support screen.
// Spec/operations/logtool.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Replay

/// The statistics of a log.
///
/// ```swift
/// let statistics = try await store.statistics()
/// print("\(statistics.events) events, \(statistics.diskBytes) bytes, \(statistics.unsynced) not synced")
/// ```
public struct LogStatistics: Hashable, Sendable {
    /// The log's id.
    public let logID: UUID
    /// The account that owns the log, if any.
    public let account: String?
    /// The number of segment files.
    public let segments: Int
    /// Bytes of the segment files, preallocated space included.
    public let diskBytes: Int
    /// True if a store has the log open, or has left it without closing it.
    public let isOpen: Bool
    /// The torn tail, which the next opening sets aside; nil if there is none.
    public let tornTail: TornTail?
    /// The stored states of views.
    public let checkpoints: [Checkpoint]

    /// The number of events.
    public let events: Int
    /// Bytes of the events' lines, each with its line feed.
    public let lineBytes: Int
    /// The first and the last event's position; nil without events. Compaction leaves gaps.
    public let positions: ClosedRange<Position>?
    /// The last used position, even if compaction has removed its event; `zero` without any.
    public let last: Position
    /// The earliest and the latest time of an event, by the clock of the device that made it; nil
    /// without events.
    public let times: ClosedRange<Timestamp>?
    /// Events and bytes by type, as recorded.
    public let types: [String: Amount]
    /// The number of unsettled events, parked ones and those in conflict included.
    public let unsynced: Int
    /// The number of own events of types that have no rule, here or in the log's records: they are not sent.
    public let withoutRule: Int
    /// The number of parked events.
    public let parked: Int
    /// The number of events in conflict.
    public let inConflict: Int

    /// Bytes of lines for each byte on the disk; 0 for a log without files.
    public var compressionRatio: Double {
        diskBytes == 0 ? 0 : Double(lineBytes) / Double(diskBytes)
    }

    /// The events of one type.
    public struct Amount: Hashable, Sendable {
        /// The number of events.
        public internal(set) var events = 0
        /// Bytes of their lines, each with its line feed.
        public internal(set) var lineBytes = 0
    }

    /// A file with states of views.
    public struct Checkpoint: Hashable, Sendable {
        /// The file's name, `a` or `b`.
        public let slot: String
        /// The content of the file.
        public let content: Content

        /// The content of a checkpoint file.
        public enum Content: Hashable, Sendable {
            /// States at a position, and the time at which they were written. An opening folds the events
            /// after it.
            case states(position: Position, time: Timestamp)
            /// Unusable; an opening ignores the file.
            case unusable(reason: String)
        }
    }

    /// Reads a log.
    ///
    /// - Parameter body: called with every event, in order.
    /// - Throws: `LogError` as `LogReader.forEachEvent`, and what `body` throws.
    package init(
        of directory: String, _ fileSystem: any FileSystem, catalogue: EventCatalogue,
        _ body: (Event) throws -> Void = { _ in }
    ) throws {
        let slots = CheckpointSlots(directory, fileSystem: fileSystem)
        // Before the log is read, so that the log is at least as new as the checkpoints.
        checkpoints = slots.contents().map { Checkpoint($0, $1) }
        let reader = LogReader(directory, fileSystem: fileSystem)
        let catalogue = reader.adding(recordedRulesTo: catalogue, fileSystem)
        var outbox = Outbox()
        var (events, lineBytes, types) = (0, 0, [String: Amount]())
        var (positions, times): (ClosedRange<Position>?, ClosedRange<Timestamp>?)
        let outcome = try reader.forEachEvent(catalogue: catalogue) { event in
            let bytes = event.lineBytes + 1
            events += 1
            lineBytes += bytes
            types[event.type, default: Amount()].events += 1
            types[event.type, default: Amount()].lineBytes += bytes
            positions = (positions?.lowerBound ?? event.position)...event.position
            times =
                min(
                    times?.lowerBound ?? event.time, event.time)...max(
                    times?.upperBound ?? event.time, event.time)
            outbox.fold(event)
            try body(event)
            return true
        }
        let files = try reader.files()
        logID = UUID(text: files.logID) ?? UUID(integer: 0)
        account = files.account
        segments = files.segments
        diskBytes = files.bytes
        isOpen = outcome.isOpenEnded
        last = outcome.last
        tornTail = outcome.tornTail
        (self.events, self.lineBytes, self.types) = (events, lineBytes, types)
        (self.positions, self.times) = (positions, times)
        unsynced = outbox.count
        withoutRule = outbox.withoutRule
        parked = outbox.entries.reduce(0) { $0 + ($1.status == .failed ? 1 : 0) }
        inConflict = outbox.entries.reduce(0) { $0 + ($1.status == .conflict ? 1 : 0) }
    }
}

extension LogStatistics: CustomStringConvertible {
    /// The numbers of events, bytes and segments, and the events that are not synced.
    public var description: String {
        var text = events.counted("event")
        if let positions {
            text += ", positions \(positions.lowerBound) to \(positions.upperBound)"
        }
        text += "; \(diskBytes.counted("byte")) in \(segments.counted("segment"))"
        text += "; \(unsynced) not synced"
        if parked > 0 { text += ", \(parked) parked" }
        if inConflict > 0 { text += ", \(inConflict) in conflict" }
        if withoutRule > 0 { text += "; \(withoutRule) of types without a rule" }
        if let tornTail { text += "; \(tornTail)" }
        return text
    }
}

extension LogStatistics.Amount: CustomStringConvertible {
    /// The numbers of events and bytes.
    public var description: String {
        "\(events.counted("event")), \(lineBytes.counted("byte"))"
    }
}

extension LogStatistics.Checkpoint {
    fileprivate init(_ slot: String, _ content: CheckpointSlots.Content) {
        self.slot = slot
        self.content =
            switch content {
            case .checkpoint(let checkpoint):
                .states(
                    position: checkpoint.position,
                    time: Timestamp(milliseconds: checkpoint.createdAt))
            case .bad(let reason): .unusable(reason: reason)
            }
    }
}
