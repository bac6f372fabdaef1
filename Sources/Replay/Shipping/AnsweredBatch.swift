// Matches the verdicts of an answer with the events of the batch. RPL-3 and V5 of Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

/// A batch and the verdicts about it.
struct AnsweredBatch {
    let items: [ReplayItem]
    let verdicts: [Verdict]
    /// The index of each event's verdict; nil if the verdicts are in the order of the events.
    private var places: [UUID: Int]?

    init(_ items: [ReplayItem], _ verdicts: [Verdict]) {
        self.items = items
        self.verdicts = verdicts
        // The usual case, without a dictionary.
        let isInOrder =
            verdicts.count == items.count
            && items.indices.allSatisfy { verdicts[$0].id == items[$0].id }
        guard !isInOrder else { return }
        var places: [UUID: Int] = [:]
        for (place, verdict) in verdicts.enumerated() { places[verdict.id] = place }
        self.places = places
    }

    /// Calls `body` with each event that its verdict changes, and the verdict's index: copying most verdicts
    /// would be in vain. After the first event of a lane that is not settled, the lane is stopped.
    func forEach(_ body: (ReplayItem, Int) -> Void) {
        var stopped: Set<EntityID> = []
        for (index, item) in items.enumerated() {
            guard stopped.isEmpty || !stopped.contains(item.laneID),
                let place = places == nil ? index : places?[item.id]
            else {
                // V5, and any verdict after the lane was stopped.
                stopped.insert(item.laneID)
                continue
            }
            switch verdicts[place].status {
            case .applied, .duplicate: body(item, place)
            case .rejected, .conflict, .retry:
                stopped.insert(item.laneID)
                body(item, place)
            case .unprocessed: stopped.insert(item.laneID)  // V5
            }
        }
    }
}

extension SyncSettled.Entry {
    /// V3.
    init(conflict verdict: Verdict, _ item: ReplayItem) {
        self.init(
            position: item.position.rawValue, id: item.id, outcome: .conflict,
            retryCount: item.retryCount, code: verdict.code, detail: verdict.detail,
            current: verdict.currentID)
    }
}
