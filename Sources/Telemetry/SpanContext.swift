// The parent of spans on threads that do not inherit a task's local values: passed from the calling task to
// work on a queue.

#if INSTRUMENTATION
    import Tracing
#endif

/// The parent span of work.
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

    /// Runs `body` with the span as its parent.
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

    /// Runs an asynchronous `body` with the span as its parent.
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
