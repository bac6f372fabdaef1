// The outermost middleware: logs and counts each request. Spec/operations/operating.md, OPS-9, defines
// the line; it contains no events, tokens or queries (SYNC-43).

import Hummingbird
import Logging

/// Logs and counts requests.
struct RequestLog: RouterMiddleware {
    let metrics: ServerMetrics

    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        let start = ContinuousClock.now
        var status = HTTPResponse.Status.badRequest
        defer { finish(request, context, status, ContinuousClock.now - start) }
        let response = try await next(request, context)
        status = response.status
        return response
    }

    private func finish(
        _ request: Request, _ context: ServerContext, _ status: HTTPResponse.Status,
        _ duration: Duration
    ) {
        let path = KnownPaths.isKnown(request.uri.path) ? request.uri.path : "other"
        let method =
            ["GET", "POST"].contains(request.method.rawValue)
            ? request.method.rawValue : "other"
        let seconds = duration / .seconds(1)
        metrics.countRequest("\(method) \(path)", status: status.code, seconds: seconds)
        var metadata: Logger.Metadata = [
            "method": "\(method)", "path": "\(path)", "status": .stringConvertible(status.code),
            "milliseconds": .stringConvertible(Int((seconds * 1_000).rounded())),
        ]
        metadata["account"] = context.record.accountDigest.map { "\($0)" }
        for (name, count) in context.record.counts { metadata[name] = .stringConvertible(count) }
        // Probes come every few seconds: a successful one is logged at level debug.
        let isProbe = path != "/v1/events" && path != "other" && status.code == 200
        context.logger.log(level: isProbe ? .debug : .info, "request", metadata: metadata)
    }
}
