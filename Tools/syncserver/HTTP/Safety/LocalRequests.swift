// Without tokens every request is obeyed that reaches this machine, and a web page can make a browser
// on it send one: by a name of its own that it lets point here (DNS rebinding), or across sites. Such
// requests carry the page's name. Spec/operations/operating.md, OPS-23.

import Hummingbird

/// Refuses requests that are not made in the name of this machine.
struct LocalRequests: RouterMiddleware {
    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        guard Loopback.contains(authority: request.head.authority ?? "") else {
            throw RequestError(
                .misdirectedRequest, "wrong_host",
                "a server without tokens answers under localhost or a loopback address only")
        }
        if let origin = request.headers[.origin], !Loopback.contains(origin: origin) {
            throw RequestError(
                .forbidden, "wrong_origin",
                "a server without tokens answers no web pages but those of this machine")
        }
        return try await next(request, context)
    }
}
