// The views that need all events of their types, since they do not state which events they no longer need.
// Stored in checkpoints, so that a program that does not know the views keeps their events, too.
// Spec/format/compaction.md, CMP-30.

import Foundation
import LogFormat
import LogStorage

/// The views that need every event of their types.
struct ViewNeeds: Codable, Hashable, Sendable {
    /// The need of one view.
    struct Need: Codable, Hashable, Sendable {
        let view: String
        /// The types that it folds, sorted; nil for all.
        let types: [String]?
    }

    /// The needs, sorted by the views' names.
    private(set) var needs: [Need] = []

    /// Creates empty needs.
    init() {}

    /// The needs of the views that do not state which events they no longer need.
    init(of views: [any Projection.Type]) {
        merge(
            views.filter { !($0 is any CompactableView.Type) && !$0.allowsCompaction }.map {
                Need(view: $0.name, types: $0.eventTypes?.sorted())
            })
    }

    private mutating func merge(_ more: [Need]) {
        needs = Set(needs + more).sorted { EntityID($0.view) < EntityID($1.view) }
    }

    /// These needs and the stored needs of unknown views. If the states contain no needs, an unknown view is
    /// assumed to need all events.
    func merging(storedIn states: [StoredState], except known: Set<String>) -> ViewNeeds {
        let storedNeeds =
            ViewNeeds(restoredFrom: states)?.needs
            ?? states.filter { !$0.isOfStore }.map { Need(view: $0.name, types: nil) }
        var result = self
        result.merge(storedNeeds.filter { !known.contains($0.view) })
        return result
    }

    /// These needs and the stored ones of rows in databases, which are stated again only after the store is open.
    func mergingRows(storedIn states: [StoredState]) -> ViewNeeds {
        var result = self
        result.merge(
            (ViewNeeds(restoredFrom: states)?.needs ?? []).filter {
                $0.view.hasPrefix(Self.rowsPrefix)
            })
        return result
    }

    /// These needs with those of the rows in one database, in place of the earlier ones.
    ///
    /// - Parameter types: the types of which the rows of each projection need all events.
    func settingRows(in database: String, _ types: [String: Set<String>]) -> ViewNeeds {
        let prefix = Self.rowsPrefix + database + "/"
        var result = self
        result.needs.removeAll { $0.view.hasPrefix(prefix) }
        result.merge(types.map { Need(view: prefix + $0.key, types: $0.value.sorted()) })
        return result
    }

    /// Begins the name of a need that rows in a database have.
    private static let rowsPrefix = "rows/"

    /// The views that need an event of a type, in its newest form. O(views).
    func views(needing type: String) -> [String] {
        needs.filter { $0.types?.contains(type) ?? true }.map(\.view)
    }

    /// The name of their state in checkpoints.
    static let stateName = StoredState.viewNeedsName

    /// The state for a checkpoint. Empty needs are stored too: they differ from missing ones.
    func stored(at position: Position) throws -> StoredState {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return StoredState(
            name: Self.stateName, version: 1, position: position,
            bytes: Array(try encoder.encode(self)))
    }

    /// The needs among stored states; nil if there are none.
    init?(restoredFrom states: [StoredState]) {
        guard let state = states.first(where: { $0.name == Self.stateName && $0.version == 1 }),
            let needs = try? JSONDecoder().decode(ViewNeeds.self, from: Data(state.bytes))
        else { return nil }
        self = needs
    }
}

extension LogRepair {
    /// The names of a store's states that cannot be rebuilt from lines, for `keptStates`.
    package static let statesOfStores: Set<String> = [ViewNeeds.stateName]
}

extension EventCatalogue {
    /// True if views need events of the library's own types, which a program that knows only those could
    /// remove.
    func isConcerned(by needs: ViewNeeds) -> Bool {
        guard let reservedTypes else { return false }
        return needs.needs.contains { need in
            need.types.map { !reservedTypes.isDisjoint(with: $0) } ?? true
        }
    }
}
