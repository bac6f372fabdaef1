// The part of HTTP/1.1 that finds the end of a message (RFC 9112, sections 6 and 7).

import Foundation

/// A request or a reply.
package struct HTTPMessage: Sendable {
    /// The first line and the headers, with the empty line after them.
    package var head: [UInt8] = []
    /// The body as it is on the wire, chunk framing included.
    package var body: [UInt8] = []
    /// The framing of a body.
    enum Framing: Hashable { case length(Int), chunked, untilEnd }
    private(set) var framing = Framing.length(0)
    /// Whether the connection ends after the message.
    private(set) var isLast = false
    /// Whether the sender waits for `100 Continue` before it sends the body.
    private(set) var expectsContinue = false
    /// The status of a reply; nil for a request.
    private(set) var status: Int?

    static let headBytesMax = 64 * 1024
    static let bodyBytesMax = 64 * 1024 * 1024

    /// Parses a head.
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
            case "expect": expectsContinue = value.lowercased() == "100-continue"
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

    /// The bytes on the wire.
    var bytes: [UInt8] { head + body }

    /// The size of the whole message; nil if its head has no length.
    var announcedBytes: Int? {
        if case .length(let length) = framing { head.count + length } else { nil }
    }

    /// The message with its body truncated to a fraction of its length, and the `Content-Length` to match.
    /// Nil if the head has no length, or the body is empty.
    func truncated(to fraction: Double) -> HTTPMessage? {
        guard case .length = framing, !body.isEmpty else { return nil }
        var message = self
        message.body = Array(body.prefix(Int(Double(body.count) * fraction)))
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n").map {
            $0.lowercased().hasPrefix("content-length:")
                ? "Content-Length: \(message.body.count)" : $0
        }
        message.head = Array(lines.joined(separator: "\r\n").utf8)
        return message
    }

    /// The message with up to eight zero bytes in its body, from a fraction of its length on; nil if the body
    /// is empty.
    func corrupted(at fraction: Double) -> HTTPMessage? {
        guard !body.isEmpty else { return nil }
        var message = self
        let start = Int(Double(body.count) * fraction)
        for index in body.indices[start...].prefix(8) { message.body[index] = 0 }
        return message
    }
}
