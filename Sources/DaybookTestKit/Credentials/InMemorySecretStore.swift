// A secret store for tests: it keeps everything in memory, and fails on request.

import Replay
import Synchronization

/// A secret store in memory.
public final class InMemorySecretStore: SecretStore {
    private struct State {
        var values: [String: [UInt8]] = [:]
        var failure: SecretStoreError?
        var writes = 0
    }

    private let state = Mutex(State())

    /// Creates an empty store.
    public init() {}

    /// Makes every call fail with an error from now on; nil ends that.
    public func fail(with error: SecretStoreError?) { state.withLock { $0.failure = error } }

    /// The stored values by name.
    public var values: [String: [UInt8]] { state.withLock { $0.values } }

    /// The number of writes and deletions.
    public var writes: Int { state.withLock { $0.writes } }

    public func read(_ name: String) throws(SecretStoreError) -> [UInt8]? {
        try access { $0.values[name] }
    }

    public func write(_ value: [UInt8], for name: String) throws(SecretStoreError) {
        guard 1...256 ~= name.utf8.count else {
            throw SecretStoreError(.badName, location: "memory", "a name has 1 to 256 bytes")
        }
        try access { state in
            state.values[name] = value
            state.writes += 1
        }
    }

    public func delete(_ name: String) throws(SecretStoreError) {
        try access { state in
            state.values[name] = nil
            state.writes += 1
        }
    }

    public func deleteAll() throws(SecretStoreError) {
        try access { state in
            state.values = [:]
            state.writes += 1
        }
    }

    private func access<T: Sendable>(
        _ body: (inout State) -> T
    ) throws(SecretStoreError) -> T {
        let result = state.withLock { state -> Result<T, SecretStoreError> in
            if let failure = state.failure { return .failure(failure) }
            return .success(body(&state))
        }
        return try result.get()
    }
}
