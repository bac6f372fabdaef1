// When and how a store writes a checkpoint: captured on the store's queue, encoded and written in the
// background. Spec/format/checkpoint.md.

import Foundation
import LogFormat
import LogStorage

/// The schedule of a store's checkpoints.
struct Checkpointing {
    /// The number of events since the newest checkpoint (the tail).
    private(set) var tailEvents = 0
    private var tailBytes = 0
    /// The bytes of the newest checkpoint's states.
    private var stateBytes = 0
    /// The checkpoint that is being written.
    var running: Task<Void, any Error>?
    /// Stops it before the next view or element of a `Codable` view, and before it is written.
    var stop: CancellationFlag?

    /// The views whose states could not be encoded since the store was opened.
    private var unstorable: Set<String> = []

    /// True if views need events of the library's own types and no checkpoint has stored that: a program
    /// that does not know the views could remove such events.
    var areNeedsNew = false
    /// True if a checkpoint with the new needs was started: if it fails, as on a full disk, the next one
    /// waits for more events.
    private var hasTriedNeeds = false

    /// The events from which a checkpoint is worth its cost.
    private static let eventsMin = 1_000
    /// The least ratio of the tail's bytes to the states' bytes.
    private static let tailStatesMin = 4
    /// The events from which a checkpoint is worth its cost when the store is closed: no caller waits then.
    private static let eventsMinAtClose = 100

    /// Counts a folded event of the tail.
    mutating func countTail(_ event: Event) {
        tailEvents += 1
        tailBytes += event.lineBytes
    }

    /// True if a checkpoint is due: the tail is several times as long as the states. A byte of the tail is
    /// folded about as fast as a byte of a state is read. So opening takes at most a few times as long as
    /// reading the states, and all checkpoints together write a fraction of the events' bytes.
    var isDue: Bool {
        running == nil
            && (areNeedsNew && !hasTriedNeeds
                || tailEvents >= Self.eventsMin
                    && (areNeedsNew || tailBytes >= stateBytes * Self.tailStatesMin))
    }

    /// True if a checkpoint is due when the store is closed.
    var isDueAtClose: Bool {
        areNeedsNew || tailEvents >= Self.eventsMinAtClose && tailBytes >= stateBytes / 4
    }

    /// Makes the next checkpoint due at once: a view had to be folded from before the newest one.
    mutating func makeDue() {
        tailEvents = max(tailEvents, Self.eventsMin)
        tailBytes = max(tailBytes, stateBytes * Self.tailStatesMin)
    }

    /// Begins a checkpoint that covers all events folded so far.
    mutating func begin() {
        tailEvents = 0
        tailBytes = 0
        hasTriedNeeds = areNeedsNew
    }

    /// Ends a checkpoint.
    ///
    /// - Parameters:
    ///   - stateBytes: the bytes of its states.
    ///   - storesNeeds: false if the needs have changed since it was begun.
    mutating func finish(stateBytes: Int, storesNeeds: Bool = true) {
        self.stateBytes = stateBytes
        if storesNeeds { areNeedsNew = false }
    }

    /// Notes that the state of a view could not be encoded.
    ///
    /// - Returns: true the first time.
    mutating func noteUnstorable(_ view: String) -> Bool { unstorable.insert(view).inserted }

    /// Makes a checkpoint due because rows in a database have stated new needs.
    mutating func makeNeedsNew() {
        areNeedsNew = true
        hasTriedNeeds = false
    }
}

/// The captured state of a store, to be written as a checkpoint.
struct CheckpointJob: Sendable {
    /// The log, whose lock is kept while the job runs.
    let log: Log
    let snapshot: LogSnapshot
    let captures: [ViewCapture]
    let floor: TimeFloor
    let discarded: DiscardedEvents
    let needs: ViewNeeds
    /// Stored states of unknown views, at their own positions.
    let unknown: [StoredState]
    let environment: LogEnvironment
    let stop: CancellationFlag

    /// Encodes and stores the states. Durable on return.
    ///
    /// - Returns: the bytes of all states, and the errors of views whose states cannot be encoded, by name.
    /// - Throws: `LogError`; `CancellationError` if it was stopped. Then nothing was stored.
    func run() throws -> (stateBytes: Int, faults: [String: any Error]) {
        var states = unknown
        var faults: [String: any Error] = [:]
        for capture in captures {
            if stop.isSet { throw CancellationError() }
            do {
                let encoded = try CancellationFlag.$current.withValue(stop) { try capture.encode() }
                guard let bytes = encoded else { continue }
                states.append(
                    StoredState(
                        name: capture.name, version: capture.version, types: capture.types,
                        position: capture.position, bytes: bytes))
            } catch { faults[capture.name] = error }
        }
        if stop.isSet { throw CancellationError() }
        states.append(try floor.stored(at: snapshot.position))
        if let discarded = discarded.stored(at: snapshot.position) { states.append(discarded) }
        states.append(try needs.stored(at: snapshot.position))
        let checkpoint = snapshot.checkpoint(
            states: states, createdAt: environment.now(),
            seed: UInt32(truncatingIfNeeded: environment.random()))
        try CheckpointSlots(log.directory, fileSystem: environment.fileSystem).write(checkpoint)
        return (states.reduce(0) { $0 + $1.bytes.count }, faults)
    }
}

extension TimeFloor {
    /// The name of its state in checkpoints.
    static let stateName = "daybook.time-floor"

    func stored(at position: Position) throws -> StoredState {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return StoredState(
            name: Self.stateName, version: 1, position: position,
            bytes: Array(try encoder.encode(self)))
    }

    /// The floor among stored states, and the last position that it includes.
    static func restored(from states: [StoredState]) -> (TimeFloor, Position)? {
        guard let state = states.first(where: { $0.name == stateName && $0.version == 1 }),
            let floor = try? JSONDecoder().decode(TimeFloor.self, from: Data(state.bytes))
        else { return nil }
        return (floor, state.position)
    }
}
