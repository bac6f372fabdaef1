// As much of HTTP/1.1 as is needed to know where a message ends (RFC 9112, sections 6 and 7). Part
// of HostileProxy.

import Foundation

/// A request or a reply.
package struct HTTPMessage: Sendable {
    /// First line and headers, with the empty line behind them.
    package var head: [UInt8] = []
    /// The body as it is on the wire.
    package var body: [UInt8] = []
    /// How a body is framed.
    enum Framing: Hashable { case length(Int), chunked, untilEnd }
    private(set) var framing = Framing.length(0)
    /// Whether the connection ends behind it.
    private(set) var isLast = false
    /// Whether whoever sends it waits to be told to go on.
    private(set) var waitsToContinue = false
    /// Of a reply.
    private(set) var status: Int?

    static let headBytesMax = 64 * 1024
    static let bodyBytesMax = 64 * 1024 * 1024

    /// Reads a head.
    init(head: [UInt8], isReply: Bool) throws {
        self.head = head
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ")
        guard words.count >= 2 else { throw SocketError.malformed }
        var length: Int?
        var isChunked = false
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            switch line[..<colon].lowercased() {
            case "content-length": length = Int(value)
            case "transfer-encoding": isChunked = value.lowercased().hasSuffix("chunked")
            case "connection": isLast = value.lowercased() == "close"
            case "expect": waitsToContinue = value.lowercased() == "100-continue"
            default: break
            }
        }
        if isReply {
            guard let number = Int(words[1]) else { throw SocketError.malformed }
            status = number
            if (100..<200).contains(number) || number == 204 || number == 304 {
                return
            }
        }
        if isChunked {
            framing = .chunked
        } else if let length {
            guard (0...Self.bodyBytesMax).contains(length) else { throw SocketError.malformed }
            framing = .length(length)
        } else if isReply {
            (framing, isLast) = (.untilEnd, true)
        }
    }

    /// Bytes on the wire.
    var bytes: [UInt8] { head + body }

    /// How long it will be, if its head says so.
    var announcedBytes: Int? {
        if case .length(let length) = framing { head.count + length } else { nil }
    }

    /// The same message with a shorter body, and a head that agrees; nil where the head does not
    /// give a length, or there is nothing to take away.
    func truncated(to place: Double) -> HTTPMessage? {
        guard case .length = framing, !body.isEmpty else { return nil }
        var message = self
        message.body = Array(body.prefix(Int(Double(body.count) * place)))
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n").map {
            $0.lowercased().hasPrefix("content-length:")
                ? "Content-Length: \(message.body.count)" : $0
        }
        message.head = Array(lines.joined(separator: "\r\n").utf8)
        return message
    }

    /// The same message with some zeros in its body; nil where there is none.
    func corrupted(at place: Double) -> HTTPMessage? {
        guard !body.isEmpty else { return nil }
        var message = self
        let start = Int(Double(body.count) * place)
        for index in body.indices[start...].prefix(8) { message.body[index] = 0 }
        return message
    }
}
