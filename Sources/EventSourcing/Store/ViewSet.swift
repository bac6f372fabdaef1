// The published states of all views of a store. Folding happens in one place, the store; reading
// happens anywhere and takes a snapshot.

import Synchronization

/// A view and its state.
private protocol AnyViewBox: AnyObject, Sendable {
    func fold(_ event: Event)
}

private final class ViewBox<View: Projection>: AnyViewBox {
    private let state = Mutex(View())
    var snapshot: View { state.withLock { $0 } }
    func fold(_ event: Event) { state.withLock { $0.fold(event) } }
}

/// The views of one store.
struct ViewSet: Sendable {
    private let boxes: [ObjectIdentifier: any AnyViewBox]

    init(_ views: [any Projection.Type]) {
        var boxes: [ObjectIdentifier: any AnyViewBox] = [:]
        for view in views { boxes[ObjectIdentifier(view)] = Self.box(view) }
        self.boxes = boxes
    }

    private static func box<View: Projection>(_ view: View.Type) -> any AnyViewBox {
        ViewBox<View>()
    }

    func fold(_ event: Event) {
        for box in boxes.values { box.fold(event) }
    }

    func snapshot<View: Projection>(_ view: View.Type) -> View {
        guard let box = boxes[ObjectIdentifier(view)] as? ViewBox<View> else {
            preconditionFailure("the view \(View.name) was not given to EventStore.open")
        }
        return box.snapshot
    }
}
