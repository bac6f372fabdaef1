// The published states of all views of a store. Folding happens in one place, the store; reading
// happens anywhere and takes a snapshot.

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
}

/// Events in their newest form, with the views that each concerns.
private struct FoldedBatch: Sendable {
    var events: ArraySlice<Event> = []
    /// For each event a bit for each view that takes it in.
    var concerns: [UInt64] = []
}

/// How far all views of a set have folded. A view that an event does not concern is not touched.
private final class FoldProgress: Sendable {
    private let position = Atomic<UInt64>(0)

    /// The last position that every view has folded, or passed over.
    var through: Position { Position(position.load(ordering: .acquiring)) }

    /// All views have come to a position.
    func advance(to through: Position) {
        position.store(through.rawValue, ordering: .releasing)
    }
}

/// The state of one view at a moment, to be encoded at leisure.
struct ViewCapture: Sendable {
    let name: String
    let version: UInt32
    /// Fingerprint of the event types under which it was folded, and of the events without which.
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
        /// Greater whenever the state may have become another.
        var revision: UInt64 = 0
    }

    /// `through` may be behind: what came after did not concern the view.
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
        // Asked first: whatever all views have folded by now is in the state.
        let through = progress.through
        var present = state.withLock { $0 }
        present.through = max(present.through, through)
        return present
    }
    var projection: any Projection { present.view }
    var isStored: Bool { (try? View().encodedState()) != nil }
    var through: Position { max(progress.through, state.withLock { $0.through }) }
    var revision: UInt64 { state.withLock { $0.revision } }

    var foldsAll: Bool { View.eventTypes == nil }
    func folds(_ type: String) -> Bool { View.folds(type) }

    func fold(_ batch: FoldedBatch, bit: UInt64) {
        state.withLock { state in
            // After a checkpoint the views may stand at different positions.
            let start = batch.events.startIndex
            for (index, concerns) in batch.concerns.enumerated() where concerns & bit != 0 {
                guard batch.events[start + index].position > state.through else { continue }
                state.view.fold(batch.events[start + index])
                state.through = batch.events[start + index].position
                state.revision += 1
            }
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
    /// A bit for each box; with more than 64 views some share one.
    private let bits: [(box: any AnyViewBox, bit: UInt64)]
    /// The bits of the views that take in events of a type; of a type that is not here, `toAll`.
    private let concerns: [String: UInt64]
    /// The same for the catalogue's types, by number.
    private let concernsOfKnown: [UInt64]
    private let toAll: UInt64
    private let progress = FoldProgress()
    private let views: [any Projection.Type]
    private let catalogue: EventCatalogue
    /// Events that could not be brought to their newest form.
    let upcastFailures = UpcastFailures()
    private let discarding = Discarding()
    /// Whether it is known from the beginning which events count as taken back in the end: the
    /// records are then not taken in a second time.
    private let knowsDiscarded: Bool

    /// Which events are passed over.
    private final class Discarding: Sendable {
        struct State {
            var events = DiscardedEvents()
            /// Whether some view has folded an event that was taken back later.
            var isStale = false
        }
        let state = Mutex(State())
    }

    /// - Parameter discarded: the events that count as taken back in the end, where that is known;
    ///   nil takes it from the records that are folded.
    init(
        _ views: [any Projection.Type], _ catalogue: EventCatalogue,
        passingOver discarded: DiscardedEvents? = nil
    ) {
        var boxes: [ObjectIdentifier: any AnyViewBox] = [:]
        for view in views { boxes[ObjectIdentifier(view)] = Self.box(view, catalogue, progress) }
        self.boxes = boxes
        let bits = boxes.values.enumerated().map { ($1, UInt64(1) << UInt64($0 % 64)) }
        let types = Set(views.flatMap { $0.eventTypes ?? [] })
        func bitsOfViews(_ isIncluded: (any AnyViewBox) -> Bool) -> UInt64 {
            bits.reduce(0) { isIncluded($1.0) ? $0 | $1.1 : $0 }
        }
        self.bits = bits
        concerns = Dictionary(
            uniqueKeysWithValues: types.map { type in (type, bitsOfViews { $0.folds(type) }) })
        concernsOfKnown = catalogue.known.names.map { type in bitsOfViews { $0.folds(type) } }
        toAll = bitsOfViews { $0.foldsAll }
        self.views = views
        self.catalogue = catalogue
        knowsDiscarded = discarded != nil
        if let discarded { self.discarded = discarded }
    }

    /// Bytes of a view's name at most: a checkpoint holds it.
    private static let nameBytesMax = 256

    /// Refuses views that could not be told apart, or not be stored.
    ///
    /// - Throws: `EventError` (`refused`), naming the view.
    static func check(_ views: [any Projection.Type]) throws(EventError) {
        var known: [EntityID: any Projection.Type] = [:]
        for view in views {
            let name = view.name
            guard !name.isEmpty, name.utf8.count <= nameBytesMax else {
                throw EventError(
                    .refused,
                    "the view \(view) has a name of \(name.utf8.count) bytes. Give it one of 1 to "
                        + "\(nameBytesMax) bytes")
            }
            guard !name.utf8.starts(with: "daybook.".utf8) else {
                throw EventError(
                    .refused,
                    "the view \(view) has the name \(name), which belongs to the library. Name it "
                        + "without daybook.")
            }
            guard UInt32(exactly: view.version) != nil else {
                throw EventError(
                    .refused,
                    "the view \(name) (\(view)) has the version \(view.version). Give it one from 0 "
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

    /// The same views before the first event. They pass over what counts as taken back now.
    func fresh() -> ViewSet { ViewSet(views, catalogue, passingOver: discarded) }

    /// The events that are passed over.
    var discarded: DiscardedEvents {
        get { discarding.state.withLock { $0.events } }
        nonmutating set { discarding.state.withLock { $0.events = newValue } }
    }

    /// Whether some view has folded an event that was taken back later: it must be folded anew.
    var isStale: Bool { discarding.state.withLock { $0.isStale } }

    /// Folds all views anew, without what was taken back. Nobody sees them half-way.
    ///
    /// - Parameters:
    ///   - states: stored states; those that have folded nothing that was taken back are begun with.
    ///   - runs: the events from a position on.
    /// - Throws: what reading the events throws; the views then stay as they were.
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

    /// The views that need every event that they take in.
    var needs: ViewNeeds { ViewNeeds(of: views) }

    /// The names of the views.
    var names: Set<String> { Set(boxes.values.map(\.name)) }

    /// Whether a stored state is of one of the views, and folded as it would be here.
    func knows(_ state: StoredState) -> Bool {
        boxes.values.contains {
            $0.name == state.name && $0.version == state.version
                && $0.types ^ discarded.fingerprint(through: state.position) == state.types
        }
    }

    /// The first position that some view has not folded.
    var next: Position { boxes.values.map(\.through).min()?.next ?? Position(1) }

    /// Takes over stored states, each by the first that fits: same name, same version, readable.
    /// What finds none stays as it is and is folded from the log's beginning.
    func restore(_ states: [StoredState]) {
        let discarded = discarded
        // A large state takes long to read.
        _ = Array(boxes.values).parallelShares(of: 1) { boxes in
            for box in boxes {
                _ = states.first {
                    box.restore($0, discards: discarded.fingerprint(through: $0.position))
                }
            }
        }
    }

    /// Takes in an event in its newest form, in each view that it concerns and that has not folded it
    /// yet.
    func fold(_ event: Event) { fold([event]) }

    /// Takes in events together: nobody sees a view that has only some of them.
    func fold(_ events: ArraySlice<Event>) {
        guard let last = events.last?.position else { return }
        let (discarded, areRecordsAmong) = takeIn(events)
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
        for (box, bit) in bits where bit & concerned != 0 { box.fold(batch, bit: bit) }
        progress.advance(to: last)
    }

    private func viewsConcerned(by event: Event) -> UInt64 {
        let type = event.catalogued
        return catalogue.known.contains(type)
            ? concernsOfKnown[type.number] : concerns[event.type] ?? toAll
    }

    /// Takes in what events say of others that were taken back.
    ///
    /// - Returns: all that are passed over, and whether some of the events say so.
    private func takeIn(_ events: ArraySlice<Event>) -> (DiscardedEvents, areRecordsAmong: Bool) {
        discarding.state.withLock { state in
            var areRecordsAmong = false
            for event in events where DiscardedEvents.isRecord(event) {
                areRecordsAmong = true
                guard !knowsDiscarded else { break }
                let folded = boxes.values.map(\.through).max() ?? .zero
                let new = state.events.add(event)
                if new.contains(where: { $0 <= folded }) { state.isStale = true }
            }
            return (state.events, areRecordsAmong)
        }
    }

    /// An event in its newest form, or as it is if it cannot be converted.
    private func upcast(_ event: Event) -> Event {
        do {
            return try catalogue.upcast(event)
        } catch {
            upcastFailures.add(event.type)
            return event
        }
    }

    /// The states of this moment, by name.
    func capture() -> [ViewCapture] {
        let discarded = discarded
        return boxes.values.map { $0.capture(discarded) }.sorted { $0.name < $1.name }
    }

    /// The last position that each view has folded.
    var throughs: [String: Position] {
        Dictionary(boxes.values.map { ($0.name, $0.through) }, uniquingKeysWith: min)
    }

    /// The names of views that are folded from the log's beginning at every opening.
    var unstored: [String] { boxes.values.filter { !$0.isStored }.map(\.name).sorted() }

    /// The states of this moment.
    var projections: [any Projection] {
        // What was taken back must stay: the server may turn out to hold it.
        boxes.values.map(\.projection) + (discarded == DiscardedEvents() ? [] : [discarded])
    }

    func snapshot<View: Projection>(_ view: View.Type) -> View { present(view).view }

    /// The state of this moment, with its revision.
    func present<View: Projection>(_ view: View.Type) -> (view: View, revision: UInt64) {
        let present = box(view).present
        return (present.view, present.revision)
    }

    /// A number that grows whenever a view's state may have become another. An event that does not
    /// concern the view leaves it. O(1).
    func revision<View: Projection>(of view: View.Type) -> UInt64 { box(view).revision }

    private func box<View: Projection>(_ view: View.Type) -> ViewBox<View> {
        guard let box = boxes[ObjectIdentifier(view)] as? ViewBox<View> else {
            // Not a precondition: its message is in no release build.
            fatalError(
                "the view \(View.self) (\"\(View.name)\") was not given to open; add \(View.self).self to "
                    + "the views there")
        }
        return box
    }
}
