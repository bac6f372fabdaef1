// One connection: reads requests within bounds of size and time, and sends replies. It blocks its own thread, so a
// connection that does not go on keeps nothing else from running.

import Foundation

/// The end of a connection: the peer has closed it, or was too slow.
private struct ConnectionEnd: Error {}

/// A connection of the server, which is served by one thread.
struct StudioConnection {
    private let descriptor: Int32
    private let handler: StudioHandler
    /// Bytes that were received and not yet used.
    private var buffer: [UInt8] = []

    private static let headBytesMax = 16 * 1_024
    private static let chunkBytes = 64 * 1_024
    /// The time within which the head of the next request must be there, and that for its body.
    private static let receiveTimeout = Duration.seconds(10)
    /// The longest time in which a reader of a reply may take nothing.
    private static let sendTimeout = Duration.seconds(30)
    /// The time for which the bytes of a refused request are discarded. A connection that is closed while there
    /// are some is reset, and its peer might not see the reply.
    private static let discardTimeout = Duration.seconds(1)

    /// - Parameter descriptor: a connected socket that does not block. The caller closes it.
    init(_ descriptor: Int32, _ handler: StudioHandler) {
        (self.descriptor, self.handler) = (descriptor, handler)
    }

    /// Answers requests until the connection ends, or one is refused before its body is read.
    ///
    /// - Parameter setBusy: called with true when a request with the key is complete, and with false after the
    ///   reply.
    mutating func serve(setBusy: (Bool) -> Void) {
        do {
            while let head = try receiveHead() {
                try handler.check(head)
                let body = try receiveBody(of: head)
                setBusy(handler.hasKey(head))
                try send(handler.waitForReply(to: head, body), keepsOpen: head.keepsOpen)
                setBusy(false)
                guard head.keepsOpen else { break }
            }
        } catch let error as APIError {
            try? send(APIReply(error), keepsOpen: false)
        } catch { return }
        discardInput()
    }

    private mutating func receiveHead() throws -> RequestHead? {
        let deadline = ContinuousClock.now + Self.receiveTimeout
        let end = Array("\r\n\r\n".utf8)
        while true {
            let range = buffer.firstRange(of: end)
            guard range?.lowerBound ?? buffer.count <= Self.headBytesMax else {
                throw APIError(
                    431, "tooLarge",
                    "the head of the request has more than \(Self.headBytesMax) bytes")
            }
            if let range {
                defer { buffer.removeSubrange(..<range.upperBound) }
                return try RequestHead(buffer[..<range.lowerBound])
            }
            guard try receive(until: deadline) else { return nil }
        }
    }

    private mutating func receiveBody(of head: RequestHead) throws -> [UInt8] {
        let deadline = ContinuousClock.now + Self.receiveTimeout
        if buffer.count < head.bodyBytes,
            head.values("expect").contains(where: { $0.lowercased() == "100-continue" })
        {
            try send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }
        while buffer.count < head.bodyBytes {
            guard try receive(until: deadline) else { throw ConnectionEnd() }
        }
        defer { buffer.removeFirst(head.bodyBytes) }
        return Array(buffer.prefix(head.bodyBytes))
    }

    /// Appends received bytes to the buffer.
    ///
    /// - Returns: false if the peer sends no more.
    private mutating func receive(until deadline: ContinuousClock.Instant) throws -> Bool {
        while true {
            try wait(Int16(POLLIN), until: deadline)
            let count = withUnsafeTemporaryAllocation(
                byteCount: Self.chunkBytes, alignment: 16
            ) { chunk in
                let count = recv(descriptor, chunk.baseAddress, chunk.count, 0)
                if count > 0 { buffer.append(contentsOf: chunk[..<count]) }
                return count
            }
            if count >= 0 { return count > 0 }
            guard errno == EAGAIN || errno == EINTR else { throw ConnectionEnd() }
        }
    }

    /// Waits until the socket is ready; always looks at the deadline, so that a peer that never pauses meets it.
    private func wait(_ events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let remaining = (deadline - .now) / .milliseconds(1)
            guard remaining > 0 else { throw ConnectionEnd() }
            var socket = pollfd(fd: descriptor, events: events, revents: 0)
            if poll(&socket, 1, Int32(remaining.rounded(.up))) > 0 { return }
        }
    }

    private func send(_ reply: APIReply, keepsOpen: Bool) throws {
        try send(reply.head(keepsOpen: keepsOpen))
        try send(reply.body)
    }

    private func send(_ bytes: [UInt8]) throws {
        #if canImport(Darwin)
            let flags: Int32 = 0
        #else
            let flags = Int32(MSG_NOSIGNAL)
        #endif
        var sent = 0
        while sent < bytes.count {
            try wait(Int16(POLLOUT), until: ContinuousClock.now + Self.sendTimeout)
            let count = bytes.withUnsafeBytes {
                Foundation.send(
                    descriptor, $0.baseAddress?.advanced(by: sent), bytes.count - sent, flags)
            }
            guard count >= 0 || errno == EAGAIN || errno == EINTR else { throw ConnectionEnd() }
            sent += max(0, count)
        }
    }

    private mutating func discardInput() {
        shutdown(descriptor, Int32(SHUT_WR))
        let deadline = ContinuousClock.now + Self.discardTimeout
        while (try? receive(until: deadline)) == true { buffer.removeAll(keepingCapacity: true) }
    }
}

extension APIReply {
    /// The fields of the head, but for those of the connection.
    var fields: [(name: String, value: String)] {
        var fields = [
            (
                "Content-Security-Policy",
                "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
            ),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cache-Control", "no-store"),
        ]
        if status != 204 {
            fields += [("Content-Type", contentType), ("Content-Length", "\(body.count)")]
        }
        if status == 401 { fields.append(("WWW-Authenticate", "Bearer")) }
        if let fileName {
            fields.append(("Content-Disposition", "attachment; filename=\"\(fileName)\""))
        }
        return fields
    }

    fileprivate func head(keepsOpen: Bool) -> [UInt8] {
        let fields = fields + (keepsOpen ? [] : [("Connection", "close")])
        let lines = ["HTTP/1.1 \(status) "] + fields.map { "\($0.name): \($0.value)" }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}
