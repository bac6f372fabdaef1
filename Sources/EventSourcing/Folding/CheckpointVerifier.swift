// Compares the stored states of a log with states rebuilt from its events, while a verification reads them.
// Spec/format/checkpoint.md, CHK-6.

import LogFormat
import LogStorage

/// A check of a log's checkpoints against rebuilt states.
package struct CheckpointVerifier {
    private struct Pending {
        let slot: String
        let state: StoredState
    }

    private let views: ViewSet
    /// The states not yet compared, by ascending position.
    private var pending: [Pending] = []
    /// The events not yet folded: folding many at once is faster.
    private var unfolded: [Event] = []
    private var unfoldedBytes = 0
    /// The errors found.
    package private(set) var findings: [Finding] = []
    /// The number of states that were compared and are correct.
    package private(set) var compared = 0
    /// The states that could not be compared, with the reasons.
    package private(set) var notes: [String] = []

    /// Reads the checkpoint slots.
    ///
    /// - Parameters:
    ///   - catalogue: the known event types.
    ///   - views: the known views; states of others are not compared.
    ///   - compactedThrough: the position before which states cannot be rebuilt.
    package init(
        _ directory: String, fileSystem: any FileSystem = POSIXFileSystem(),
        catalogue: EventCatalogue, views: [any Projection.Type],
        compactedThrough: Position = .zero
    ) {
        let slots = CheckpointSlots(directory, fileSystem: fileSystem)
        // A retracted event is before the record of its retraction: without the stored set, the states
        // would be compared with a fold that includes the event.
        self.views = ViewSet(
            views, catalogue,
            passingOver: DiscardedEvents(
                restoredFrom: slots.usable().first { _ in true }?.states ?? []))
        for (slot, content) in slots.contents() {
            let name = LogDirectory.checkpoints + "/" + slot
            switch content {
            case .bad(let reason): addFinding(name, nil, "the checkpoint cannot be used: \(reason)")
            case .checkpoint(let checkpoint):
                for state in checkpoint.states where !state.isOfStore {
                    if !self.views.canRestore(state) {
                        notes.append(
                            "\(name): the view \(state.name), version \(state.version), was not "
                                + "compared: it is unknown, or was folded under other event types or "
                                + "before an event was retracted")
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

    /// Folds the next event, and compares the states before it.
    package mutating func fold(_ event: Event) {
        guard let next = pending.first else { return }
        if next.state.position < event.position {
            compare(through: Position(event.position.rawValue - 1))
        }
        unfolded.append(event)
        unfoldedBytes += event.lineBytes
        if EventRuns.isFull(events: unfolded.count, bytes: unfoldedBytes) { foldUnfolded() }
    }

    private mutating func foldUnfolded() {
        views.fold(unfolded[...])
        (unfolded, unfoldedBytes) = ([], 0)
    }

    /// Ends the comparison.
    ///
    /// - Parameters:
    ///   - last: the last position of the log.
    ///   - missing: the positions that a copied folder lacks.
    package mutating func finish(
        at last: Position, lacking missing: ClosedRange<Position>? = nil
    ) {
        compare(through: last)
        for item in pending {
            if let missing, missing.contains(item.state.position) {
                notes.append(
                    "\(item.slot): the state of \(item.state.name) at position "
                        + "\(item.state.position) was not compared: the copy ends at \(last)")
                continue
            }
            addFinding(
                item.slot, item.state.position...item.state.position,
                "the state of \(item.state.name) is at position \(item.state.position), but the log "
                    + "ends at \(last)")
        }
        pending = []
    }

    /// Replaces the findings that only follow from lost events by one for each checkpoint: the fold lacks these
    /// events, so that it cannot be compared with a later state.
    ///
    /// - Parameter damage: the findings in the segments.
    package mutating func foldConsequences(of damage: [Finding]) {
        var own: [Finding] = []
        var consequences: [String: (cause: String, positions: ClosedRange<Position>, states: Int)] =
            [:]
        for finding in findings {
            guard let position = finding.positions?.upperBound,
                let cause = damage.first(where: { $0.affectsState(at: position) })?.segment
            else {
                own.append(finding)
                continue
            }
            let known = consequences[finding.segment]
            let positions = known?.positions ?? position...position
            consequences[finding.segment] = (
                known?.cause ?? cause,
                min(positions.lowerBound, position)...max(positions.upperBound, position),
                (known?.states ?? 0) + 1
            )
        }
        findings = own
        for (slot, found) in consequences.sorted(by: { $0.key < $1.key }) {
            addFinding(
                slot, found.positions,
                "\(found.states.counted("stored state")) cannot be compared: events before "
                    + (found.states == 1 ? "it" : "them") + " cannot be read")
            findings[findings.count - 1].cause = found.cause
        }
    }

    private mutating func compare(through position: Position) {
        foldUnfolded()
        while let item = pending.first, item.state.position <= position {
            pending.removeFirst()
            let rebuilt = try? views.capture().first { $0.name == item.state.name }?.encode()
            if rebuilt == item.state.bytes {
                compared += 1
            } else {
                addFinding(
                    item.slot, item.state.position...item.state.position,
                    "the stored state of \(item.state.name) differs from the fold of the log's events"
                )
            }
        }
    }

    private mutating func addFinding(
        _ slot: String, _ positions: ClosedRange<Position>?, _ detail: String
    ) {
        findings.append(
            Finding(
                code: "checkpoint", segment: slot, offset: nil, positions: positions,
                detail: detail))
    }
}

extension Finding {
    /// True if a fold of the lines that are left cannot have the state at a position.
    fileprivate func affectsState(at position: Position) -> Bool {
        losesCompactedThrough || lost.contains { $0.lowerBound <= position }
    }
}
