// Waits for effects of other threads. The wait ends as soon as the condition holds, and its timeout is longer
// than any machine needs, so that tests do not depend on the speed of the machine.

/// The error of a wait that timed out.
public struct NeverHappened: Error, CustomStringConvertible {
    public let description: String
}

/// Waits until a condition holds, for at most two minutes.
///
/// - Throws: `NeverHappened`, with the location of the call; an error of `condition`.
public func eventually(
    isolation: isolated (any Actor)? = #isolation, file: String = #fileID, line: Int = #line,
    _ condition: () async throws -> Bool
) async throws {
    for _ in 0..<12_000 {
        if try await condition() { return }
        try await Task.sleep(for: .milliseconds(10))
    }
    throw NeverHappened(
        description: "\(file):\(line): the condition did not hold within two minutes")
}
