// The views that need events which no other view needs any more: those that do not say which. Stored
// in checkpoints, so that a program that does not know the views keeps their events, too.
// Spec/format/compaction.md, CMP-30.

import Foundation
import LogFormat
import LogStorage

/// Views that need every event that they take in.
struct ViewNeeds: Codable, Hashable, Sendable {
    /// One view.
    struct Need: Codable, Hashable, Sendable {
        let view: String
        /// The types that it takes in, sorted; nil for all.
        let types: [String]?
    }

    /// By the views' names.
    private(set) var needs: [Need] = []

    /// Nothing is needed.
    init() {}

    /// The needs of those views that do not say which events they no longer need.
    init(of views: [any Projection.Type]) {
        add(
            views.filter { !($0 is any CompactableView.Type) && !$0.allowsCompaction }.map {
                Need(view: $0.name, types: $0.eventTypes?.sorted())
            })
    }

    private mutating func add(_ more: [Need]) {
        needs = Set(needs + more).sorted { EntityID($0.view) < EntityID($1.view) }
    }

    /// These needs and those that stored states tell of views that are not known here. Where none
    /// are stored, a program must assume of such a view that it needs all events.
    func adding(storedIn states: [StoredState], but known: Set<String>) -> ViewNeeds {
        let others =
            ViewNeeds(restoredFrom: states)?.needs
            ?? states.filter { !$0.isOfStore }.map { Need(view: $0.name, types: nil) }
        var result = self
        result.add(others.filter { !known.contains($0.view) })
        return result
    }

    /// The views that need an event of a type, in its newest form. O(views).
    func views(needing type: String) -> [String] {
        needs.filter { $0.types?.contains(type) ?? true }.map(\.view)
    }

    /// The name under which checkpoints hold them.
    static let stateName = "daybook.view-needs"

    /// The state for a checkpoint. Stored also where nothing is needed: that, too, is an answer.
    func stored(at position: Position) throws -> StoredState {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return StoredState(
            name: Self.stateName, version: 1, position: position,
            bytes: Array(try encoder.encode(self)))
    }

    /// The needs among stored states; nil where none are stored, as by a release that did not know
    /// them.
    init?(restoredFrom states: [StoredState]) {
        guard let state = states.first(where: { $0.name == Self.stateName && $0.version == 1 }),
            let needs = try? JSONDecoder().decode(ViewNeeds.self, from: Data(state.bytes))
        else { return nil }
        self = needs
    }
}

extension LogRepair {
    /// The names of a store's states that do not follow from lines, for `keptStates`.
    package static let statesOfStores: Set<String> = [ViewNeeds.stateName]
}

extension EventCatalogue {
    /// Whether views need events that a program could take out which knows this library's types
    /// only.
    func isConcerned(by needs: ViewNeeds) -> Bool {
        guard let reservedTypes else { return false }
        return needs.needs.contains { need in
            need.types.map { !reservedTypes.isDisjoint(with: $0) } ?? true
        }
    }
}
