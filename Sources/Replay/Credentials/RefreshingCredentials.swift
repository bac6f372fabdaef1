// A token that a closure of the app renews, stored over restarts. The replayer decides when: before the token
// expires by the server's clock, and when the server refuses it. Concurrent callers share one request to the
// issuer. Spec/operations/secrets.md, SEC-12 to SEC-16.

/// Credentials with a token that a closure of the app renews. Concurrent callers share one request.
///
/// ```swift
/// let credentials = RefreshingCredentials(store: KeychainSecretStore(service: "my.app")) { old in
///     try await issuer.renew()  // nil if the issuer refuses
/// }
/// try await credentials.set(AccessToken(value, expiresAt: end))  // after the user has signed in
/// ```
public actor RefreshingCredentials: Credentials {
    /// Requests a new token from the issuer, given the old one. Returns nil if the issuer refuses, so that
    /// the user must sign in again; throws if the issuer could not be reached. The error may be shown to
    /// people and must not contain a token.
    public typealias Refresh = @Sendable (AccessToken?) async throws -> AccessToken?

    /// The default name of the token in a secret store.
    public static let defaultName = "daybook.token"

    /// The error of the last write to the secret store; nil if it succeeded. The token is valid all the
    /// same, until the process ends.
    public private(set) var storeFailure: SecretStoreError?

    private let requestToken: Refresh
    private let store: (any SecretStore)?
    private let name: String

    private var current: AccessToken?
    private var isLoaded: Bool
    /// True after the issuer has refused or the user has signed out: no further request is made.
    private var isRefused = false

    private var request: Task<Void, Never>?
    /// The number of the current request. A new request, `set(_:)` and `signOut()` increment it, so that the
    /// answer to an obsolete request is ignored.
    private var requestNumber = 0
    private var waiting: [Int: CheckedContinuation<AccessToken?, any Error>] = [:]
    private var lastWaiter = 0
    /// The newest write to the secret store. Each write waits for the one before.
    private var saving: Task<SecretStoreError?, Never>?

    /// Creates credentials without a token, or with the one that is stored.
    ///
    /// - Parameters:
    ///   - store: the secret store of the token; nil to keep the token in memory only.
    ///   - name: the token's name in the secret store. One for each account.
    ///   - refresh: requests a new token.
    public init(
        store: (any SecretStore)? = nil, name: String = RefreshingCredentials.defaultName,
        refresh: @escaping Refresh
    ) {
        self.store = store
        self.name = name
        requestToken = refresh
        isLoaded = store == nil
    }

    /// The token, or nil if there is none.
    ///
    /// - Throws: `SecretStoreError` if the stored token could not be read; the next call tries again.
    public func token() async throws -> AccessToken? {
        try await load()
        return current
    }

    /// Returns a new token in place of `old`.
    ///
    /// If there is a newer token already, returns it at once. Otherwise all waiting callers share one
    /// request to the issuer. Cancelling one caller does not cancel the request.
    ///
    /// - Returns: nil if the issuer refused, now or earlier, or the user has signed out.
    /// - Throws: the error of the app's closure, to all waiting callers; the next call requests again.
    ///   `CancellationError` if the caller was cancelled.
    public func refresh(_ old: AccessToken?) async throws -> AccessToken? {
        try await load()
        if let current, current.value != old?.value { return current }
        if isRefused { return nil }
        lastWaiter += 1
        let waiter = lastWaiter
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard !Task.isCancelled else {
                    return continuation.resume(throwing: CancellationError())
                }
                waiting[waiter] = continuation
                if request == nil { startRequest(replacing: old) }
            }
        } onCancel: {
            Task { await cancelWaiter(waiter) }
        }
    }

    /// Sets the token after the user has signed in. Waiting callers of `refresh(_:)` get it; an earlier
    /// refusal is reset.
    ///
    /// - Throws: `SecretStoreError` if the token could not be stored. It is valid all the same, until the
    ///   process ends.
    public func set(_ token: AccessToken) async throws(SecretStoreError) {
        try await replace(token)
    }

    /// Deletes the token, also from the secret store. No new one is requested until `set(_:)`.
    ///
    /// - Throws: `SecretStoreError` if the stored token may still be there; call again.
    public func signOut() async throws(SecretStoreError) {
        try await replace(nil)
    }

    // MARK: Requests

    private func startRequest(replacing old: AccessToken?) {
        requestNumber += 1
        let number = requestNumber
        request = Task { [requestToken] in
            let answer: Result<AccessToken?, any Error>
            do { answer = .success(try await requestToken(old)) } catch { answer = .failure(error) }
            await finishRequest(number, answer)
        }
    }

    private func finishRequest(_ number: Int, _ answer: Result<AccessToken?, any Error>) async {
        // `set(_:)` or `signOut()` was called meanwhile: it takes precedence.
        guard number == requestNumber else { return }
        request = nil
        let answered = waiting.values
        waiting = [:]
        switch answer {
        case .success(let new?):
            current = new
            _ = await save()
            // `current` and not `new`: `set(_:)` may have been called during the save.
            for continuation in answered { continuation.resume(returning: current) }
        case .success(nil):
            isRefused = true
            for continuation in answered { continuation.resume(returning: nil) }
        case .failure(let error):
            for continuation in answered { continuation.resume(throwing: error) }
        }
    }

    private func cancelWaiter(_ waiter: Int) {
        waiting.removeValue(forKey: waiter)?.resume(throwing: CancellationError())
    }

    private func replace(_ token: AccessToken?) async throws(SecretStoreError) {
        current = token
        isLoaded = true
        isRefused = token == nil
        requestNumber += 1
        request?.cancel()
        request = nil
        let answered = waiting.values
        waiting = [:]
        for continuation in answered { continuation.resume(returning: token) }
        if let failure = await save() { throw failure }
    }

    // MARK: Storage

    private func load() async throws(SecretStoreError) {
        guard !isLoaded, let store else { return }
        let bytes = try await store.read(name)
        // Another caller has loaded it meanwhile, or the app has set a token.
        guard !isLoaded else { return }
        isLoaded = true
        guard let bytes else { return }
        current = StoredToken.read(bytes)
        if current == nil {
            storeFailure = SecretStoreError(
                .damaged, location: name, "the stored value is not a token; it is ignored")
        }
    }

    /// Writes the current token to the secret store, after the writes that are under way.
    private func save() async -> SecretStoreError? {
        guard let store else { return nil }
        let task = Task { [saving, current, name] () -> SecretStoreError? in
            _ = await saving?.value
            do throws(SecretStoreError) {
                if let current {
                    try await store.write(StoredToken.bytes(current), for: name)
                } else {
                    try await store.delete(name)
                }
                return nil
            } catch { return error }
        }
        saving = task
        let failure = await task.value
        storeFailure = failure
        return failure
    }
}
