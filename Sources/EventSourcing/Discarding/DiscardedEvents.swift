// The retracted events of a log. A fold skips them; a stored state that has folded one of them is invalid.
// Spec/protocol/discarding.md.

import LogFormat

/// The positions of retracted events, which count as never recorded.
package struct DiscardedEvents: Hashable, Sendable {
    /// The positions, ascending.
    private(set) var positions: [UInt64] = []

    /// Creates an empty set.
    package init() {}

    /// The retracted positions, ascending.
    package var all: [Position] { positions.map { Position($0) } }

    /// True if the event at a position is retracted. O(log n).
    package func contains(_ position: Position) -> Bool {
        guard !positions.isEmpty else { return false }
        let index = index(of: position.rawValue)
        return index < positions.count && positions[index] == position.rawValue
    }

    /// Inserts positions that are passed over without a record of the log.
    mutating func insert(_ new: [Position]) {
        positions = Set(positions + new.map(\.rawValue)).sorted()
    }

    /// Applies an event of the log. Only this log's well-formed records of retraction and reinstatement have
    /// an effect. A position after the record's own cannot be retracted.
    ///
    /// - Returns: the positions that the event newly retracts or reinstates.
    @discardableResult
    package mutating func apply(_ event: Event) -> [Position] {
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

    /// An event as views get it. A record of retracted events keeps only those that are still retracted:
    /// for views, reinstated events were never retracted.
    ///
    /// - Returns: nil for a retracted event.
    package func counted(_ event: Event, by catalogue: EventCatalogue) -> Event? {
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

    /// The types of the records of retracted and of reinstated events.
    package static let recordTypes: Set<String> = [EventsDiscarded.type, EventsReinstated.type]

    /// True if an event is a record of retracted or reinstated events.
    static func isRecord(_ event: Event) -> Bool { recordTypes.contains(event.type) }

    private func index(of position: UInt64) -> Int {
        positions.partitioningIndex { $0 >= position }
    }

    /// A fingerprint of the retracted events up to a position, which distinguishes states that were folded
    /// without different events. 0 if there are none.
    func fingerprint(through position: Position) -> UInt64 {
        let count = index(of: position.rawValue) + (contains(position) ? 1 : 0)
        guard count > 0 else { return 0 }
        var writer = StateWriter()
        for position in positions[..<count] { writer.write(position) }
        return XXH64.hash(writer.bytes.span.bytes)
    }

    // MARK: In checkpoints

    /// The name of its state in checkpoints.
    static let stateName = "daybook.discarded"

    /// The state for a checkpoint, or nil if the set is empty.
    func stored(at position: Position) -> StoredState? {
        guard !positions.isEmpty else { return nil }
        var writer = StateWriter()
        writer.write(count: positions.count)
        for position in positions { writer.write(position) }
        return StoredState(
            name: Self.stateName, version: 1, position: position, bytes: writer.bytes)
    }

    /// The set among stored states; empty if it is missing or cannot be read.
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
            guard position > positions.last ?? 0 else {
                throw reader.fault("the positions are not in ascending order")
            }
            positions.append(position)
        }
        try reader.finish()
        return positions
    }
}

extension DiscardedEvents: CompactableView {
    package static var name: String { stateName }
    package static var version: Int { 1 }

    package mutating func fold(_ event: Event) { apply(event) }

    /// Keeps retracted events: they can be reinstated, and then their lines are needed.
    package func retention(of event: Event) -> Retention {
        contains(event.position) ? .needed(.deletion) : .unconcerned
    }
}

extension StoredState {
    /// True if it is a state of the store itself, not of a view.
    package var isOfStore: Bool {
        [TimeFloor.stateName, DiscardedEvents.stateName, ViewNeeds.stateName].contains(name)
    }
}
