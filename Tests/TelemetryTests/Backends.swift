// A logger, a metrics factory and a tracer in memory for one test: nothing is bootstrapped, so tests
// can run in parallel.

import CoreMetrics
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import Telemetry
import Tracing

/// Collects log lines, metrics and spans.
struct Backends {
    let handler: InMemoryLogHandler
    let metrics = TestMetrics()
    let tracer = InMemoryTracer()

    init(logLevel: Logger.Level = .trace) {
        var handler = InMemoryLogHandler()
        handler.logLevel = logLevel
        self.handler = handler
    }

    /// Runs work whose stores and download managers use these backends.
    nonisolated(nonsending) func observe<Value>(
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async throws -> Value {
        let logger = Logger(label: "test") { [handler] _ in handler }
        return try await withLogger(logger) { _ in
            try await withMetricsFactory(metrics) {
                try await withTracer(tracer) { try await body() }
            }
        }
    }

    // MARK: Collected data

    /// The log lines.
    var lines: [String] { handler.entries.map { "\($0.level) \($0.message) \($0.metadata)" } }

    func durations(of operation: Instruments.Operation) throws -> [Int64] {
        try metrics.expectTimer(operation.durationLabel).values
    }

    func failures(of operation: Instruments.Operation) -> Int64 {
        metrics.counterTotal(label: operation.failuresLabel)
    }

    func total(of amount: Instruments.Amount) -> Int64 {
        metrics.counterTotal(label: amount.rawValue)
    }

    /// The first span of an operation.
    func span(of operation: Instruments.Operation) -> FinishedInMemorySpan? {
        tracer.finishedSpans.first { $0.operationName == operation.rawValue }
    }

    /// Everything that left the process, as text.
    var everything: String {
        var text = ""
        dump(handler.entries, to: &text)
        dump(tracer.finishedSpans, to: &text)
        dump(metrics.counters, to: &text)
        dump(metrics.timers, to: &text)
        return text
    }
}
