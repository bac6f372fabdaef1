// Reads events ahead of the fold: a reader thread reads and checks them, and decodes their data while it is
// ahead; the caller folds earlier runs, in order. Between the log's lines and the views. Spec/model/views.md.

import Foundation
import LogFormat
import LogStorage
import Synchronization
import Telemetry

/// The events of a source in order, in runs.
struct EventRuns: Sendable {
    /// Calls `body` with every event, in order, until it returns false. Calls `readsData` for each event:
    /// true to decode its data. Returns the last position read.
    let source:
        @Sendable (_ readsData: () -> Bool, _ body: (Event) throws -> Bool) throws -> Position
    /// True if there are so few events that reading ahead costs more than it saves.
    var isShort = false

    /// The most events of a run, and the bytes of lines at which it ends.
    private static let eventsMax = 512
    private static let bytesMax = 256 * 1024

    /// True if a run has reached its maximum length.
    static func isFull(events: Int, bytes: Int) -> Bool {
        events >= eventsMax || bytes >= bytesMax
    }

    /// Calls `body` with every run, in order, on the calling thread. Events read before an error of the
    /// source are delivered before it is thrown.
    ///
    /// - Returns: the last position of the source.
    /// - Throws: what the source throws, and what `body` throws.
    @discardableResult
    func forEach(_ body: ([Event]) throws -> Void) throws -> Position {
        if isShort {
            return try gather(readsData: { true }, dropOne: {}) { run in
                try body(run)
                return true
            }
        }
        let handover = Handover()
        let reader = Thread { [self] in
            handover.finish(with: Result { try handover.fill(from: self) })
        }
        reader.qualityOfService = .userInitiated
        reader.start()
        defer { handover.cancel() }
        while let run = handover.dequeue() {
            try body(run)
            handover.recycle(run)
        }
        return try handover.result()
    }

    /// Reads the source and divides its events into runs.
    ///
    /// - Parameters:
    ///   - readsData: called before each run.
    ///   - dropOne: called for each event.
    ///   - deliver: receives each run; false stops.
    fileprivate func gather(
        readsData: () -> Bool, dropOne: () -> Void, _ deliver: ([Event]) throws -> Bool
    ) throws -> Position {
        var (run, bytes, wantsMore): ([Event], Int, Bool) = ([], 0, true)
        var runReadsData = readsData()
        func deliverRun() throws {
            guard wantsMore, !run.isEmpty else { return }
            // Stays false if `deliver` throws.
            wantsMore = false
            wantsMore = try deliver(run)
            (run, bytes, runReadsData) = ([], 0, readsData())
        }
        let read = Result {
            try source({ runReadsData }) { event in
                run.append(event)
                bytes += event.lineBytes
                dropOne()
                if Self.isFull(events: run.count, bytes: bytes) { try deliverRun() }
                return wantsMore
            }
        }
        try deliverRun()
        return try read.get()
    }
}

extension Instruments {
    /// Measures the time of a fold, and counts its events.
    ///
    /// - Returns: as `EventRuns.forEach(_:)`.
    /// - Throws: as `EventRuns.forEach(_:)`.
    @discardableResult
    func fold(_ runs: EventRuns, _ body: ([Event]) throws -> Void) throws -> Position {
        try measure(.fold) {
            try runs.forEach { run in
                try body(run)
                count(.foldedEvents, run.count)
            }
        }
    }
}

extension Log {
    /// The committed events of the range of positions from `first` through `last`.
    func runs(
        from first: Position, through last: Position = Position(.max), catalogue: EventCatalogue
    ) -> EventRuns {
        let count = Int(clamping: next.rawValue) - Int(clamping: first.rawValue)
        return EventRuns(
            source: { readsData, body in
                try self.forEachEvent(from: first, catalogue: catalogue, readsData: readsData) {
                    try $0.position <= last && body($0)
                }
                return Position(self.next.rawValue - 1)
            }, isShort: count < 2_000)
    }
}

extension LogReader {
    /// The events from a position on.
    func runs(from first: Position = Position(1), catalogue: EventCatalogue) -> EventRuns {
        EventRuns { readsData, body in
            try self.forEachEvent(
                from: first, catalogue: catalogue, readsData: readsData, body
            ).last
        }
    }
}

/// A bounded queue of runs from the reader thread to the folding thread. The bound limits memory.
///
/// The work is balanced between the threads: the reader decodes the data of events only while runs are
/// queued; else the folding thread decodes them, for each view. Folded runs return to the reader, which
/// releases one event for each one that it creates: an allocator is fast for memory that its own thread has
/// just released, and takes a lock for memory of another thread.
private final class Handover: Sendable {
    private struct State {
        var runs: [[Event]] = []
        var spent: [[Event]] = []
        var end: Result<Position, any Error>?
        var isCancelled = false
    }

    private let state = Mutex(State())
    private let availableRuns = DispatchSemaphore(value: 0)
    private let freeSlots = DispatchSemaphore(value: 0)
    private static let runsMax = 4

    init() { for _ in 0..<Self.runsMax { freeSlots.signal() } }

    /// Reads all events and enqueues their runs. Runs on the reader thread.
    func fill(from runs: EventRuns) throws -> Position {
        var spent: [Event] = []
        return try runs.gather(
            readsData: {
                state.withLock { state in
                    if spent.isEmpty, let run = state.spent.popLast() { spent = run }
                    return !state.runs.isEmpty
                }
            }, dropOne: { _ = spent.popLast() }, enqueue)
    }

    /// Waits for a free slot, and enqueues a run.
    ///
    /// - Returns: false if the folding thread has cancelled.
    private func enqueue(_ run: [Event]) -> Bool {
        freeSlots.wait()
        let isCancelled = state.withLock { state in
            state.runs.append(run)
            return state.isCancelled
        }
        availableRuns.signal()
        return !isCancelled
    }

    /// Returns a folded run to the reader. At most four are kept: the reader may release runs more slowly
    /// than they return, and they would accumulate.
    func recycle(_ run: [Event]) {
        state.withLock { state in
            if state.spent.count < Self.runsMax { state.spent.append(run) }
        }
    }

    /// Ends the queue with the reader's result.
    func finish(with result: Result<Position, any Error>) {
        state.withLock { $0.end = result }
        availableRuns.signal()
    }

    /// Stops the reader at its next run.
    func cancel() {
        state.withLock { $0.isCancelled = true }
        freeSlots.signal()
    }

    /// Waits for the next run and removes it; nil at the end.
    func dequeue() -> [Event]? {
        availableRuns.wait()
        let run = state.withLock { $0.runs.isEmpty ? nil : $0.runs.removeFirst() }
        if run != nil { freeSlots.signal() }
        return run
    }

    /// The reader's result, once there are no more runs.
    func result() throws -> Position { try state.withLock { $0.end }?.get() ?? .zero }
}
