// Waits for effects of other threads. The wait ends as soon as the value is the expected one, and its timeout is
// longer than any machine needs, so that tests do not depend on the speed of the machine.

/// The error of a wait that timed out.
public struct NeverHappened: Error, CustomStringConvertible {
    public let description: String
}

/// Waits until a value equals the expected one, for at most two minutes.
///
/// ```swift
/// try await eventually("subscribers", is: 1) { await store.subscriberCount }
/// ```
///
/// - Parameters:
///   - name: a noun phrase for the value, or a statement that becomes true.
///   - value: reads the value; called every 10 ms.
/// - Throws: `NeverHappened`, with the location of the call and the last value; an error of `value`.
public func eventually<Value: Equatable & Sendable>(
    _ name: String, is expected: Value, isolation: isolated (any Actor)? = #isolation,
    file: String = #fileID, line: Int = #line, _ value: () async throws -> Value
) async throws {
    try await poll("\(file):\(line): \(name): expected \(expected), ", value) { $0 == expected }
}

/// Waits until a value satisfies a predicate, for at most two minutes.
///
/// ```swift
/// try await eventually("requests", where: { $0 >= 4 }) { server.requests.count }
/// ```
///
/// - Parameters:
///   - name: a noun phrase for the value.
///   - isExpected: the predicate.
///   - value: reads the value; called every 10 ms.
/// - Throws: `NeverHappened`, with the location of the call and the last value; an error of `value`.
public func eventually<Value: Sendable>(
    _ name: String, where isExpected: (Value) -> Bool,
    isolation: isolated (any Actor)? = #isolation, file: String = #fileID, line: Int = #line,
    _ value: () async throws -> Value
) async throws {
    try await poll("\(file):\(line): \(name): ", value, until: isExpected)
}

/// - Parameter failure: the beginning of the error's description.
private func poll<Value: Sendable>(
    _ failure: String, isolation: isolated (any Actor)? = #isolation,
    _ value: () async throws -> Value, until isExpected: (Value) -> Bool
) async throws {
    // Two minutes of 10 ms.
    let pollsMax = 12_000
    for poll in 1...pollsMax {
        let seen = try await value()
        if isExpected(seen) { return }
        guard poll < pollsMax else {
            throw NeverHappened(
                description: "\(failure)last seen \(seen), after two minutes")
        }
        try await Task.sleep(for: .milliseconds(10))
    }
}
