// Turns whatever went wrong into a reply: the last step of every refused request. Every reply, refusal
// or not, gets the headers that were noted on the way inwards. The log gets the kind of failure, never
// what the request said. Spec/protocol/sync-protocol.md, SYNC-40, SYNC-41 and SYNC-48.

import Hummingbird
import NIOHTTP1
import SyncServerStorage

/// Answers errors.
struct ErrorReplies: RouterMiddleware {
    private static let unavailable = RequestError(
        .serviceUnavailable, "unavailable", "the database cannot be used now",
        headers: [.retryAfter: "5"])

    private static let noRoom = RequestError(
        .serviceUnavailable, "unavailable", "there is no room to store events",
        headers: [.retryAfter: "30"])

    func handle(
        _ request: Request, context: ServerContext,
        next: (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        var reply = try await reply(request, context, next)
        reply.headers.append(contentsOf: context.record.replyFields)
        // A body after the reply to HEAD would be taken for the start of the next reply. The headers
        // stay, the length among them. RFC 9110, section 9.3.2.
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
            return Reply.error(error.code == .noRoom ? Self.noRoom : Self.unavailable)
        } catch is CancellationError {
            return Reply.error(Self.unavailable)
        } catch let error as HTTPParserError {
            throw error  // Hummingbird answers broken HTTP with 400 and closes the connection.
        } catch {
            context.logger.error("request failed", metadata: ["kind": "\(type(of: error))"])
            return Reply.error(
                RequestError(.internalServerError, "internal", "the server has made a mistake"))
        }
    }
}
