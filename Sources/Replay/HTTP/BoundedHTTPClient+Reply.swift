// Requests of the sync protocol, whose replies are collected in memory up to a limit. Shared by HTTPTransport
// and SupabaseTransport. Spec/protocol/sync-protocol.md; Spec/operations/secrets.md, SEC-20, SEC-24.

import Foundation
import SyncWire
import Synchronization

extension BoundedHTTPClient {
    /// Sends one request of the sync protocol.
    ///
    /// - Parameter account: the server's name for the account that owns the log; nil to send none and to
    ///   check none in the reply.
    /// - Throws: as `send(_:token:to:)`; `replyTooLong`; `malformedReply` for a body with a content
    ///   encoding; `wrongAccount`.
    func send(
        _ request: BoundedHTTPRequest, token: String?, account: String? = nil
    ) async throws -> TransportReply {
        var request = request
        if let account { request.set(account: account) }
        let body = ReplyBody()
        let head = try await send(request, token: token, to: body)
        // Before the body: nothing in a reply for another account may be used.
        if head.isPlain { try Self.checkAccount(account, of: head, from: request.url) }
        let bytes = try body.checked(head, from: request.url)
        return TransportReply(
            status: head.status, body: bytes, date: head["Date"].flatMap(HTTPDate.parse),
            retryAfterSeconds: head["Retry-After"].flatMap {
                HTTPDate.retryAfterSeconds($0, now: head["Date"])
            },
            next: head[LinkHeader.name].flatMap(LinkHeader.next).flatMap {
                Self.cursor($0, from: request.url)
            },
            remaining: head[WireHeader.remaining].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 },
            restore: head[WireHeader.restored].flatMap(ServerRestore.init(header:)),
            server: head[WireHeader.server],
            account: head[AccountHeader.name].map(AccountHeader.account))
    }

    /// Checks that a reply is for the account that owns the log.
    ///
    /// - Parameter account: nil to check none.
    /// - Throws: `wrongAccount`, `accountNeeded`.
    static func checkAccount(
        _ account: String?, of head: BoundedHTTPResponseHead, from url: URL
    ) throws(TransportError) {
        guard let account, let named = head[AccountHeader.name],
            !AccountHeader.account(of: named).utf8.elementsEqual(account.utf8)
        else { return }
        throw TransportError.account(account, at: url.host ?? "server")
    }

    /// The cursor of a link: its path and query, because a cursor must be valid without the page that the
    /// link is relative to. Nil for a link to another server.
    private static func cursor(_ link: String, from page: URL) -> String? {
        let isRooted = link.hasPrefix("/") && !link.hasPrefix("//")
        guard !isRooted else { return link }
        guard let target = try? HTTPOrigin.page(link, from: page),
            let parts = URLComponents(url: target, resolvingAgainstBaseURL: true)
        else { return nil }
        let path = parts.percentEncodedPath
        return (path.isEmpty ? "/" : path) + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
    }
}

extension BoundedHTTPRequest {
    /// The value for a log that has events of no known account. An account named `*` would be `%2A`.
    private static let unknownAccount = "*"

    /// Sets the header that names the log's account.
    ///
    /// - Parameter account: empty if the log has events of no known account (SYNC-51).
    mutating func set(account: String) {
        set(
            AccountHeader.name,
            account.isEmpty ? Self.unknownAccount : AccountHeader.value(for: account))
    }
}

/// Collects a body up to its limit, and ends the request if the reply is too long or encoded.
final class ReplyBody: ResponseBodyHandler {
    /// The largest size of a reply's body in bytes.
    static let bytesMax = 4 * 1024 * 1024

    private let content = Mutex<[UInt8]?>([])

    /// The bytes; nil if there were more than `bytesMax`.
    var bytes: [UInt8]? { content.withLock { $0 } }

    /// The bytes of a complete reply.
    ///
    /// - Throws: `TransportError`: `malformedReply` for a content encoding, `replyTooLong`.
    func checked(_ head: BoundedHTTPResponseHead, from url: URL) throws(TransportError) -> [UInt8] {
        let location = url.host ?? "server"
        guard head.isPlain else {
            throw TransportError(
                .malformedReply, location: location,
                "the reply has a content encoding, which is not allowed")
        }
        guard let bytes else {
            throw TransportError(
                .replyTooLong, location: location,
                "the reply has more than \(Self.bytesMax) bytes")
        }
        return bytes
    }

    func begin(_ head: BoundedHTTPResponseHead) -> Bool {
        guard head["Content-Length"].flatMap({ Int($0) }) ?? 0 <= Self.bytesMax else {
            content.withLock { $0 = nil }
            return false
        }
        return head.isPlain
    }

    func receive(_ bytes: [UInt8]) -> Bool {
        content.withLock { content in
            guard (content?.count ?? .max) <= Self.bytesMax - bytes.count else {
                content = nil
                return false
            }
            content? += bytes
            return true
        }
    }
}
