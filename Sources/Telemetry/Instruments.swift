// Durations, failures and amounts of a store's work, for the logger, the metrics backend and the tracer of
// the app. Metrics and traces exist only with the trait Instrumentation. Spec/decisions/0047.

import Logging

#if INSTRUMENTATION
    import CoreMetrics
    import Tracing
#endif

/// The logger, the metrics and the tracer of one store or download manager.
///
/// Lines, labels and spans have the names of operations, durations, numbers and codes of errors: constants of
/// the program and measurements, never data of a user.
public struct Instruments: Sendable {
    /// Receives a line for each operation that ends.
    public var logger: Logger
    #if INSTRUMENTATION
        /// Nil without a metrics backend.
        private let metrics: MetricHandles?
        /// Nil without a tracer.
        private let tracer: (any Tracer)?
    #endif

    /// Creates instruments from the calling task's logger, metrics factory and tracer; if the task has none,
    /// from those that were bootstrapped. A later bootstrap has no effect.
    public init() {
        // An empty label means swift-log's default: the task has no logger of its own.
        let current = Logger.current
        logger = current.label.isEmpty ? Logger(label: "daybook") : current
        #if INSTRUMENTATION
            let factory = MetricsSystem.factory
            metrics = factory is NOOPMetricsHandler ? nil : MetricHandles(factory)
            let tracer = InstrumentationSystem.tracer
            self.tracer = tracer is NoOpTracer ? nil : tracer
        #endif
    }

    // MARK: Measuring

    /// Performs an operation, and records its duration and whether it failed.
    ///
    /// - Throws: what `body` throws.
    /// - Complexity: without a backend, and with the logger at its default level, one comparison of levels.
    public func measure<Value, Failure: Error>(
        _ operation: Operation, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        guard let measurement = begin(operation) else { return try body() }
        do throws(Failure) {
            let value = try measurement.context.run(body)
            end(measurement)
            return value
        } catch {
            end(measurement, error)
            throw error
        }
    }

    /// Performs an asynchronous operation, and records its duration and whether it failed.
    ///
    /// - Parameter failure: the kind of failure that a returned value stands for, such as `http-404`; nil for
    ///   a success.
    /// - Throws: what `body` throws.
    public nonisolated(nonsending) func measure<Value>(
        _ operation: Operation, failure: (Value) -> String? = { _ in nil },
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async throws -> Value {
        guard let measurement = begin(operation) else { return try await body() }
        do {
            let value = try await measurement.context.run(body)
            end(measurement, failure: failure(value))
            return value
        } catch {
            end(measurement, error)
            throw error
        }
    }

    /// Adds to an amount. Does nothing without a metrics backend.
    public func count(_ amount: Amount, _ value: Int) {
        #if INSTRUMENTATION
            metrics?.count(amount, value)
        #endif
    }

    // MARK: One measurement

    /// An operation under way.
    private struct Measurement {
        let operation: Operation
        let start = ContinuousClock.now
        #if INSTRUMENTATION
            let span: (any Tracing.Span)?
            var context: SpanContext { SpanContext(span?.context) }
        #else
            let context = SpanContext()
        #endif
    }

    /// Starts a measurement.
    ///
    /// - Returns: nil if neither a metrics backend nor a tracer nor the logger records it.
    private func begin(_ operation: Operation) -> Measurement? {
        let isLogged = logger.logLevel <= .debug
        #if INSTRUMENTATION
            guard isLogged || metrics != nil || tracer != nil else { return nil }
            return Measurement(
                operation: operation, span: tracer?.startAnySpan(operation.rawValue))
        #else
            return isLogged ? Measurement(operation: operation) : nil
        #endif
    }

    private func end(
        _ measurement: Measurement, _ error: (any Error)? = nil, failure: String? = nil
    ) {
        let operation = measurement.operation
        let duration = Int64((.now - measurement.start) / .nanoseconds(1))
        // An operation that fails because its task was cancelled may throw another error.
        let isCancelled = error != nil && (error is CancellationError || Task.isCancelled)
        let kind = isCancelled ? nil : failure ?? error.map(Self.kind)
        #if INSTRUMENTATION
            metrics?.record(duration, of: operation, hasFailed: kind != nil)
            if let span = measurement.span {
                // Not the error itself: exporters would write its description.
                if let kind {
                    span.attributes["error.type"] = kind
                    span.setStatus(SpanStatus(code: .error))
                }
                span.end()
            }
        #endif
        var metadata: Logger.Metadata { ["duration_ns": "\(duration)"] }
        if let kind {
            logger.debug(
                "\(operation.rawValue) failed",
                metadata: metadata.merging(["error.type": "\(kind)"]) { $1 })
        } else {
            logger.log(
                level: operation.logLevel,
                "\(operation.rawValue) \(isCancelled ? "was cancelled" : "finished")",
                metadata: metadata)
        }
    }

    /// The error's type and, if it has one, its code. Only the raw value of an enum is a constant of the
    /// program; any other text may contain data of a user.
    static func kind(of error: any Error) -> String {
        let type = "\(type(of: error))"
        guard let code = Mirror(reflecting: error).descendant("code"),
            Mirror(reflecting: code).displayStyle == .enum,
            let name = (code as? any RawRepresentable)?.rawValue as? String
        else { return type }
        return "\(type).\(name)"
    }
}
