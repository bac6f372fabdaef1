// For stores whose tests decide when relaxed events are written.

/// A `sleep` for an environment whose timers never fire: on a busy machine one could fire at any time.
public let noTimers: @Sendable (Duration) async throws -> Void = { _ in throw CancellationError() }
