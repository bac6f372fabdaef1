// The right of a request to act for the account of its token. A request may outlive its token: it waits for
// capacities, a body or the database, or its client reads slowly. So it asks again after each wait and before
// each part of a reply. Spec/operations/operating.md, OPS-26.

/// The right of one request, which ends when its token is withdrawn.
struct Permission: Sendable {
    private let tokens: TokenFile
    /// The token and its account when the request came.
    let credential: AccountTokens.Credential

    init(_ credential: AccountTokens.Credential, in tokens: TokenFile) {
        self.tokens = tokens
        self.credential = credential
    }

    /// True until the token is withdrawn, or given to another account.
    var holds: Bool { tokens.holds(credential) }

    /// Checks that the token was not withdrawn.
    ///
    /// - Throws: `RequestError` with 401.
    func check() throws(RequestError) {
        guard holds else { throw Self.unknownToken }
    }

    /// The refusal of a token that belongs to no account.
    static var unknownToken: RequestError {
        RequestError(
            .unauthorized, "unauthorized", "the token is unknown",
            headers: [.wwwAuthenticate: "Bearer realm=\"daybook\", error=\"invalid_token\""])
    }
}
