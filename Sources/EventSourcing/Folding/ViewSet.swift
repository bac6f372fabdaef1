// The published states of all views of a store. Only the store folds; any thread may read a snapshot.

import LogFormat
import Synchronization

/// A view and its state.
private protocol AnyViewBox: AnyObject, Sendable {
    var name: String { get }
    var version: UInt32 { get }
    var types: UInt64 { get }
    var through: Position { get }
    var isStored: Bool { get }
    var foldsAll: Bool { get }
    func folds(_ type: String) -> Bool
    func fold(_ batch: FoldedBatch, bit: UInt64)
    func restore(_ state: StoredState, discards: UInt64) -> Bool
    func adopt(_ other: any AnyViewBox)
    func capture(_ discarded: DiscardedEvents) -> ViewCapture
    var projection: any Projection { get }
    func floor(ofLane lane: String) -> LWWTimestamp?
}

/// Events in their newest form, with the views that fold each of them.
private struct FoldedBatch: Sendable {
    var events: ArraySlice<Event> = []
    /// For each event, a bit for each view that folds it.
    var concerns: [UInt64] = []
}

/// The last position that all views of a set have folded. It advances without locking the views that do not
/// fold an event.
private final class FoldProgress: Sendable {
    private let position = Atomic<UInt64>(0)

    /// The last position that every view has folded or skipped.
    var through: Position { Position(position.load(ordering: .acquiring)) }

    /// Publishes that all views have folded through a position.
    func advance(to through: Position) {
        position.store(through.rawValue, ordering: .releasing)
    }
}

/// The captured state of one view, to be encoded later.
struct ViewCapture: Sendable {
    let name: String
    let version: UInt32
    /// The fingerprint of the event types under which it was folded, and of the retracted events.
    let types: UInt64
    /// The last position folded.
    let position: Position
    let encode: @Sendable () throws -> [UInt8]?
}

private final class ViewBox<View: Projection>: AnyViewBox {
    struct Present {
        var view = View()
        /// The last position folded.
        var through = Position.zero
        /// A number that grows whenever the state may have changed.
        var revision: UInt64 = 0
    }

    /// The state. Its `through` may be lower than `progress`: the view does not fold the events in between.
    private let state = Mutex(Present())
    private let progress: FoldProgress
    let types: UInt64

    init(_ catalogue: EventCatalogue, _ progress: FoldProgress) {
        self.progress = progress
        types = catalogue.fingerprint(includingRules: View.dependsOnRules)
    }

    var name: String { View.name }
    var version: UInt32 { UInt32(clamping: View.version) }
    var present: Present {
        // Read before the state, so that the state includes all events up to it.
        let through = progress.through
        var present = state.withLock { $0 }
        present.through = max(present.through, through)
        return present
    }
    var projection: any Projection { present.view }
    func floor(ofLane lane: String) -> LWWTimestamp? {
        (projection as? any LaneFloorView)?.floor(ofLane: lane)
    }
    var isStored: Bool { (try? View().encodedState()) != nil }
    var through: Position { max(progress.through, state.withLock { $0.through }) }
    var revision: UInt64 { state.withLock { $0.revision } }

    var foldsAll: Bool { View.eventTypes == nil }
    func folds(_ type: String) -> Bool { View.folds(type) }

    func fold(_ batch: FoldedBatch, bit: UInt64) {
        state.withLock { Self.fold(batch, bit, into: &$0.view, &$0.through, &$0.revision) }
    }

    /// Folds events into the parts of a state. For a state that is passed as one value, the generic type is looked up
    /// for each event, which took a fiftieth of a bulk append.
    private static func fold(
        _ batch: FoldedBatch, _ bit: UInt64, into view: inout View, _ through: inout Position,
        _ revision: inout UInt64
    ) {
        // States restored from a checkpoint may be at different positions.
        let start = batch.events.startIndex
        for (index, concerns) in batch.concerns.enumerated() where concerns & bit != 0 {
            let event = batch.events[start + index]
            guard event.position > through else { continue }
            view.fold(event)
            through = event.position
            revision += 1
        }
    }

