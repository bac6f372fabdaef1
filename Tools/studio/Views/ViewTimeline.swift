// The state of a view at any position: folded from the nearest earlier state that is known.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization

/// The states of a log's views through time.
final class ViewTimeline: Sendable {
    private let log: FollowedLog
    private let cache = Mutex(Cache())

    /// The names of the built-in views.
    static let names = OfflineModel.views.map { $0.name }

    private struct Cache {
        var version = -1
        /// The states used last, newest last.
        var states: [Known] = []
        var lists = Recent<ViewRows>()
        var rows = Recent<[ViewRow]>()
    }

    private struct Known {
        var view: Int
        var position: Position
        var state: any ListableView
    }

    /// The values of some positions that were asked for last.
    private struct Recent<Value> {
        private var values: [(view: Int, position: Position, value: Value)] = []
        private static var countMax: Int { 8 }

        subscript(view: Int, position: Position) -> Value? {
            get { values.first { $0.view == view && $0.position == position }?.value }
            set {
                values.removeAll { $0.view == view && $0.position == position }
                if let newValue { values.append((view, position, newValue)) }
                if values.count > Self.countMax { values.removeFirst() }
            }
        }
    }

    private static let cachedStatesMax = 64

    init(_ log: FollowedLog) { self.log = log }

    /// The number of a view in `names`.
    static func number(of name: String) throws(APIError) -> Int {
        guard let number = names.firstIndex(of: name) else {
            throw .notFound("there is no view \"\(name)\"")
        }
        return number
    }

    /// The rows of a view after the event at a position, sorted by key.
    ///
    /// - Throws: as `page`.
    /// - Complexity: that of `page`, and O(rows).
    func rows(of view: Int, at position: Position) throws -> [ViewRow] {
        let (state, version) = try state(of: view, at: position)
        if let known = cached(version, { $0.rows[view, position] }) { return known }
        let rows = try inserting(valuesOf: Array(list(state, view, position, version)))
        cache.withLock { if $0.version == version { $0.rows[view, position] = rows } }
        return rows
    }

    /// A part of the rows of a view after the event at a position, sorted by key, and the number of all.
    ///
    /// - Throws: `APIError` `compacted` if the state can no longer be rebuilt; `LogError`.
    /// - Complexity: O(events since the nearest known state + n log n + limit), n keys. There are at most 64
    ///   stored states, so the first is at most 1/32 of the log.
    func page(
        of view: Int, at position: Position, offset: Int, limit: Int
    ) throws -> (total: Int, rows: [ViewRow]) {
        let list = try list(of: view, at: position)
        return (
            list.count, try inserting(valuesOf: Array(list.dropFirst(offset).prefix(limit)))
        )
    }

    /// The rows of a view after the event at a position, without the values that are stored in events.
    ///
    /// - Throws: as `page`.
    func list(of view: Int, at position: Position) throws -> ViewRows {
        let (state, version) = try state(of: view, at: position)
        return list(state, view, position, version)
    }

    private func list(
        _ state: any ListableView, _ view: Int, _ position: Position, _ version: Int
    ) -> ViewRows {
        if let known = cached(version, { $0.lists[view, position] }) { return known }
        let list = state.rows()
        cache.withLock { if $0.version == version { $0.lists[view, position] = list } }
        return list
    }

    /// A value of the cache, unless it is of another version of the statuses: a retraction changes the past.
    private func cached<Value: Sendable>(_ version: Int, _ value: (Cache) -> Value?) -> Value? {
        cache.withLock { $0.version == version ? value($0) : nil }
    }

    private func state(
        of view: Int, at position: Position
    ) throws -> (state: any ListableView, version: Int) {
        let (snapshot, discarded, version, wanted) = try log.withState { state in
            let through = state.compactedThrough
            guard position >= through else { throw APIError.compacted(through) }
            guard position <= state.last || !state.isIndexed else {
                throw APIError.afterEnd(state.last)
            }
            guard state.fold.last >= position else { throw APIError.notReady }
            let snapshot = state.fold.snapshot(before: position)
            let wanted = Array(
                state.fold.changes(of: view, after: snapshot.position, through: position))
            return (snapshot, state.fold.discarded, state.statusVersion, wanted)
        }
        var known = Known(
            view: view, position: snapshot.position, state: snapshot.states[view])
        cache.withLock { cache in
            if cache.version != version { cache = Cache(version: version) }
            for entry in cache.states
            where entry.view == view && entry.position > known.position
                && entry.position <= position
            {
                known = entry
            }
        }
        let missing = wanted.filter { $0 > known.position.rawValue }
        try LineReading.forEachLine(at: missing, in: log.folder) { _, line in
            let event = try LogReader.event(
                line, OfflineModel.catalogue, directory: log.directory)
            guard let counted = discarded.counted(event, by: OfflineModel.catalogue) else { return }
            known.state.fold(OfflineModel.catalogue.newestForm(of: counted))
        }
        known.position = position
        cache.withLock { cache in
            guard cache.version == version else { return }
            cache.states.append(known)
            if cache.states.count > Self.cachedStatesMax { cache.states.removeFirst() }
        }
        return (known.state, version)
    }

    /// Inserts the values that are stored in events.
    func inserting(valuesOf rows: [ViewRow]) throws -> [ViewRow] {
        let ids = Set(rows.flatMap { $0.fields.compactMap(\.source?.event) })
        guard !ids.isEmpty else { return rows }
        let positions = log.withState { state in
            ids.compactMap { id in state.index.ordinal(of: id).map { state.index.positions[$0] } }
        }
        var data: [UUID: [UInt8]] = [:]
        try LineReading.forEachLine(at: positions.sorted(), in: log.folder) { _, line in
            let event = try LogReader.event(
                line, OfflineModel.catalogue, directory: log.directory)
            data[event.id] = OfflineModel.catalogue.newestForm(of: event).content.json
        }
        return rows.map { $0.filled { data[$0] } }
    }
}
