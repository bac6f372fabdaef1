// Waiting for what other threads do. Tests do not depend on how fast a machine is: whoever waits ends
// as soon as it has happened, and gives up long after any machine would have done it.

/// It did not happen.
public struct NeverHappened: Error, CustomStringConvertible {
    public let description: String
}

/// Waits until something holds, for two minutes at most.
///
/// - Throws: `NeverHappened`, with the place that waited; what `condition` throws.
public func eventually(
    isolation: isolated (any Actor)? = #isolation, file: String = #fileID, line: Int = #line,
    _ condition: () async throws -> Bool
) async throws {
    for _ in 0..<12_000 {
        if try await condition() { return }
        try await Task.sleep(for: .milliseconds(10))
    }
    throw NeverHappened(description: "\(file):\(line): waited two minutes for what did not happen")
}