    func restore(_ stored: StoredState, discards: UInt64) -> Bool {
        guard stored.name == name, stored.version == version, stored.types == types ^ discards,
            let view = try? View(encodedState: stored.bytes)
        else { return false }
        state.withLock { state in
            state = Present(
                view: view, through: stored.position, revision: state.revision + 1)
        }
        return true
    }

    func adopt(_ other: any AnyViewBox) {
        guard let other = other as? ViewBox<View> else { return }
        let present = other.present
        state.withLock { state in
            state = Present(
                view: present.view, through: present.through, revision: state.revision + 1)
        }
    }

    func capture(_ discarded: DiscardedEvents) -> ViewCapture {
        let present = present
        return ViewCapture(
            name: name, version: version,
            types: types ^ discarded.fingerprint(through: present.through),
            position: present.through
        ) {
            try present.view.encodedState()
        }
    }
}

/// The views of one store.
struct ViewSet: Sendable {
    private let boxes: [ObjectIdentifier: any AnyViewBox]
    /// The boxes of the views that know a lane's newest event.
    private let laneFloors: [any AnyViewBox]
    /// A bit for each box. With more than 64 views, some share a bit.
    private let bits: [(box: any AnyViewBox, bit: UInt64)]
    /// The bits of the views that fold events of a type; for other types, `bitsOfAllTypes`.
    private let concerns: [String: UInt64]
    /// The same for the catalogue's types, by number.
    private let concernsOfKnown: [UInt64]
    private let bitsOfAllTypes: UInt64
    private let progress = FoldProgress()
    private let views: [any Projection.Type]
    private let catalogue: EventCatalogue
    /// The number of events that could not be converted to their newest form, by type.
    let upcastFailures = UpcastFailures()
    /// The events that a view could not decode.
    let unreadable = UnreadableEvents()
    private let discarding = Discarding()
    /// True if the finally retracted events were given at creation: then records that are folded do not
    /// change them.
    private let hasFinalRetractions: Bool

    /// The retracted events, which folds skip.
    private final class Discarding: Sendable {
        struct State {
            var events = DiscardedEvents()
            /// True if some view has folded an event that was retracted later.
            var isStale = false
        }
        let state = Mutex(State())
    }

    /// - Parameter discarded: the finally retracted events, if known; if nil, they are determined by the
    ///   records that are folded.
    init(
        _ views: [any Projection.Type], _ catalogue: EventCatalogue,
        passingOver discarded: DiscardedEvents? = nil
    ) {
        var boxes: [ObjectIdentifier: any AnyViewBox] = [:]
        for view in views { boxes[ObjectIdentifier(view)] = Self.box(view, catalogue, progress) }
        self.boxes = boxes
        laneFloors = views.filter { $0 is any LaneFloorView.Type }.compactMap {
            boxes[ObjectIdentifier($0)]
        }
        let bits = boxes.values.enumerated().map { ($1, UInt64(1) << UInt64($0 % 64)) }
        let types = Set(views.flatMap { $0.eventTypes ?? [] })
        func bitsOfViews(_ isIncluded: (any AnyViewBox) -> Bool) -> UInt64 {
            bits.reduce(0) { isIncluded($1.0) ? $0 | $1.1 : $0 }
        }
        self.bits = bits
        concerns = Dictionary(
            uniqueKeysWithValues: types.map { type in (type, bitsOfViews { $0.folds(type) }) })
        concernsOfKnown = catalogue.known.names.map { type in bitsOfViews { $0.folds(type) } }
        bitsOfAllTypes = bitsOfViews { $0.foldsAll }
        self.views = views
        self.catalogue = catalogue
        hasFinalRetractions = discarded != nil
        if let discarded { self.discarded = discarded }
    }

    /// The most bytes of a view's name, which checkpoints store.
    private static let nameBytesMax = 256

