// Turns errors into replies, and gives every reply the headers of the request's record. The log gets
// the kind of failure, never the content of the request. Spec/protocol/sync-protocol.md, SYNC-40,
// SYNC-41 and SYNC-48.

import Hummingbird
import NIOHTTP1
import SyncServerStorage

/// Turns errors into replies.
struct ErrorReplies: RouterMiddleware {
    /// The clients back off by themselves; a longer wait would outlast a failover.
    private static let unavailable = RequestError(
        .serviceUnavailable, "unavailable", "the database is not available now",
        headers: [.retryAfter: "1"])

    private static let noSpace = RequestError(
        .serviceUnavailable, "unavailable", "no space is left to store events",
        headers: [.retryAfter: "30"])

    private static let readOnly = RequestError(
        .serviceUnavailable, "unavailable", "the database can only be read now",
        headers: [.retryAfter: "30"])

    private static func reply(to error: StorageError) -> Response {
        switch error.code {
        case .noSpace: Reply.error(noSpace)
        case .readOnly: Reply.error(readOnly)
        case .wrongDatabase, .missing, .failed: Reply.error(unavailable)
        }
    }

    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        var reply = try await reply(request, context, next)
        reply.headers.append(contentsOf: context.record.replyFields)
        // A client would read a body after the reply to HEAD as the start of the next reply. The
        // headers stay, the length among them. RFC 9110, section 9.3.2.
        return request.method == .head ? reply.createHeadResponse() : reply
    }

    private func reply(
        _ request: Request, _ context: ServerContext,
        _ next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as RequestError {
            return Reply.error(error)
        } catch let error as HTTPError {
            return Reply.error(
                RequestError(
                    error.status, error.status == .notFound ? "not_found" : "refused",
                    error.status.reasonPhrase))
        } catch let error as StorageError {
            context.logger.error("storage failed", metadata: ["cause": "\(error)"])
            return Self.reply(to: error)
        } catch is CancellationError {
            return Reply.error(Self.unavailable)
        } catch let error as HTTPParserError {
            throw error  // Hummingbird answers broken HTTP with 400 and closes the connection.
        } catch {
            context.logger.error("request failed", metadata: ["kind": "\(type(of: error))"])
            return Reply.error(
                RequestError(.internalServerError, "internal", "internal error of the server"))
        }
    }
}
