// The exact paths and their methods. A path in another spelling (`//`, a slash at the end, escapes) is
// another path: 404. Spec/protocol/sync-protocol.md, SYNC-1.

import Hummingbird
import SyncWire

/// Refuses requests for other paths and methods.
struct KnownPaths: RouterMiddleware {
    private static let methods: [String: [String]] = [
        "/healthz": ["GET"], "/readyz": ["GET"], "/metrics": ["GET"],
        eventsPath: ["GET", "POST"],
    ]

    /// Whether a path is served.
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
                "this path accepts \(methods.joined(separator: " and ")) only",
                headers: [.allow: methods.joined(separator: ", ")])
        }
        if let expected = request.headers[.expect], expected.lowercased() != "100-continue" {
            throw RequestError(
                .expectationFailed, "expectation_failed",
                "the only supported value of Expect is 100-continue")
        }
        return try await next(request, context)
    }
}