    /// Checks that the views can be distinguished and stored.
    ///
    /// - Throws: `EventError` (`refused`), naming the view.
    static func check(_ views: [any Projection.Type]) throws(EventError) {
        var known: [EntityID: any Projection.Type] = [:]
        for view in views {
            let name = view.name
            guard !name.isEmpty, name.utf8.count <= nameBytesMax else {
                throw EventError(
                    .refused,
                    "the view \(view) has a name of \(name.utf8.count) bytes. Use a name of 1 to "
                        + "\(nameBytesMax) bytes")
            }
            guard !name.hasLibraryPrefix else {
                throw EventError(
                    .refused,
                    "the view \(view) has the name \(name), and the prefix daybook. belongs to the "
                        + "library. Use another name")
            }
            guard UInt32(exactly: view.version) != nil else {
                throw EventError(
                    .refused,
                    "the view \(name) (\(view)) has the version \(view.version). Use a version from 0 "
                        + "to \(UInt32.max)")
            }
            if let other = known[EntityID(name)], other != view {
                throw EventError(
                    .refused,
                    "two views have the name \(name): \(other) and \(view). Give one of them another "
                        + "name, or leave it out")
            }
            known[EntityID(name)] = view
        }
    }

    /// The same views before the first event. They skip the currently retracted events.
    func fresh() -> ViewSet { ViewSet(views, catalogue, passingOver: discarded) }

    /// The same views in their present states, which no later event changes.
    func frozen() -> ViewSet {
        let frozen = fresh()
        for (view, box) in boxes { frozen.boxes[view]?.adopt(box) }
        return frozen
    }

    /// The types of the views.
    var types: [any Projection.Type] { views }

    /// The retracted events.
    var discarded: DiscardedEvents {
        get { discarding.state.withLock { $0.events } }
        nonmutating set { discarding.state.withLock { $0.events = newValue } }
    }

    /// True if some view has folded an event that was retracted later: the views must be rebuilt.
    var isStale: Bool { discarding.state.withLock { $0.isStale } }

    /// Folds all views again, without retracted events. Readers see the old or the new states, never partial
    /// ones.
    ///
    /// - Parameters:
    ///   - states: stored states; those without a retracted event are restored first.
    ///   - runs: returns the events from a position on.
    /// - Throws: what reading the events throws; then the views do not change.
    func rebuild(
        from states: [StoredState], _ runs: (_ first: Position) -> EventRuns
    ) throws {
        let fresh = fresh()
        fresh.restore(states)
        try runs(fresh.next).forEach { fresh.fold($0[...]) }
        for (view, box) in boxes {
            if let other = fresh.boxes[view] { box.adopt(other) }
        }
        discarding.state.withLock { $0.isStale = false }
    }

    private static func box<View: Projection>(
        _ view: View.Type, _ catalogue: EventCatalogue, _ progress: FoldProgress
    ) -> any AnyViewBox {
        ViewBox<View>(catalogue, progress)
    }

    /// The views that need every event of their types.
    var needs: ViewNeeds { ViewNeeds(of: views) }

    /// The names of the views.
    var names: Set<String> { Set(boxes.values.map(\.name)) }

    /// True if a stored state belongs to one of the views and was folded under the same types and
    /// retractions.
    func canRestore(_ state: StoredState) -> Bool {
        boxes.values.contains {
            $0.name == state.name && $0.version == state.version
                && $0.types ^ discarded.fingerprint(through: state.position) == state.types
        }
    }

    /// The first position that some view has not folded.
    var next: Position { boxes.values.map(\.through).min()?.next ?? Position(1) }

    /// Restores each view from the first matching stored state: same name, version and fingerprint, and
    /// decodable. A view without one is unchanged.
    func restore(_ states: [StoredState]) {
        let discarded = discarded
        // In parallel: decoding a large state takes long.
        _ = Array(boxes.values).parallelShares(of: 1) { boxes in
            for box in boxes {
                _ = states.first {
                    box.restore($0, discards: discarded.fingerprint(through: $0.position))
                }
            }
        }
    }

    /// Folds an event, as `fold(_:)` for several.
    func fold(_ event: Event) { fold([event]) }

    /// How long folding some events took.
    struct FoldTime {
        var total = Duration.zero
        /// The name of the view that took longest.
        var slowest = ""
        /// The time of that view.
        var longest = Duration.zero
    }

