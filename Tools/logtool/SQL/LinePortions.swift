// Reads the lines of a log ahead on a thread of its own, while SQLite evaluates the earlier lines. It reads in one
// pass: a reading that stops after each portion would decode the frame in which it stops again.

import DaybookOffline
import Foundation
import LogFormat
import LogStorage
import Synchronization

/// Some of a log's lines, in order.
struct LinePortion: Sendable {
    /// The reason why no portion follows.
    enum End: Sendable {
        /// The last wanted position or the end of the log was reached, with a torn tail if there is one.
        case reached(TornTail?)
        case failed(any Error)
    }

    var bytes: [UInt8] = []
    /// The lines as ranges of `bytes`.
    var lines: [(prefix: LinePrefix, range: Range<Int>)] = []
    /// The end after these lines; nil if another portion follows.
    var end: End?

    fileprivate mutating func append(_ line: RawSpan, _ prefix: LinePrefix) {
        let start = bytes.count
        line.withUnsafeBytes { bytes.append(contentsOf: $0) }
        lines.append((prefix, start..<bytes.count))
    }
}

/// The lines of a log from one position to another, in portions.
final class LinePortions: Sendable {
    private struct State {
        var waiting: [LinePortion] = []
        var isCancelled = false
    }

    private let state = Mutex(State())
    // Both begin at 0: Dispatch traps if a semaphore is released with less than its first value.
    private let isReady = DispatchSemaphore(value: 0)
    private let isFree = DispatchSemaphore(value: 0)

    /// The bytes that are read for a portion, unless none of their lines is wanted.
    private static let portionBytes = 256 * 1_024
    private static let waitingMax = 2

    /// Begins to read. A single line is read at once.
    ///
    /// - Parameter isWanted: true for the lines that the portions contain.
    init(
        _ reader: LogReader, _ positions: ClosedRange<Position>,
        _ isWanted: @escaping @Sendable (LinePrefix, RawSpan) -> Bool
    ) {
        for _ in 0..<Self.waitingMax { isFree.signal() }
        if positions.lowerBound == positions.upperBound {
            read(reader, positions, isWanted)
        } else {
            Thread.detachNewThread { self.read(reader, positions, isWanted) }
        }
    }

    /// Ends the reading. Called when no more portions are wanted.
    func cancel() {
        state.withLock { $0.isCancelled = true }
        isFree.signal()
    }

    /// Waits for the next portion. Not called after the last one.
    func next() -> LinePortion {
        isReady.wait()
        defer { isFree.signal() }
        return state.withLock { $0.waiting.removeFirst() }
    }

    private func read(
        _ reader: LogReader, _ positions: ClosedRange<Position>,
        _ isWanted: (LinePrefix, RawSpan) -> Bool
    ) {
        var portion = LinePortion()
        var readBytes = 0
        do {
            let outcome = try reader.forEachLine(from: positions.lowerBound) { prefix, line in
                // The last position may be in a hole, which compaction leaves.
                guard prefix.position <= positions.upperBound else { return false }
                readBytes += line.byteCount
                if isWanted(prefix, line) { portion.append(line, prefix) }
                // Damage after the last position is not read.
                guard prefix.position < positions.upperBound else { return false }
                guard readBytes >= Self.portionBytes else { return true }
                readBytes = 0
                guard !portion.lines.isEmpty else { return !self.state.withLock { $0.isCancelled } }
                defer { portion = LinePortion() }
                return self.deliver(portion)
            }
            portion.end = .reached(outcome.tornTail)
        } catch { portion.end = .failed(error) }
        _ = deliver(portion)
    }

    /// Blocks while two portions wait, then appends the portion.
    ///
    /// - Returns: false if no more are wanted.
    private func deliver(_ portion: LinePortion) -> Bool {
        isFree.wait()
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.waiting.append(portion) }
            return state.isCancelled
        }
        if isCancelled { isFree.signal() } else { isReady.signal() }
        return !isCancelled
    }
}
