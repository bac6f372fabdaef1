// A server of images and manifests on this machine, which can do all that a server should not: stall,
// cut, lie about lengths, ignore ranges, never end. What DownloadManager is tried
// with, in tests and by DownloadHistory.

import DaybookTestKit
import Foundation
import Synchronization

/// Answers requests as a closure says, for as long as somebody holds it.
package final class ImageServer: Sendable {
    /// A request as it came.
    package struct Request: Sendable {
        /// The path with its query, as it was sent.
        package var path: String
        /// Values by names in lower case.
        package var headers: [String: String]
        /// How many requests for this path came before.
        package var earlier: Int

        /// The first byte of `Range: bytes=N-`.
        package var rangeStart: Int? {
            headers["range"].flatMap { text in
                guard text.hasPrefix("bytes="), text.hasSuffix("-") else { return nil }
                return Int(text.dropFirst(6).dropLast())
            }
        }
    }

    /// What goes back.
    package struct Reply: Sendable {
        package var status: Int
        package var headers: [(name: String, value: String)]
        package var body: [UInt8]
        /// What `Content-Length` says; nil leaves it out, and the connection ends after the body.
        package var length: Int?
        /// Bytes of the body after which the connection breaks.
        package var cutAfter: Int?
        /// Bytes of the body after which nothing comes any more.
        package var stallAfter: Int?
        /// Whether the body begins anew when it has ended, for ever.
        package var isEndless = false
        /// How fast it is sent.
        package var bytesPerSecond: Int?

        package init(
            _ status: Int, _ headers: [(name: String, value: String)] = [], _ body: [UInt8] = []
        ) {
            self.status = status
            self.headers = headers
            self.body = body
            length = body.count
        }

        /// A content as a good server sends it: from the first byte that was asked for, if it is
        /// still the same content.
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

        /// JSON text.
        package static func json(_ text: String) -> Reply {
            Reply(200, [("Content-Type", "application/json")], Array(text.utf8))
        }
    }

    /// What connections share.
    private final class Record: Sendable {
        let seen = Mutex<[Request]>([])
        let sent = Mutex<[String: Int]>([:])
        let open = Mutex((now: 0, most: 0))

        func add(_ request: LoopbackServer.Request) -> Request {
            let headers = Dictionary(
                request.headers.map { ($0.name.lowercased(), $0.value) },
                uniquingKeysWith: { $1 })
            return seen.withLock { seen in
                let request = Request(
                    path: request.target, headers: headers,
                    earlier: seen.count { $0.path == request.target })
                seen.append(request)
                return request
            }
        }

        func send(
            _ reply: Reply, _ path: String, _ connection: LoopbackServer.Connection
        ) throws {
            open.withLock { open in
                open.now += 1
                open.most = max(open.most, open.now)
            }
            defer { open.withLock { $0.now -= 1 } }
            try connection.sendReply(
                reply.status, reply.headers, [], length: reply.length,
                isLast: reply.length != reply.body.count)
            var done = 0
            while true {
                var rest = reply.body.dropFirst(reply.body.isEmpty ? 0 : done % reply.body.count)
                if done >= reply.body.count, !reply.isEndless { return }
                if let cut = reply.cutAfter { rest = rest.prefix(cut - done) }
                if let stall = reply.stallAfter { rest = rest.prefix(stall - done) }
                if rest.isEmpty {
                    if reply.cutAfter == done {
                        connection.socket.willReset()
                        throw SocketError.ended
                    }
                    while true { try connection.pause(milliseconds: Int(Int32.max)) }
                }
                rest = rest.prefix(reply.bytesPerSecond == nil ? 65_536 : Self.pieceBytes)
                try connection.socket.send(rest)
                done += rest.count
                sent.withLock { $0[path, default: 0] += rest.count }
                if let rate = reply.bytesPerSecond {
                    try connection.pause(milliseconds: rest.count * 1_000 / rate)
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
            while let request = try connection.nextRequest().map(record.add) {
                let reply = answer(request)
                try record.send(reply, request.path, connection)
                if reply.length != reply.body.count { return }
            }
        }
    }

    /// Where it is, without a slash at the end.
    package var base: String { server.base }

    /// The requests so far.
    package var requests: [Request] { record.seen.withLock { $0 } }

    /// The requests for a path so far.
    package func requests(_ path: String) -> [Request] { requests.filter { $0.path == path } }

    /// Bytes of bodies that were sent so far, by path.
    package var sent: [String: Int] { record.sent.withLock { $0 } }

    /// Answers that were under way at the same time at most.
    package var mostAtOnce: Int { record.open.withLock { $0.most } }

    /// Ends all connections, and waits for their threads.
    package func stop() { server.stop() }
}
