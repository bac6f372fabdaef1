// A server of a few lines on a free port of this machine, for tests of what really goes over a
// connection: one request a connection, answered by a closure, byte for byte where that is wanted.

import Foundation
import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#endif

/// A server on 127.0.0.1 that answers as it is told, for as long as somebody holds it: a test looks
/// at `requests` at its end.
public final class LocalServer: Sendable {
    /// A request as it came.
    public struct Request: Sendable {
        /// `POST`, `GET`.
        public var method: String
        /// The path with its query.
        public var target: String
        /// Names and values in the order in which they came.
        public var headers: [(name: String, value: String)]
        /// The body.
        public var body: [UInt8]

        /// The values of a header, whatever the case of its name.
        public func values(_ name: String) -> [String] {
            headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }

        /// The body as text.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// What goes back.
    public enum Answer: Sendable {
        /// A reply with a length.
        case reply(Int, headers: [(String, String)] = [], body: [UInt8] = [])
        /// These bytes and nothing else.
        case raw([UInt8])
        /// The connection is closed without a word.
        case hangUp
        /// What this does with the connection, which is closed when it returns.
        case script(@Sendable (Connection) -> Void)
    }

    /// A connection whose first request has been read.
    public struct Connection: Sendable {
        fileprivate let descriptor: Int32
        fileprivate let server: LocalServer

        /// Sends bytes.
        ///
        /// - Returns: false if the client has closed the connection.
        public func send(_ bytes: [UInt8]) -> Bool { LocalServer.send(bytes, descriptor) }

        /// Sends text.
        @discardableResult
        public func send(_ text: String) -> Bool { send(Array(text.utf8)) }

        /// Reads the next request; nil if the client has closed the connection.
        public func nextRequest() -> Request? {
            let request = LocalServer.read(descriptor)
            if let request { server.seen.withLock { $0.append(request) } }
            return request
        }

        /// Carries bytes to a server on this machine and back until either side ends.
        public func tunnel(to port: UInt16) {
            guard let other = LocalServer.connect(to: port) else { return }
            defer { close(other) }
            var piece = [UInt8](repeating: 0, count: 65_536)
            var ends = [descriptor, other].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            while poll(&ends, nfds_t(ends.count), -1) > 0 {
                for (index, end) in ends.enumerated() where end.revents != 0 {
                    let count = recv(end.fd, &piece, piece.count, 0)
                    guard count > 0 else { return }
                    guard LocalServer.send(Array(piece[..<count]), ends[1 - index].fd) else {
                        return
                    }
                }
            }
        }

        /// Waits until the client closes the connection.
        public func waitForEnd() {
            var piece = [UInt8](repeating: 0, count: 65_536)
            while recv(descriptor, &piece, piece.count, 0) > 0 {}
        }

        /// Lets the connection end as one that is reset.
        public func resetAtEnd() {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_LINGER, &linger,
                socklen_t(MemoryLayout.size(ofValue: linger)))
        }
    }

    /// The listening socket. Closed when neither the server nor its thread can use it any more:
    /// another server could get its number.
    private final class Listener: Sendable {
        let descriptor: Int32
        init(_ descriptor: Int32) { self.descriptor = descriptor }
        deinit { close(descriptor) }
    }

    private let listener: Listener
    /// The port that the system gave.
    public let port: UInt16
    private let answer: @Sendable (Request) -> Answer
    private let seen = Mutex<[Request]>([])
    private let connections = Mutex(0)

    /// Where the server is, without a slash at the end.
    public var base: String { "http://127.0.0.1:\(port)" }

    /// Connections with a request so far.
    public var connectionCount: Int { connections.withLock { $0 } }

    /// The requests so far.
    public var requests: [Request] { seen.withLock { $0 } }

    private struct Failure: Error { var call: String }

    /// Starts a server.
    ///
    /// - Parameter answer: called for each request, on a thread of its own.
    public init(_ answer: @escaping @Sendable (Request) -> Answer) throws {
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        guard descriptor >= 0 else { throw Failure(call: "socket") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard listening else {
            close(descriptor)
            throw Failure(call: "listen")
        }
        let listener = Listener(descriptor)
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        self.answer = answer
        Thread.detachNewThread { [weak self] in
            while true {
                let connection = accept(listener.descriptor, nil, nil)
                guard let self else {
                    if connection >= 0 { close(connection) }
                    break
                }
                if connection >= 0 { Thread.detachNewThread { self.serve(connection) } }
            }
        }
    }

    // Wakes the thread that waits for connections.
    deinit { shutdown(listener.descriptor, Int32(SHUT_RDWR)) }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        guard let request = Self.read(connection) else { return }
        connections.withLock { $0 += 1 }
        seen.withLock { $0.append(request) }
        switch answer(request) {
        case .reply(let status, let headers, let body):
            var head = "HTTP/1.1 \(status) Status\r\nConnection: close\r\n"
            for (name, value) in headers { head += "\(name): \(value)\r\n" }
            head += "Content-Length: \(body.count)\r\n\r\n"
            Self.send(Array(head.utf8) + body, connection)
        case .raw(let bytes): Self.send(bytes, connection)
        case .hangUp: break
        case .script(let script): script(Connection(descriptor: connection, server: self))
        }
    }

    private static func connect(to port: UInt16) -> Int32? {
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #if canImport(Darwin)
                    Darwin.connect(
                        descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                #else
                    Glibc.connect(
                        descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                #endif
            }
        }
        guard isConnected else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    private static func read(_ connection: Int32) -> Request? {
        var bytes: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        var request: Request?
        while true {
            if request == nil, let head = bytes.firstRange(of: end) {
                request = parse(String(decoding: bytes[..<head.lowerBound], as: UTF8.self))
                guard let request else { return nil }
                bytes.removeFirst(head.upperBound)
                if request.values("Expect").contains("100-continue") {
                    send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), connection)
                }
            }
            if var request {
                let length = request.values("Content-Length").first.flatMap { Int($0) } ?? 0
                if bytes.count >= length {
                    request.body = bytes
                    return request
                }
            }
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = recv(connection, &piece, piece.count, 0)
            guard count > 0 else { return nil }
            bytes += piece[..<count]
        }
    }

    private static func parse(_ head: String) -> Request? {
        // A line end is one Character.
        let lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)
        let words = lines[0].split(separator: " ")
        guard words.count == 3 else { return nil }
        let headers = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (
                name: String(parts.first ?? ""),
                value: (parts.dropFirst().first ?? "").trimmingCharacters(in: .whitespaces)
            )
        }
        return Request(
            method: String(words[0]), target: String(words[1]), headers: headers, body: [])
    }

    @discardableResult
    private static func send(_ bytes: [UInt8], _ connection: Int32) -> Bool {
        #if canImport(Darwin)
            let flags: Int32 = 0
            var on: Int32 = 1
            setsockopt(
                connection, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
        #else
            let flags = Int32(MSG_NOSIGNAL)
        #endif
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                #if canImport(Darwin)
                    Darwin.send(connection, $0.baseAddress, $0.count, flags)
                #else
                    Glibc.send(connection, $0.baseAddress, $0.count, flags)
                #endif
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
