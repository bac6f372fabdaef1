// States of views in a checkpoint: a decoded state encodes to the same bytes. Spec/model/views.md, VIEW-10.

import DaybookOffline
import EventSourcing
import Replay

/// The mode is the index of a view.
struct StateCheck {
    let mode: UInt8

    static let views: [any Projection.Type] = [Outbox.self] + OfflineModel.views

    func check(_ bytes: [UInt8]) throws {
        let type = Self.views[Int(mode) % Self.views.count]
        try checkState(of: type, bytes)
    }

    private func checkState<View: Projection>(of type: View.Type, _ bytes: [UInt8]) throws {
        guard let view = try? View(encodedState: bytes) else { return }
        let encoded = try view.encodedState()
        try expect(encoded == bytes, "a state of \(View.name) changes when it is written and read")
    }
}
