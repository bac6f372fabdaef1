// Finds out for which account a request is made, whether the client means the same one, and whether
// it is one request too many, before anything else looks at it. Spec/protocol/sync-protocol.md, SYNC-3,
// SYNC-47, SYNC-48; Spec/operations/operating.md, OPS-4.

import EventSourcing
import Hummingbird
import NIOHTTPTypes

/// Lets a request pass in the name of its token's account.
struct Authentication: RouterMiddleware {
    /// Nil: every request is made for the account `local`.
    let tokens: TokenFile?
    /// How many requests a token may make.
    let rates: RateLimit?
    /// The connections, each of which counts for its account.
    let connections: Connections
    /// Whether the token of the operator is asked for, or one of an account.
    let isForOperator: Bool

    private static let accountField: HTTPFields.Element.Name = {
        guard let name = HTTPFields.Element.Name(AccountHeader.name) else {
            preconditionFailure("a valid name")
        }
        return name
    }()

    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        guard let tokens else { return try await next(request, context) }
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
            throw RequestError(
                .unauthorized, "unauthorized", "the token is not known here",
                headers: [.wwwAuthenticate: "Bearer realm=\"daybook\", error=\"invalid_token\""])
        }
        context.record.account = credential.account
        connections.set(context.channel, account: credential.account)
        if !isForOperator {
            context.record.replyFields[Self.accountField] =
                AccountHeader.value(for: credential.account)
        }
        if let wait = rates?.take(credential.fingerprint) {
            throw RequestError(
                .tooManyRequests, "too_many_requests", "more requests than this token may make",
                headers: [.retryAfter: String(wait)])
        }
        guard !isForOperator else { return try await next(request, context) }
        if let meant = request.headers[Self.accountField],
            !AccountHeader.account(of: meant).utf8.elementsEqual(credential.account.utf8)
        {
            throw RequestError(
                .forbidden, "wrong_account", "the token is for another account than the log")
        }
        var context = context
        context.account = credential.account
        return try await next(request, context)
    }
}
