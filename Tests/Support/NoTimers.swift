// For stores whose tests say when relaxed events are written.

/// A `sleep` for an environment whose timers never go off: on a busy machine they would at any time.
public let noTimers: @Sendable (Duration) async throws -> Void = { _ in throw CancellationError() }