    /// Folds events in their newest form into the views of their types, unless a view has folded them
    /// already. A reader of a view sees all of them or none.
    ///
    /// - Returns: how long the views took.
    @discardableResult
    func fold(_ events: ArraySlice<Event>) -> FoldTime {
        var time = FoldTime()
        guard let last = events.last?.position else { return time }
        let (discarded, areRecordsAmong) = applyRetractions(in: events)
        func isPassedOver(_ event: Event) -> Bool { discarded.contains(event.position) }
        var batch = FoldedBatch(events: events)
        if areRecordsAmong {
            batch.events = events.map { discarded.counted($0, by: catalogue) ?? $0 }[...]
        }
        if catalogue.hasUpcasters {
            batch.events = batch.events.map { isPassedOver($0) ? $0 : upcast($0) }[...]
        }
        batch.concerns = batch.events.map { isPassedOver($0) ? 0 : viewsConcerned(by: $0) }
        let concerned = batch.concerns.reduce(0, |)
        UnreadableEvents.$current.withValue(unreadable) {
            var start = ContinuousClock.now
            for (box, bit) in bits where bit & concerned != 0 {
                box.fold(batch, bit: bit)
                let end = ContinuousClock.now
                if end - start > time.longest {
                    (time.longest, time.slowest) = (end - start, box.name)
                }
                time.total += end - start
                start = end
            }
        }
        progress.advance(to: last)
        return time
    }

    private func viewsConcerned(by event: Event) -> UInt64 {
        let type = event.catalogued
        return catalogue.known.contains(type)
            ? concernsOfKnown[type.number] : concerns[event.type] ?? bitsOfAllTypes
    }

    /// Applies the records of retracted and reinstated events among `events`.
    ///
    /// - Returns: all retracted events, and true if there are such records.
    private func applyRetractions(in events: ArraySlice<Event>) -> (
        DiscardedEvents, areRecordsAmong: Bool
    ) {
        discarding.state.withLock { state in
            var areRecordsAmong = false
            for event in events where DiscardedEvents.isRecord(event) {
                areRecordsAmong = true
                guard !hasFinalRetractions else { break }
                let folded = boxes.values.map(\.through).max() ?? .zero
                let new = state.events.apply(event)
                if new.contains(where: { $0 <= folded }) { state.isStale = true }
            }
            return (state.events, areRecordsAmong)
        }
    }

    /// An event in its newest form, or unchanged if it cannot be converted.
    private func upcast(_ event: Event) -> Event {
        do {
            return try catalogue.upcast(event)
        } catch {
            upcastFailures.countFailure(of: event.type)
            return event
        }
    }

    /// The current states of all views, sorted by name.
    func capture() -> [ViewCapture] {
        let discarded = discarded
        return boxes.values.map { $0.capture(discarded) }.sorted { $0.name < $1.name }
    }

    /// The last position that each view has folded.
    var throughs: [String: Position] {
        Dictionary(boxes.values.map { ($0.name, $0.through) }, uniquingKeysWith: min)
    }

    /// The names of the views that are not stored: they are folded from the first event at every opening.
    var unstored: [String] { boxes.values.filter { !$0.isStored }.map(\.name).sorted() }

    /// The current states of all views.
    var projections: [any Projection] {
        // With the set of retracted events, which compaction must keep: the server may have them.
        boxes.values.map(\.projection) + (discarded == DiscardedEvents() ? [] : [discarded])
    }

    /// The newest LWW timestamp in a lane, of the views that know it.
    func floor(ofLane lane: String) -> LWWTimestamp? {
        laneFloors.lazy.compactMap { $0.floor(ofLane: lane) }.max()
    }

    /// True if the set has a view.
    func contains<View: Projection>(_ view: View.Type) -> Bool {
        boxes[ObjectIdentifier(view)] != nil
    }

    func snapshot<View: Projection>(_ view: View.Type) -> View { present(view).view }

    /// The current state of a view, with its revision.
    func present<View: Projection>(_ view: View.Type) -> (view: View, revision: UInt64) {
        let present = box(view).present
        return (present.view, present.revision)
    }

    /// A number that grows whenever a view's state may have changed. An event that the view does not fold
    /// leaves it unchanged. O(1).
    func revision<View: Projection>(of view: View.Type) -> UInt64 { box(view).revision }

    private func box<View: Projection>(_ view: View.Type) -> ViewBox<View> {
        guard let box = boxes[ObjectIdentifier(view)] as? ViewBox<View> else {
            // Not a precondition: release builds omit its message.
            fatalError(
                "the view \(View.self) (\"\(View.name)\") was not passed to open; add \(View.self).self to "
                    + "its views")
        }
        return box
    }
}
