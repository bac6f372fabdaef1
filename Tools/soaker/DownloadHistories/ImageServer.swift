// A server of images and manifests on a raw socket of this machine, which can do all that a server
// should not: stall, cut, lie about lengths, ignore ranges, never end. What DownloadManager is tried
// with, in tests and by DownloadHistory.

import DaybookTestKit
import Dispatch
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
        /// What `Content-Length` says; nil leaves it out, and the connection ends behind the body.
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

    /// What threads share; they keep it alive, not the server itself.
    private final class Core: Sendable {
        let stop: StopSignal
        let listener: TCPListener
        let threads = DispatchGroup()
        let answer: @Sendable (Request) -> Reply
        let seen = Mutex<[Request]>([])
        let sent = Mutex<[String: Int]>([:])
        let open = Mutex((now: 0, most: 0))

        init(_ answer: @escaping @Sendable (Request) -> Reply) throws {
            stop = try StopSignal()
            listener = try TCPListener(stop: stop)
            self.answer = answer
        }

        func run(_ body: @escaping @Sendable (Core) -> Void) {
            threads.enter()
            Thread.detachNewThread { [self] in
                body(self)
                threads.leave()
            }
        }

        func acceptAll() {
            while let socket = listener.accept() { run { $0.serve(socket) } }
        }

        func serve(_ socket: TCPSocket) {
            var reader = HTTPReader(socket)
            do {
                while true {
                    let request = try parse(reader.request().head)
                    let reply = answer(request)
                    open.withLock { open in
                        open.now += 1
                        open.most = max(open.most, open.now)
                    }
                    defer { open.withLock { $0.now -= 1 } }
                    try send(reply, request.path, socket)
                    if reply.length != reply.body.count { return }
                }
            } catch { return }
        }

        private func parse(_ head: [UInt8]) throws -> Request {
            let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
            var headers: [String: String] = [:]
            for line in lines.dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { continue }
                headers[line[..<colon].lowercased()] = line[line.index(after: colon)...]
                    .trimmingCharacters(in: .whitespaces)
            }
            let words = lines[0].split(separator: " ")
            guard words.count == 3 else { throw SocketError.malformed }
            return seen.withLock { seen in
                let path = String(words[1])
                let request = Request(
                    path: path, headers: headers, earlier: seen.count { $0.path == path })
                seen.append(request)
                return request
            }
        }

        private func send(_ reply: Reply, _ path: String, _ socket: TCPSocket) throws {
            var head = "HTTP/1.1 \(reply.status) Status\r\n"
            for (name, value) in reply.headers { head += "\(name): \(value)\r\n" }
            if let length = reply.length { head += "Content-Length: \(length)\r\n" }
            if reply.length != reply.body.count { head += "Connection: close\r\n" }
            try socket.send(Array((head + "\r\n").utf8))
            var done = 0
            while true {
                var rest = reply.body.dropFirst(reply.body.isEmpty ? 0 : done % reply.body.count)
                if done >= reply.body.count, !reply.isEndless { return }
                if let cut = reply.cutAfter { rest = rest.prefix(cut - done) }
                if let stall = reply.stallAfter { rest = rest.prefix(stall - done) }
                if rest.isEmpty {
                    if reply.cutAfter == done {
                        socket.willReset()
                        throw SocketError.ended
                    }
                    _ = stop.wait(milliseconds: Int(Int32.max))
                    throw SocketError.stopped
                }
                rest = rest.prefix(reply.bytesPerSecond == nil ? 65_536 : Self.pieceBytes)
                try socket.send(rest)
                done += rest.count
                sent.withLock { $0[path, default: 0] += rest.count }
                if let rate = reply.bytesPerSecond,
                    stop.wait(milliseconds: rest.count * 1_000 / rate)
                {
                    throw SocketError.stopped
                }
            }
        }

        static let pieceBytes = 8_192
    }

    private let core: Core

    /// Starts a server.
    ///
    /// - Parameter answer: called for each request, on the connection's thread.
    package init(_ answer: @escaping @Sendable (Request) -> Reply) throws {
        core = try Core(answer)
        core.run { $0.acceptAll() }
    }

    deinit { stop() }

    /// Where it is, without a slash at the end.
    package var base: String { "http://127.0.0.1:\(core.listener.port)" }

    /// The requests so far.
    package var requests: [Request] { core.seen.withLock { $0 } }

    /// The requests for a path so far.
    package func requests(_ path: String) -> [Request] { requests.filter { $0.path == path } }

    /// Bytes of bodies that were sent so far, by path.
    package var sent: [String: Int] { core.sent.withLock { $0 } }

    /// Answers that were under way at the same time at most.
    package var mostAtOnce: Int { core.open.withLock { $0.most } }

    /// Ends all connections, and waits for their threads.
    package func stop() {
        core.stop.raise()
        core.threads.wait()
    }
}
