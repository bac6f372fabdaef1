// A token that an app can have renewed, kept over restarts. The replayer decides when: before the
// token ends by the server's clock, and when the server refuses it. Here, many who want a new one
// become one request to the issuer. Spec/operations/secrets.md, SEC-12 to SEC-16.

/// A token that is renewed by a closure of the app, once for all who wait.
///
/// ```swift
/// let credentials = RefreshingCredentials(store: KeychainSecretStore(service: "my.app")) { old in
///     try await issuer.renew()  // nil if the issuer refuses
/// }
/// try await credentials.set(AccessToken(value, expiresAt: end))  // after the user has signed in
/// ```
public actor RefreshingCredentials: Credentials {
    /// Asks whoever issues tokens for a new one; gets the old one. Returns nil where the issuer
    /// refuses, so that the user must sign in again; throws where it could not be reached. What it
    /// throws may be shown to people and must not hold a token.
    public typealias Refresh = @Sendable (AccessToken?) async throws -> AccessToken?

    /// The name under which a token is kept unless the app says otherwise.
    public static let defaultName = "daybook.token"

    /// Why the token could not be kept the last time; nil if it could. The token counts all the
    /// same, until the process ends.
    public private(set) var storeFailure: SecretStoreError?

    private let ask: Refresh
    private let store: (any SecretStore)?
    private let name: String

    private var current: AccessToken?
    private var isLoaded: Bool
    /// The issuer has refused, or the user has signed out: nobody asks in vain again.
    private var isRefused = false

    private var request: Task<Void, Never>?
    /// Raised by every request and by everything that makes one obsolete.
    private var requestNumber = 0
    private var waiting: [Int: CheckedContinuation<AccessToken?, any Error>] = [:]
    private var lastWaiter = 0
    /// The newest write to the store; each waits for the one before.
    private var saving: Task<SecretStoreError?, Never>?

    /// Creates credentials without a token, or with the one that is stored.
    ///
    /// - Parameters:
    ///   - store: where the token is kept over restarts; nil to keep it in memory only.
    ///   - name: the token's name in the store. One for each account.
    ///   - refresh: asks for a new token.
    public init(
        store: (any SecretStore)? = nil, name: String = RefreshingCredentials.defaultName,
        refresh: @escaping Refresh
    ) {
        self.store = store
        self.name = name
        ask = refresh
        isLoaded = store == nil
    }

    /// The token, or nil if there is none.
    ///
    /// - Throws: `SecretStoreError` where the stored one could not be read; it is tried again the
    ///   next time.
    public func token() async throws -> AccessToken? {
        try await load()
        return current
    }

    /// A new token in place of `old`.
    ///
    /// If there is one already, it is returned at once. Otherwise the issuer is asked, once for all
    /// who wait. Cancelling one who waits ends its wait only.
    ///
    /// - Returns: nil if the issuer refused, now or earlier, or the user has signed out.
    /// - Throws: what the app's closure throws, to all who wait; the next call asks again.
    ///   `CancellationError` where the caller was cancelled.
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
                if request == nil { begin(old) }
            }
        } onCancel: {
            Task { await giveUp(waiter) }
        }
    }

    /// Takes a token that the app got by itself, after the user has signed in. Whoever waits for a
    /// new one gets it; a refusal is forgotten.
    ///
    /// - Throws: `SecretStoreError` where it could not be kept. It counts all the same, until the
    ///   process ends.
    public func set(_ token: AccessToken) async throws(SecretStoreError) {
        try await replace(token)
    }

    /// Forgets the token, also the stored one. Nobody asks for a new one until `set(_:)`.
    ///
    /// - Throws: `SecretStoreError` where the stored one may still be there; call again.
    public func signOut() async throws(SecretStoreError) {
        try await replace(nil)
    }

    // MARK: Asking

    private func begin(_ old: AccessToken?) {
        requestNumber += 1
        let number = requestNumber
        request = Task { [ask] in
            let answer: Result<AccessToken?, any Error>
            do { answer = .success(try await ask(old)) } catch { answer = .failure(error) }
            await end(number, answer)
        }
    }

    private func end(_ number: Int, _ answer: Result<AccessToken?, any Error>) async {
        // Otherwise the app has set a token or has signed out meanwhile: that counts.
        guard number == requestNumber else { return }
        request = nil
        let answered = waiting.values
        waiting = [:]
        switch answer {
        case .success(let new?):
            current = new
            _ = await save()
            // What counts by now.
            for continuation in answered { continuation.resume(returning: current) }
        case .success(nil):
            isRefused = true
            for continuation in answered { continuation.resume(returning: nil) }
        case .failure(let error):
            for continuation in answered { continuation.resume(throwing: error) }
        }
    }

    private func giveUp(_ waiter: Int) {
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

    // MARK: Keeping

    private func load() async throws(SecretStoreError) {
        guard !isLoaded, let store else { return }
        let bytes = try await store.read(name)
        // Somebody else was quicker, or the app has set one meanwhile.
        guard !isLoaded else { return }
        isLoaded = true
        guard let bytes else { return }
        current = StoredToken.read(bytes)
        if current == nil {
            storeFailure = SecretStoreError(
                .damaged, place: name, "what is stored is no token. It counts as none")
        }
    }

    /// Brings the store to the current token, behind the writes that are under way.
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
