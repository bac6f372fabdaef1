// A small HTTP/1.1 server at a free port of this machine, with a thread for each connection. All mock servers
// of the tests, the searches and the benchmark are built on it.

import Dispatch
import Foundation

/// A server that passes each connection to a closure, until it is stopped or released.
package final class LoopbackServer: Sendable {
    /// A received request.
    package struct Request: Sendable {
        /// The method, such as `POST` or `GET`.
        package var method: String
        /// The path with its query, as it was sent.
        package var target: String
        /// The headers in the order in which they arrived.
        package var headers: [(name: String, value: String)]
        package var body: [UInt8]

        /// The values of a header. The name is compared without case.
        package func values(_ name: String) -> [String] {
            headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }

        /// The body as text.
        package var text: String { String(decoding: body, as: UTF8.self) }

        /// Parses the head of a message.
        ///
        /// - Throws: `SocketError.malformed` if the first line is not a request line.
        fileprivate init(_ message: HTTPMessage) throws {
            let lines = String(decoding: message.head, as: UTF8.self)
                .components(separatedBy: "\r\n")
            let words = lines[0].split(separator: " ")
            guard words.count == 3 else { throw SocketError.malformed }
            method = String(words[0])
            target = String(words[1])
            headers = lines.dropFirst().compactMap { line in
                guard let colon = line.firstIndex(of: ":") else { return nil }
                return (
                    name: String(line[..<colon]),
                    value: line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
                )
            }
            body = message.body
        }
    }

    /// A client's connection, used only on its own thread.
    package final class Connection {
        /// The socket, for replies that are not well-formed HTTP.
        package let socket: TCPSocket
        private let stop: StopSignal
        private var reader: HTTPReader

        fileprivate init(_ socket: TCPSocket, stop: StopSignal) {
            self.socket = socket
            self.stop = stop
            reader = HTTPReader(socket)
        }

        /// Reads the next request, and waits for its beginning without a timeout.
        ///
        /// - Returns: nil if the connection has ended.
        /// - Throws: `SocketError` if a request ends early or is malformed.
        package func nextRequest() throws -> Request? {
            guard reader.hasNext() else { return nil }
            return try Request(reader.readRequest())
        }

        /// Sends a head and a body.
        ///
        /// - Parameters:
        ///   - length: the `Content-Length`; nil omits it.
        ///   - isLast: whether the head announces that the connection ends after the reply.
        package func sendReply(
            _ status: Int, _ headers: [(name: String, value: String)] = [], _ body: [UInt8],
            length: Int?, isLast: Bool
        ) throws {
            var head = "HTTP/1.1 \(status) Status\r\n"
            for (name, value) in headers { head += "\(name): \(value)\r\n" }
            if let length { head += "Content-Length: \(length)\r\n" }
            if isLast { head += "Connection: close\r\n" }
            try socket.send(Array((head + "\r\n").utf8) + body)
        }

        /// Forwards bytes to a server on this machine and back until either side ends.
        ///
        /// - Parameter limit: the time after which the connections break; nil for no limit.
        package func tunnel(to port: UInt16, for limit: Duration? = nil) throws {
            try socket.exchange(with: TCPSocket(to: port, stop: stop), for: limit)
        }

        /// Waits until the client closes the connection. Bytes that it sends until then are dropped.
        package func waitForEnd() throws {
            while true {
                var dropped: [UInt8] = []
                try socket.receive(into: &dropped, milliseconds: Int(Int32.max))
            }
        }

        /// Waits.
        ///
        /// - Throws: `SocketError.stopped` if the server is stopped meanwhile.
        package func pause(milliseconds: Int) throws {
            if stop.wait(milliseconds: milliseconds) { throw SocketError.stopped }
        }
    }

    /// The state that the threads share. They retain it instead of the server, so that releasing the server
    /// stops them.
    private final class Core: Sendable {
        let stop: StopSignal
        let listener: TCPListener
        let threads = DispatchGroup()
        let serve: @Sendable (Connection) throws -> Void

        init(_ serve: @escaping @Sendable (Connection) throws -> Void) throws {
            stop = try StopSignal()
            listener = try TCPListener(stop: stop)
            self.serve = serve
        }

        func run(_ body: @escaping @Sendable (Core) -> Void) {
            threads.enter()
            Thread.detachNewThread { [self] in
                body(self)
                threads.leave()
            }
        }

        func acceptAll() {
            while let socket = listener.accept() {
                run { core in
                    // An error only ends this connection.
                    try? core.serve(Connection(socket, stop: core.stop))
                }
            }
        }
    }

    private let core: Core

    /// Starts a server.
    ///
    /// - Parameter serve: called for each connection, on a thread of its own. The connection is closed
    ///   when it returns or throws.
    package init(serve: @escaping @Sendable (Connection) throws -> Void) throws {
        core = try Core(serve)
        core.run { $0.acceptAll() }
    }

    /// Starts a server that replies with 200 to all requests of a connection until the client closes it.
    ///
    /// - Parameter answer: returns headers and body for the body of a request. Called on the connection's
    ///   thread.
    package convenience init(
        answer:
            @escaping @Sendable ([UInt8]) -> (
                headers: [(name: String, value: String)], body: [UInt8]
            )
    ) throws {
        try self.init { connection in
            while let request = try connection.nextRequest() {
                let (headers, body) = answer(request.body)
                try connection.sendReply(200, headers, body, length: body.count, isLast: false)
            }
        }
    }

    deinit { stop() }

    /// The port, chosen by the system.
    package var port: UInt16 { core.listener.port }

    /// The base URL, without a slash at the end.
    package var base: String { "http://127.0.0.1:\(port)" }

    /// Ends all connections, and waits for their threads.
    package func stop() {
        core.stop.raise()
        core.threads.wait()
    }
}
