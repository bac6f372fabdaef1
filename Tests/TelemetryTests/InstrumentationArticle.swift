// The code of the article "Instrumentation". It is here and not in Tests/Outside, which has no trait.

import CoreMetrics
import Daybook
import DaybookTestKit
import Foundation
import InMemoryTracing
import Logging
import MetricsTestKit
import Testing
import Tracing

/// Compiled only: a process can be bootstrapped once, and all tests share one process.
private func bootstrap(_ metrics: any MetricsFactory, _ tracer: any Tracer) {
    // Instrumentation-1 begins
    // At the app's start, before the first store is opened.
    LoggingSystem.bootstrap { label in
        var handler = StreamLogHandler.standardError(label: label)
        if label == "daybook" { handler.logLevel = .debug }
        return handler
    }
    MetricsSystem.bootstrap(metrics)
    InstrumentationSystem.bootstrap(tracer)
    // Instrumentation-1 ends
}

private func openWithLogger(_ url: URL) async throws -> EventStore {
    // Instrumentation-2 begins
    var logger = Logger(label: "trips")
    logger.logLevel = .debug
    let store = try await withLogger(logger) { _ in
        try await EventStore.open(at: url)
    }
    // Instrumentation-2 ends
    return store
}

@Test func `a store that is opened with a logger of the app works`() async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let store = try await openWithLogger(folder.appending("log"))
    try await store.close()
}

// Instrumentation-3 begins
@Test func openingIsMeasured() async throws {
    let metrics = TestMetrics()
    let tracer = InMemoryTracer()
    try await withMetricsFactory(metrics) {
        try await withTracer(tracer) {
            let store = try await EventStore.inMemory()
            try await store.close()
        }
    }
    #expect(try metrics.expectTimer("daybook.open.duration").values.count == 1)
    #expect(tracer.finishedSpans.contains { $0.operationName == "daybook.open" })
}
// Instrumentation-3 ends
