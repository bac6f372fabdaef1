// A server of images and manifests on this machine, for tests of DownloadManager and for DownloadHistory. It
// can misbehave: stall, break connections, send wrong lengths, ignore ranges, never end.

import DaybookTestKit
import Foundation
import Synchronization

/// A server whose replies a closure makes. It stops when it is released.
package final class ImageServer: Sendable {
    /// A received request.
    package struct Request: Sendable {
        /// The path with its query, as it was sent.
        package var path: String
        /// The headers by lower-case name.
        package var headers: [String: String]
        /// The number of earlier requests for this path.
        package var earlier: Int

        /// The first byte of `Range: bytes=N-`.
        package var rangeStart: Int? {
            headers["range"].flatMap { text in
                guard text.hasPrefix("bytes="), text.hasSuffix("-") else { return nil }
                return Int(text.dropFirst(6).dropLast())
            }
        }
    }

    /// A reply.
    package struct Reply: Sendable {
        package var status: Int
        package var headers: [(name: String, value: String)]
        package var body: [UInt8]
        /// The value of `Content-Length`; nil omits the header, and the connection ends after the body.
        package var length: Int?
        /// The number of bytes of the body after which the connection breaks.
        package var cutAfter: Int?
        /// The number of bytes of the body after which the server stalls.
        package var stallAfter: Int?
        /// Whether the body is repeated without end.
        package var isEndless = false
        /// The rate at which the body is sent.
        package var bytesPerSecond: Int?

        package init(
            _ status: Int, _ headers: [(name: String, value: String)] = [], _ body: [UInt8] = []
        ) {
            self.status = status
            self.headers = headers
            self.body = body
            length = body.count
        }

        /// The reply of a correct server: a range if the request asks for one and its `If-Range` matches.
        package static func content(
            _ bytes: [UInt8], etag: String?, to request: Request
        ) -> Reply {
            var headers = [(name: "Accept-Ranges", value: "bytes")]
            if let etag { headers.append(("ETag", etag)) }
            let isSame = request.headers["if-range"].map { $0 == etag } ?? true
            guard let start = request.rangeStart, isSame else {
                return Reply(200, headers, bytes)
            }
            guard start < bytes.count else {
                return Reply(416, headers + [("Content-Range", "bytes */\(bytes.count)")])
            }
            headers.append(("Content-Range", "bytes \(start)-\(bytes.count - 1)/\(bytes.count)"))
            return Reply(206, headers, Array(bytes[start...]))
        }

        /// A reply with JSON text.
        package static func json(_ text: String) -> Reply {
            Reply(200, [("Content-Type", "application/json")], Array(text.utf8))
        }
    }

    /// The state that the connections share.
    private final class Record: Sendable {
        let requests = Mutex<[Request]>([])
        let sent = Mutex<[String: Int]>([:])
        let activeReplies = Mutex((now: 0, max: 0))

        func recordRequest(_ request: LoopbackServer.Request) -> Request {
            let headers = Dictionary(
                request.headers.map { ($0.name.lowercased(), $0.value) },
                uniquingKeysWith: { $1 })
            return requests.withLock { requests in
                let request = Request(
                    path: request.target, headers: headers,
                    earlier: requests.count { $0.path == request.target })
                requests.append(request)
                return request
            }
        }

        func send(
            _ reply: Reply, _ path: String, _ connection: LoopbackServer.Connection
        ) throws {
            activeReplies.withLock { active in
                active.now += 1
                active.max = max(active.max, active.now)
            }
            defer { activeReplies.withLock { $0.now -= 1 } }
            try connection.sendReply(
                reply.status, reply.headers, [], length: reply.length,
                isLast: reply.length != reply.body.count)
            var sentBytes = 0
            while true {
                var remaining = reply.body.dropFirst(
                    reply.body.isEmpty ? 0 : sentBytes % reply.body.count)
                if sentBytes >= reply.body.count, !reply.isEndless { return }
                if let end = reply.cutAfter { remaining = remaining.prefix(end - sentBytes) }
                if let end = reply.stallAfter { remaining = remaining.prefix(end - sentBytes) }
                if remaining.isEmpty {
                    if reply.cutAfter == sentBytes {
                        connection.socket.resetOnClose()
                        throw SocketError.ended
                    }
                    while true { try connection.pause(milliseconds: Int(Int32.max)) }
                }
                remaining = remaining.prefix(
                    reply.bytesPerSecond.map { min(Self.pieceBytes, max(1, $0 / 10)) } ?? 65_536)
                try connection.socket.send(remaining)
                sentBytes += remaining.count
                sent.withLock { $0[path, default: 0] += remaining.count }
                if let rate = reply.bytesPerSecond {
                    try connection.pause(milliseconds: remaining.count * 1_000 / rate)
                }
            }
        }

        private static let pieceBytes = 8_192
    }

    private let record = Record()
    private let server: LoopbackServer

    /// Starts a server.
    ///
    /// - Parameter answer: called for each request, on the connection's thread.
    package init(_ answer: @escaping @Sendable (Request) -> Reply) throws {
        server = try LoopbackServer { [record] connection in
            while let request = try connection.nextRequest().map(record.recordRequest) {
                let reply = answer(request)
                try record.send(reply, request.path, connection)
                if reply.length != reply.body.count { return }
            }
        }
    }

    /// The base URL, without a slash at the end.
    package var base: String { server.base }

    /// The requests so far.
    package var requests: [Request] { record.requests.withLock { $0 } }

    /// The requests for a path so far.
    package func requests(_ path: String) -> [Request] { requests.filter { $0.path == path } }

    /// The number of body bytes that were sent so far, by path.
    package var sent: [String: Int] { record.sent.withLock { $0 } }

    /// The highest number of concurrent replies so far.
    package var maxConcurrentReplies: Int { record.activeReplies.withLock { $0.max } }

    /// Ends all connections, and waits for their threads.
    package func stop() { server.stop() }
}
