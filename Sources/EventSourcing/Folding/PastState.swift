// The views of a store at an earlier position.

import LogFormat

/// The states of a store's views at an earlier position.
public struct PastState: Sendable {
    /// The position.
    public let position: Position
    private let views: ViewSet

    init(position: Position, views: ViewSet) {
        self.position = position
        self.views = views
    }

    /// The state of a view at the position. O(1).
    public func view<View: Projection>(_ view: View.Type) -> View { views.snapshot(view) }
}
