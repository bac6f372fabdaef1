// Finds the account of a request's token, compares it with the account that the client expects, and
// applies the rate limit. Spec/protocol/sync-protocol.md, SYNC-3, SYNC-47, SYNC-48;
// Spec/operations/operating.md, OPS-4.

import EventSourcing
import Hummingbird
import NIOHTTPTypes

/// Passes a request on with the account of its token.
struct Authentication: RouterMiddleware {
    /// The tokens; nil uses the account `local` for every request.
    let tokens: TokenFile?
    /// The rate limit of each token; nil sets none.
    let rates: RateLimit?
    /// The open connections, whose accounts are set here.
    let connections: Connections
    /// The name of the server, which each reply has; nil for none (SYNC-50).
    let server: String?
    /// True if the operator's token is required, false for a token of an account.
    let isForOperator: Bool

    private static let accountField = HTTPFields.Element.Name(valid: AccountHeader.name)
    private static let serverField = HTTPFields.Element.Name(valid: "Daybook-Server")
    /// The header's value for a log that has events of no known account. An account named `*` is `%2A`.
    private static let unknownAccount = "*"

    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        guard let tokens else {
            context.record.replyFields[Self.serverField] = server
            return try await next(request, context)
        }
        guard let header = request.headers[.authorization] else {
            throw RequestError(
                .unauthorized, "unauthorized", "a bearer token is needed",
                headers: [.wwwAuthenticate: "Bearer realm=\"daybook\""])
        }
        let words = header.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bearer",
            let credential = tokens.credential(of: words[1]),
            isForOperator == (credential.account == AccountTokens.operatorAccount)
        else {
            throw Permission.unknownToken
        }
        let permission = Permission(credential, in: tokens)
        context.record.account = credential.account
        connections.set(context.channel, permission)
        if !isForOperator {
            context.record.replyFields[Self.serverField] = server
            context.record.replyFields[Self.accountField] =
                AccountHeader.value(for: credential.account)
        }
        if let wait = rates?.spendRequest(of: credential.fingerprint) {
            throw RequestError(
                .tooManyRequests, "too_many_requests", "this token has made too many requests",
                headers: [.retryAfter: String(wait)])
        }
        if !isForOperator, let expected = request.headers[Self.accountField] {
            try Self.check(expected, credential)
        }
        var context = context
        context.account = credential.account
        context.checkPermission = { () throws(RequestError) in try permission.check() }
        let reply = try await next(request, context)
        // The request may have waited long.
        try permission.check()
        return reply
    }

    /// Compares the account that a request names with that of its token.
    ///
    /// - Throws: `RequestError` with 403.
    private static func check(
        _ expected: String, _ credential: AccountTokens.Credential
    ) throws(RequestError) {
        guard expected != unknownAccount else {
            throw RequestError(
                .forbidden, "account_needed", "the log has events of no known account")
        }
        guard AccountHeader.account(of: expected).utf8.elementsEqual(credential.account.utf8)
        else {
            throw RequestError(
                .forbidden, "wrong_account", "the token is for another account than the log")
        }
    }
}
