// A view receives only the events of the types that it lists, so it must list every type that it folds.
// Tested with every event of the corpus, and random ones.

import DaybookTestKit
import EventGenerators
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct EventTypesTests {
    private static func corpus() throws -> [EventDraft] {
        try Corpus.lines().map { try LineDecoder.decode($0.span.bytes).draft }
    }

    private static func state(_ view: some Projection) throws -> [UInt8]? {
        try view.encodedState()
    }

    private func check<View: Projection>(_ type: View.Type, _ drafts: [EventDraft]) throws {
        let types = try #require(View.eventTypes)
        #expect(types.isSubset(of: OfflineModel.catalogue.types))
        var history = EventHistory()
        var view = View()
        var folded: Set<String> = []
        for draft in drafts {
            let before = try Self.state(view)
            let event = history.addOwn(draft)
            view.fold(event)
            let hasChanged = try Self.state(view) != before
            if hasChanged { folded.insert(event.type) }
            #expect(
                !hasChanged || types.contains(event.type),
                "\(View.name) takes in \(event.type) and does not name it")
        }
        #expect(!folded.isEmpty)
    }

    @Test(.verifies("VIEW-26"), arguments: OfflineModel.views.map { $0.name })
    func `a view lists every event type that it folds`(name: String) throws {
        let view = try #require(OfflineModel.views.first { $0.name == name })
        try check(view, Self.corpus())
    }
}
