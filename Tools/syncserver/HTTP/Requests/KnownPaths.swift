// Which paths there are, to the letter, and what may be done with each: the first look at a request.
// A path in another spelling (`//`, a slash at the end, escapes) is another path, and there is none.
// Spec/protocol/sync-protocol.md, SYNC-1.

import Hummingbird

/// Refuses requests for what is not served.
struct KnownPaths: RouterMiddleware {
    private static let methods: [String: [String]] = [
        "/healthz": ["GET"], "/readyz": ["GET"], "/metrics": ["GET"],
        "/v1/events": ["GET", "POST"],
    ]

    /// Whether something is served under a path.
    static func isKnown(_ path: String) -> Bool { methods[path] != nil }

    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        guard let methods = Self.methods[request.uri.path] else {
            throw RequestError(.notFound, "not_found", "nothing is served under this path")
        }
        guard methods.contains(request.method.rawValue) else {
            throw RequestError(
                .methodNotAllowed, "method_not_allowed",
                "this path takes \(methods.joined(separator: " and ")) only",
                headers: [.allow: methods.joined(separator: ", ")])
        }
        if let expected = request.headers[.expect], expected.lowercased() != "100-continue" {
            throw RequestError(
                .expectationFailed, "expectation_failed", "only 100-continue can be expected")
        }
        return try await next(request, context)
    }
}
