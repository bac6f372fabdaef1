// Routes for the machines that run the server: liveness, readiness, counters.
// Spec/operations/operating.md, OPS-7 and OPS-8.

import Hummingbird
import SyncServerStorage
import Synchronization

/// `/healthz`, `/readyz` and `/metrics`.
struct OperationRoutes: Sendable {
    let readiness: ReadinessProbe
    let metrics: ServerMetrics
    let connections: Connections
    let capacity: SharedCapacity
    let signals: AccountSignals

    /// Adds the routes.
    ///
    /// - Parameter operators: the group that requires the operator's token.
    func add(to router: Router<ServerContext>, operators: RouterGroup<ServerContext>) {
        router.get("healthz") { _, _ in Self.status("ok") }
        router.get("readyz", use: ready)
        operators.get("metrics") { _, _ in
            let text = metrics.text(
                openConnections: connections.count, openStreams: signals.count,
                heldBytes: capacity.memoryUsed)
            return Reply.json(
                .ok, Array(text.utf8), contentType: "text/plain; version=0.0.4; charset=utf-8")
        }
    }

    /// Replies `ready` if the storage answers and can store a batch.
    @Sendable private func ready(_ request: Request, _ context: ServerContext) async throws
        -> Response
    {
        try await readiness.check()
        return Self.status("ready")
    }

    private static func status(_ word: String) -> Response {
        Reply.json(.ok, Array("{\"status\":\"\(word)\"}".utf8))
    }
}
