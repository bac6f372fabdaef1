// Reads events ahead of whoever takes them in: a thread of its own reads and checks them, and reads
// their data while it is ahead; the caller folds what came before, in order. Comes after the log's
// lines, before the views. Spec/model/views.md.

import Foundation
import LogFormat
import LogStorage
import Synchronization
import Telemetry

/// Events in order, some at a time.
struct EventRuns: Sendable {
    /// Calls its second argument with every event, in order; false stops. The first says, for each
    /// event, whether its data are to be read. Gives back the last position that it has come to.
    let source:
        @Sendable (_ readsData: () -> Bool, _ body: (Event) throws -> Bool) throws -> Position
    /// Whether there are so few that reading ahead costs more than it saves.
    var isShort = false

    /// Events of a run at most, and bytes of their lines after which it ends.
    private static let eventsMax = 512
    private static let bytesMax = 256 * 1024

    /// Whether a run has become long enough.
    static func isFull(events: Int, bytes: Int) -> Bool {
        events >= eventsMax || bytes >= bytesMax
    }

    /// Calls `body` with every run, in order, on the calling thread. What was read by then is handed
    /// on before an error of the source is thrown.
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
            handover.end(Result { try handover.fill(from: self) })
        }
        reader.qualityOfService = .userInitiated
        reader.start()
        defer { handover.cancel() }
        while let run = handover.take() {
            try body(run)
            handover.giveBack(run)
        }
        return try handover.result()
    }

    /// - Parameters:
    ///   - readsData: asked before each run.
    ///   - dropOne: called for each event.
    ///   - put: takes a run; false stops.
    fileprivate func gather(
        readsData: () -> Bool, dropOne: () -> Void, _ put: ([Event]) throws -> Bool
    ) throws -> Position {
        var (run, bytes, goesOn): ([Event], Int, Bool) = ([], 0, true)
        var runReadsData = readsData()
        func handOn() throws {
            guard goesOn, !run.isEmpty else { return }
            // Who throws wants no more either.
            goesOn = false
            goesOn = try put(run)
            (run, bytes, runReadsData) = ([], 0, readsData())
        }
        let read = Result {
            try source({ runReadsData }) { event in
                run.append(event)
                bytes += event.lineBytes
                dropOne()
                if Self.isFull(events: run.count, bytes: bytes) { try handOn() }
                return goesOn
            }
        }
        try handOn()
        return try read.get()
    }
}

extension Instruments {
    /// Measures a fold, and counts its events.
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
    /// The committed events from a position on, up to another.
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

/// Where one thread leaves runs for another: few at a time, so that memory does not grow.
///
/// Both have as much to do as they can: the reader reads the data of events only while the other has
/// something to go on with, who else reads them for each view. What the other is done with goes back,
/// and for each event that is made one is dropped: an allocator is fast with memory of the same thread
/// that was just given back, and locks for that of another.
private final class Handover: Sendable {
    private struct State {
        var runs: [[Event]] = []
        var spent: [[Event]] = []
        var end: Result<Position, any Error>?
        var isCancelled = false
    }

    private let state = Mutex(State())
    private let filled = DispatchSemaphore(value: 0)
    private let room = DispatchSemaphore(value: 0)
    private static let runsMax = 4

    init() { for _ in 0..<Self.runsMax { room.signal() } }

    /// Leaves all runs, one after the other.
    func fill(from runs: EventRuns) throws -> Position {
        var spent: [Event] = []
        return try runs.gather(
            readsData: {
                state.withLock { state in
                    if spent.isEmpty, let run = state.spent.popLast() { spent = run }
                    return !state.runs.isEmpty
                }
            }, dropOne: { _ = spent.popLast() }, put)
    }

    /// Waits until there is room, and leaves a run.
    ///
    /// - Returns: false if nobody wants more.
    private func put(_ run: [Event]) -> Bool {
        room.wait()
        let isCancelled = state.withLock { state in
            state.runs.append(run)
            return state.isCancelled
        }
        filled.signal()
        return !isCancelled
    }

    /// Who took a run is done with it. Few are kept: runs of long events have fewer than the reader
    /// drops, and would pile up.
    func giveBack(_ run: [Event]) {
        state.withLock { state in
            if state.spent.count < Self.runsMax { state.spent.append(run) }
        }
    }

    /// Nothing more will come.
    func end(_ result: Result<Position, any Error>) {
        state.withLock { $0.end = result }
        filled.signal()
    }

    /// Nothing more is wanted.
    func cancel() {
        state.withLock { $0.isCancelled = true }
        room.signal()
    }

    /// Waits for the next run; nil at the end.
    func take() -> [Event]? {
        filled.wait()
        let run = state.withLock { $0.runs.isEmpty ? nil : $0.runs.removeFirst() }
        if run != nil { room.signal() }
        return run
    }

    /// What the end came to, once there are no more runs.
    func result() throws -> Position { try state.withLock { $0.end }?.get() ?? .zero }
}
