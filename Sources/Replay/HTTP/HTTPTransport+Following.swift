// The stream of the sync protocol: GET {endpoint} with `Accept: text/event-stream`.
// Spec/protocol/push.md, PUSH-1 to PUSH-5 and PUSH-11.

import EventSourcing
import Foundation
import Synchronization

extension HTTPTransport: FollowingTransport {
    /// The longest time without a byte of a stream, in seconds: two heartbeats of a server, and 10 s.
    static let silenceSeconds = 100.0

    /// Opens a stream of the account's events.
    ///
    /// - Throws: `TransportError`, as `send(_:token:account:)`; `CancellationError`.
    public func follow(
        after cursor: String?, token: String?, account: String?,
        receive: @escaping @Sendable (StreamSignal) -> Bool
    ) async throws -> StreamEnd {
        var request = BoundedHTTPRequest(endpoint)
        if let cursor { request.url = try HTTPOrigin.page(cursor, from: endpoint) }
        request.set("Accept", EventStreamBody.contentType)
        let account = self.account.name(for: account)
        if let account { request.set(account: account) }
        let body = EventStreamBody(cursors: StreamCursors(request.url), receive)
        let head = try await streams.send(request, token: token, to: body)
        try BoundedHTTPClient.checkAccount(account, of: head, from: request.url)
        guard body.isStream else {
            return .refused(
                status: head.status,
                retryAfterSeconds: head["Retry-After"].flatMap {
                    HTTPDate.retryAfterSeconds($0, now: head["Date"])
                })
        }
        guard !body.isMalformed else {
            throw TransportError(
                .malformedReply, location: request.url.host ?? "server",
                "the stream has an event that is too long or has no id")
        }
        return .ended
    }
}

/// The cursors of a stream, in the form in which pages are read after them.
struct StreamCursors {
    /// Path and query up to the value of `after`.
    private let prefix: String

    /// - Parameter url: the URL of the stream.
    init(_ url: URL) {
        let parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        let path = parts?.percentEncodedPath ?? ""
        let others = (parts?.percentEncodedQuery ?? "").split(separator: "&")
            .filter { $0 != "after" && !$0.hasPrefix("after=") }
        prefix =
            (path.isEmpty ? "/" : path) + "?" + others.map { $0 + "&" }.joined() + "after="
    }

    /// The cursor after the event with an id; nil for an id that cannot be one.
    func cursor(_ id: [UInt8]) -> String? {
        guard !id.isEmpty, id.count <= 1_024 else { return nil }
        // Percent-encodes as the value of a header that names an account.
        return prefix + AccountHeader.value(for: String(decoding: id, as: UTF8.self))
    }
}

/// The body of a stream.
private final class EventStreamBody: ResponseBodyHandler {
    static let contentType = "text/event-stream"

    private struct State {
        var parser = ServerSentEvents()
        var isStream = false
        var isMalformed = false
        var isOpen = false
    }

    private let state = Mutex(State())
    private let cursors: StreamCursors
    private let pass: @Sendable (StreamSignal) -> Bool

    init(cursors: StreamCursors, _ pass: @escaping @Sendable (StreamSignal) -> Bool) {
        self.cursors = cursors
        self.pass = pass
    }

    /// Whether the reply is a stream of events.
    var isStream: Bool { state.withLock { $0.isStream } }
    /// Whether the stream has ended because of an event that cannot be used.
    var isMalformed: Bool { state.withLock { $0.isMalformed } }

    func begin(_ head: BoundedHTTPResponseHead) -> Bool {
        let type = (head["Content-Type"] ?? "").lowercased().split(separator: ";").first
        let isStream =
            head.status == 200 && head.isPlain
            && type?.trimmingCharacters(in: .whitespaces) == Self.contentType
        state.withLock { $0.isStream = isStream }
        return isStream
    }

    func receive(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            if !state.isOpen {
                state.isOpen = true
                guard pass(.opened) else { return false }
            }
            var hasID = true
            do throws(ServerSentEvents.TooLong) {
                let goesOn = try state.parser.parse(bytes) { event in
                    guard let next = cursors.cursor(event.id) else {
                        hasID = false
                        return false
                    }
                    return pass(.event(event.data, next: next))
                }
                state.isMalformed = !hasID
                return goesOn
            } catch {
                state.isMalformed = true
                return false
            }
        }
    }
}
