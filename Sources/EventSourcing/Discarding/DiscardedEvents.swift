// Which events of a log were taken back. Whoever folds a log passes over them; a stored state that
// has folded one is of no use any more. Spec/protocol/discarding.md.

import LogFormat

/// The positions of events that count as never recorded.
package struct DiscardedEvents: Hashable, Sendable {
    /// Ascending.
    private(set) var positions: [UInt64] = []

    /// Nothing was taken back.
    package init() {}

    /// Whether an event was taken back. O(log n).
    package func contains(_ position: Position) -> Bool {
        guard !positions.isEmpty else { return false }
        let index = index(of: position.rawValue)
        return index < positions.count && positions[index] == position.rawValue
    }

    /// Takes in an event of the log. Records of other logs, and malformed ones, say nothing; so does
    /// what a record says of positions behind its own.
    ///
    /// - Returns: the positions that it takes back, or counts again, and did not before.
    @discardableResult
    package mutating func add(_ event: Event) -> [Position] {
        guard Self.isRecord(event), event.isOwn, let json = event.content.json else { return [] }
        var changed: [Position] = []
        if let record = try? EventsDiscarded(json: json), event.type == EventsDiscarded.type,
            record.by == event.source
        {
            for target in record.events
            where target.position < event.position && !contains(target.position) {
                let position = target.position.rawValue
                positions.insert(position, at: index(of: position))
                changed.append(target.position)
            }
        } else if let record = try? EventsReinstated(json: json),
            event.type != EventsDiscarded.type,
            record.by == event.source
        {
            for target in record.events where contains(target.position) {
                positions.remove(at: index(of: target.position.rawValue))
                changed.append(target.position)
            }
        }
        return changed
    }

    /// An event as views get it. A record that takes back events names only those that still count
    /// as taken back: for views the others always counted.
    ///
    /// - Returns: nil for an event that was taken back.
    func counted(_ event: Event, by catalogue: EventCatalogue) -> Event? {
        guard !contains(event.position) else { return nil }
        guard event.type == EventsDiscarded.type, event.isOwn,
            var record = try? EventsDiscarded(json: event.content.json ?? []),
            record.by == event.source, !record.events.allSatisfy({ contains($0.position) })
        else { return event }
        record.events.removeAll { !contains($0.position) }
        var content = event.content
        content.data = .json(record.json())
        return event.with(content, by: catalogue)
    }

    /// Whether an event says anything of this.
    static func isRecord(_ event: Event) -> Bool {
        event.type == EventsDiscarded.type || event.type == EventsReinstated.type
    }

    private func index(of position: UInt64) -> Int {
        positions.partitioningIndex { $0 >= position }
    }

    /// Tells apart states at a position that were folded without different events. 0 while nothing up
    /// to there was taken back.
    func fingerprint(through position: Position) -> UInt64 {
        let count = index(of: position.rawValue) + (contains(position) ? 1 : 0)
        guard count > 0 else { return 0 }
        var writer = StateWriter()
        for position in positions[..<count] { writer.add(position) }
        return XXH64.hash(writer.bytes.span.bytes)
    }

    // MARK: In checkpoints

    /// The name under which checkpoints hold it.
    static let stateName = "daybook.discarded"

    /// The set as a checkpoint holds it, or nil if it is empty.
    func stored(at position: Position) -> StoredState? {
        guard !positions.isEmpty else { return nil }
        var writer = StateWriter()
        writer.add(count: positions.count)
        for position in positions { writer.add(position) }
        return StoredState(
            name: Self.stateName, version: 1, position: position, bytes: writer.bytes)
    }

    /// The set among stored states; empty if it is not there or cannot be read.
    init(restoredFrom states: [StoredState]) {
        guard let state = states.first(where: { $0.name == Self.stateName && $0.version == 1 }),
            let positions = try? Self.positions(state.bytes)
        else { return }
        self.positions = positions
    }

    private static func positions(_ bytes: [UInt8]) throws -> [UInt64] {
        var reader = StateReader(bytes)
        var positions: [UInt64] = []
        for _ in 0..<(try reader.count()) {
            let position = try reader.integer()
            guard position > positions.last ?? 0 else { throw reader.fault("not in order") }
            positions.append(position)
        }
        try reader.finish()
        return positions
    }
}

extension DiscardedEvents: CompactableView {
    package static var name: String { stateName }
    package static var version: Int { 1 }

    package mutating func fold(_ event: Event) { add(event) }

    /// What was taken back can come to count again, and its line is needed then.
    package func retention(of event: Event) -> Retention {
        contains(event.position) ? .needed(.deletion) : .unconcerned
    }
}

extension StoredState {
    /// Whether it is the store's own and not a view's.
    var isOfStore: Bool {
        [TimeFloor.stateName, DiscardedEvents.stateName, ViewNeeds.stateName].contains(name)
    }
}
