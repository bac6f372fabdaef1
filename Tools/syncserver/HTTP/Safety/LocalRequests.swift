// A server without tokens obeys every local request, and a web page can make a local browser send one:
// through a host name that resolves to loopback (DNS rebinding), or across sites. The Host or Origin of
// such requests names the page's site. Spec/operations/operating.md, OPS-23.

import Hummingbird

/// Refuses requests whose Host or Origin is not this machine.
struct LocalRequests: RouterMiddleware {
    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        guard Loopback.contains(authority: request.head.authority ?? "") else {
            throw RequestError(
                .misdirectedRequest, "wrong_host",
                "a server without tokens answers only for localhost or a loopback address")
        }
        if let origin = request.headers[.origin], !Loopback.contains(origin: origin) {
            throw RequestError(
                .forbidden, "wrong_origin",
                "a server without tokens answers only web pages of this machine")
        }
        return try await next(request, context)
    }
}
