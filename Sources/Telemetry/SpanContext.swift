// The parent of spans, across threads that do not inherit a task's local values. Between the calling task
// and work on a queue.

#if INSTRUMENTATION
    import Tracing
#endif

/// The span under which work is done. Spans of the work are its children.
public struct SpanContext: Sendable {
    #if INSTRUMENTATION
        private let context: InstrumentationContext?

        init(_ context: InstrumentationContext?) { self.context = context }
    #endif

    /// The context of the calling task.
    public static var current: SpanContext {
        #if INSTRUMENTATION
            SpanContext(InstrumentationContext.current)
        #else
            SpanContext()
        #endif
    }

    /// Does work under the span.
    ///
    /// - Throws: what `body` throws.
    public func run<Value, Failure: Error>(
        _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        #if INSTRUMENTATION
            guard let context else { return try body() }
            return try InstrumentationContext.withValue(context) {
                Result { () throws(Failure) in try body() }
            }.get()
        #else
            return try body()
        #endif
    }

    /// Does work that waits under the span.
    ///
    /// - Throws: what `body` throws.
    nonisolated(nonsending) func run<Value>(
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async throws -> Value {
        #if INSTRUMENTATION
            guard let context else { return try await body() }
            return try await InstrumentationContext.$current.withValue(context, operation: body)
        #else
            return try await body()
        #endif
    }
}
