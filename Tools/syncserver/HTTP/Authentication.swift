// Finds out for which account a request is made, before anything else looks at it.
// Spec/sync-protocol.md, SYNC-3.

import Hummingbird

/// Lets a request pass in the name of its token's account.
struct Authentication: RouterMiddleware {
    /// Nil: every request is made for the account `local`.
    let tokens: AccountTokens?

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
            let account = tokens.account(of: words[1])
        else {
            throw RequestError(
                .unauthorized, "unauthorized", "the token is not known here",
                headers: [.wwwAuthenticate: "Bearer realm=\"daybook\", error=\"invalid_token\""])
        }
        var context = context
        context.account = account
        return try await next(request, context)
    }
}
