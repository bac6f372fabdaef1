// The published states of all views of a store. Folding happens in one place, the store; reading
// happens anywhere and takes a snapshot.

import LogFormat
import Synchronization

/// A view and its state.
private protocol AnyViewBox: AnyObject, Sendable {
    var name: String { get }
    var version: UInt32 { get }
    var through: Position { get }
    func fold(_ events: ArraySlice<Event>)
    func restore(_ state: StoredState) -> Bool
    func capture() -> ViewCapture
    var projection: any Projection { get }
}

/// The state of one view at a moment, to be encoded at leisure.
struct ViewCapture: Sendable {
    let name: String
    let version: UInt32
    /// The last position folded.
    let position: Position
    let encode: @Sendable () throws -> [UInt8]?
}

private final class ViewBox<View: Projection>: AnyViewBox {
    struct Present {
        var view = View()
        /// The last position folded.
        var through = Position.zero
    }

    private let state = Mutex(Present())
    var name: String { View.name }
    var version: UInt32 { UInt32(clamping: View.version) }
    var present: Present { state.withLock { $0 } }
    var projection: any Projection { present.view }
    var through: Position { state.withLock { $0.through } }

    func fold(_ events: ArraySlice<Event>) {
        state.withLock { state in
            // After a checkpoint the views may stand at different positions.
            for event in events where event.position > state.through {
                state.view.fold(event)
                state.through = event.position
            }
        }
    }

    func restore(_ stored: StoredState) -> Bool {
        guard stored.name == name, stored.version == version,
            let view = try? View(encodedState: stored.bytes)
        else { return false }
        state.withLock { $0 = Present(view: view, through: stored.position) }
        return true
    }

    func capture() -> ViewCapture {
        let present = present
        return ViewCapture(name: name, version: version, position: present.through) {
            try present.view.encodedState()
        }
    }
}

/// The views of one store.
struct ViewSet: Sendable {
    private let boxes: [ObjectIdentifier: any AnyViewBox]
    private let types: [any Projection.Type]

    init(_ views: [any Projection.Type]) {
        var boxes: [ObjectIdentifier: any AnyViewBox] = [:]
        for view in views { boxes[ObjectIdentifier(view)] = Self.box(view) }
        self.boxes = boxes
        types = views
    }

    /// The same views before the first event.
    func fresh() -> ViewSet { ViewSet(types) }

    private static func box<View: Projection>(_ view: View.Type) -> any AnyViewBox {
        ViewBox<View>()
    }

    /// The names of the views.
    var names: Set<String> { Set(boxes.values.map(\.name)) }

    /// Whether a view of this name and version is among them.
    func knows(_ name: String, version: UInt32) -> Bool {
        boxes.values.contains { $0.name == name && $0.version == version }
    }

    /// The first position that some view has not folded.
    var next: Position { boxes.values.map(\.through).min()?.next ?? Position(1) }

    /// Takes over stored states, each by the first that fits: same name, same version, readable.
    /// What finds none stays as it is and is folded from the log's beginning.
    func restore(_ states: [StoredState]) {
        for box in boxes.values {
            _ = states.first { box.restore($0) }
        }
    }

    /// Takes in an event, in each view that has not folded it yet.
    func fold(_ event: Event) { fold([event]) }

    /// Takes in events together: nobody sees a view that has only some of them.
    func fold(_ events: ArraySlice<Event>) {
        for box in boxes.values { box.fold(events) }
    }

    /// The states of this moment, by name.
    func capture() -> [ViewCapture] {
        boxes.values.map { $0.capture() }.sorted { $0.name < $1.name }
    }

    /// The states of this moment.
    var projections: [any Projection] { boxes.values.map(\.projection) }

    func snapshot<View: Projection>(_ view: View.Type) -> View { present(view).view }

    /// The state of this moment, with the last position that is in it.
    func present<View: Projection>(
        _ view: View.Type
    ) -> (view: View, through: Position) {
        guard let box = boxes[ObjectIdentifier(view)] as? ViewBox<View> else {
            preconditionFailure("the view \(View.name) was not given to EventStore.open")
        }
        let present = box.present
        return (present.view, present.through)
    }
}
