// Compares the stored states of a log with what its events come to. Used by verification, which
// reads all events anyway. Spec/format/checkpoint.md, CHK-6.

import LogFormat
import LogStorage

/// A check of a log's checkpoints against a rebuild.
package struct CheckpointVerifier {
    private struct Pending {
        let slot: String
        let state: StoredState
    }

    private let views: ViewSet
    /// States still to be compared, by ascending position.
    private var pending: [Pending] = []
    /// Events that are not folded yet: many at once are folded faster.
    private var waiting: [Event] = []
    private var waitingBytes = 0
    /// What is not right.
    package private(set) var findings: [Finding] = []
    /// States that were compared and are right.
    package private(set) var compared = 0
    /// States that could not be compared, and why.
    package private(set) var notes: [String] = []

    /// Reads the slots.
    ///
    /// - Parameters:
    ///   - catalogue: the known event types.
    ///   - views: the known views; states of others are not compared.
    ///   - compactedThrough: states before this position cannot be rebuilt.
    package init(
        _ directory: String, fileSystem: any FileSystem = POSIXFileSystem(),
        catalogue: EventCatalogue, views: [any Projection.Type],
        compactedThrough: Position = .zero
    ) {
        let slots = CheckpointSlots(directory, fileSystem: fileSystem)
        // What is taken back lies before the record that says so: without this, the states would be
        // compared with a fold that has it.
        self.views = ViewSet(
            views, catalogue,
            passingOver: DiscardedEvents(
                restoredFrom: slots.usable().first { _ in true }?.states ?? []))
        for (slot, content) in slots.contents() {
            let name = LogDirectory.checkpoints + "/" + slot
            switch content {
            case .bad(let reason): add(name, nil, "the checkpoint cannot be used: \(reason)")
            case .checkpoint(let checkpoint):
                for state in checkpoint.states where !state.isOfStore {
                    if !self.views.knows(state) {
                        notes.append(
                            "\(name): the view \(state.name), version \(state.version), is not "
                                + "known here, or was folded under other event types or before "
                                + "something was taken back, and was not compared")
                    } else if state.position < compactedThrough {
                        notes.append(
                            "\(name): the state of \(state.name) at position \(state.position) "
                                + "cannot be compared: the log is compacted through "
                                + "\(compactedThrough)")
                    } else {
                        pending.append(Pending(slot: name, state: state))
                    }
                }
            }
        }
        pending.sort { $0.state.position < $1.state.position }
    }

    /// Takes in the next event.
    package mutating func fold(_ event: Event) {
        guard let next = pending.first else { return }
        if next.state.position < event.position {
            compare(through: Position(event.position.rawValue - 1))
        }
        waiting.append(event)
        waitingBytes += event.lineBytes
        if EventRuns.isFull(events: waiting.count, bytes: waitingBytes) { foldWaiting() }
    }

    private mutating func foldWaiting() {
        views.fold(waiting[...])
        (waiting, waitingBytes) = ([], 0)
    }

    /// Ends the comparison.
    ///
    /// - Parameter last: the last position of the log.
    package mutating func finish(at last: Position) {
        compare(through: last)
        for item in pending {
            add(
                item.slot, item.state.position,
                "the state of \(item.state.name) is of position \(item.state.position), but the log "
                    + "ends at \(last)")
        }
        pending = []
    }

    private mutating func compare(through position: Position) {
        foldWaiting()
        while let item = pending.first, item.state.position <= position {
            pending.removeFirst()
            let rebuilt = try? views.capture().first { $0.name == item.state.name }?.encode()
            if rebuilt == item.state.bytes {
                compared += 1
            } else {
                add(
                    item.slot, item.state.position,
                    "the stored state of \(item.state.name) is not what the log's events come to")
            }
        }
    }

    private mutating func add(_ slot: String, _ position: Position?, _ detail: String) {
        findings.append(
            Finding(
                code: "checkpoint", segment: slot, offset: nil,
                positions: position.map { $0...$0 }, detail: detail))
    }
}
