// When a store writes a checkpoint, and how: captured in an instant on the store's queue, encoded
// and written in the background. Spec/format/checkpoint.md.

import Foundation
import LogFormat
import LogStorage

/// What a store knows of its checkpoints.
struct Checkpointing {
    /// Events since the newest checkpoint.
    private(set) var tailEvents = 0
    private var tailBytes = 0
    /// Bytes of the newest checkpoint's states.
    private var stateBytes = 0
    /// The one that is being written.
    var running: Task<Void, any Error>?

    /// Whether views need events of the library's own types, and no checkpoint says so: a program
    /// that does not know the views could take such events out.
    var areNeedsNew = false
    /// Whether a checkpoint that says so was begun: if it fails, as on a full disk, the next one waits
    /// for more events.
    private var hasTriedNeeds = false

    /// Events after which a checkpoint is worth its writing.
    private static let eventsMin = 1_000
    /// How many times as long as the states the tail has to be.
    private static let tailStatesMin = 4
    /// The same when the store is closed, where nobody waits for it.
    private static let eventsMinAtClose = 100

    /// Takes in an event that has been folded.
    mutating func add(_ event: Event) {
        tailEvents += 1
        tailBytes += event.lineBytes
    }

    /// Whether one is due: the tail has become several times as long as the states. A byte of the tail
    /// is taken in about as fast as a byte of a state, so opening takes a few times as long as
    /// reading the states at most, and all checkpoints together write a fraction of what the events
    /// are long.
    var isDue: Bool {
        running == nil
            && (areNeedsNew && !hasTriedNeeds
                || tailEvents >= Self.eventsMin
                    && (areNeedsNew || tailBytes >= stateBytes * Self.tailStatesMin))
    }

    /// Whether one is due when the store is closed.
    var isDueAtClose: Bool {
        areNeedsNew || tailEvents >= Self.eventsMinAtClose && tailBytes >= stateBytes / 4
    }

    /// A view had to be folded from further back than the checkpoint: the next one is due at once.
    mutating func hasRebuilt() {
        tailEvents = max(tailEvents, Self.eventsMin)
        tailBytes = max(tailBytes, stateBytes * Self.tailStatesMin)
    }

    /// A checkpoint is being written that covers everything folded so far.
    mutating func begin() {
        tailEvents = 0
        tailBytes = 0
        hasTriedNeeds = areNeedsNew
    }

    /// A checkpoint was written, whose states have so many bytes.
    mutating func finish(stateBytes: Int) {
        self.stateBytes = stateBytes
        areNeedsNew = false
    }
}

/// A store at one moment, on its way to become a checkpoint.
struct CheckpointJob: Sendable {
    /// Keeps the lock while the job runs.
    let log: Log
    let snapshot: LogSnapshot
    let captures: [ViewCapture]
    let floor: TimeFloor
    let discarded: DiscardedEvents
    let needs: ViewNeeds
    /// States of views that are not known here, at the positions they had.
    let unknown: [StoredState]
    let environment: LogEnvironment

    /// Encodes and stores; durable on return.
    ///
    /// - Returns: bytes of all states.
    func run() throws -> Int {
        var states = unknown
        for capture in captures {
            // A view that cannot encode its state is folded at the next opening instead.
            guard let bytes = try? capture.encode() else { continue }
            states.append(
                StoredState(
                    name: capture.name, version: capture.version, types: capture.types,
                    position: capture.position, bytes: bytes))
        }
        states.append(try floor.stored(at: snapshot.position))
        if let discarded = discarded.stored(at: snapshot.position) { states.append(discarded) }
        states.append(try needs.stored(at: snapshot.position))
        let checkpoint = snapshot.checkpoint(
            states: states, createdAt: environment.now(),
            seed: UInt32(truncatingIfNeeded: environment.random()))
        try CheckpointSlots(log.directory, fileSystem: environment.fileSystem).write(checkpoint)
        return states.reduce(0) { $0 + $1.bytes.count }
    }
}

extension TimeFloor {
    /// The name under which checkpoints hold it.
    static let stateName = "daybook.time-floor"

    func stored(at position: Position) throws -> StoredState {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return StoredState(
            name: Self.stateName, version: 1, position: position,
            bytes: Array(try encoder.encode(self)))
    }

    /// The floor among stored states and the position up to which it counts.
    static func restored(from states: [StoredState]) -> (TimeFloor, Position)? {
        guard let state = states.first(where: { $0.name == stateName && $0.version == 1 }),
            let floor = try? JSONDecoder().decode(TimeFloor.self, from: Data(state.bytes))
        else { return nil }
        return (floor, state.position)
    }
}
