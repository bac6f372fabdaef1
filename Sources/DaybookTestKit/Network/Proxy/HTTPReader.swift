// Reads one HTTP message after the other from a connection.

import Foundation

/// A reader of the messages in one direction of a connection.
package struct HTTPReader {
    let socket: TCPSocket
    private var buffer: [UInt8] = []

    package init(_ socket: TCPSocket) { self.socket = socket }

    /// The number of received bytes that belong to no message yet.
    package var waitingBytes: Int { buffer.count }

    /// Waits for the first bytes of a message.
    ///
    /// - Returns: false if the connection has ended.
    mutating func hasNext() -> Bool {
        if !buffer.isEmpty { return true }
        do { try socket.receive(into: &buffer, milliseconds: Int(Int32.max)) } catch {
            return false
        }
        return true
    }

    /// Reads a head. `readBody(of:upTo:)` reads the body.
    mutating func readHead(isReply: Bool) throws -> HTTPMessage {
        var searchStart = 0
        while true {
            if let end = Self.headEnd(buffer, from: searchStart) {
                let message = try HTTPMessage(head: Array(buffer[..<end]), isReply: isReply)
                buffer.removeFirst(end)
                return message
            }
            guard buffer.count <= HTTPMessage.headBytesMax else { throw SocketError.malformed }
            searchStart = max(0, buffer.count - 3)
            try socket.receive(into: &buffer)
        }
    }

    /// Reads the body of a message; one with a length only up to `maxBytes`.
    mutating func readBody(of message: inout HTTPMessage, upTo maxBytes: Int = .max) throws {
        switch message.framing {
        case .length(let length):
            let wanted = min(length, maxBytes)
            buffer.reserveCapacity(min(wanted, HTTPMessage.bodyBytesMax))
            while buffer.count < wanted { try socket.receive(into: &buffer) }
            if buffer.count == wanted {
                message.body = buffer
                buffer = []
            } else {
                message.body = Array(buffer[..<wanted])
                buffer.removeFirst(wanted)
            }
        case .chunked:
            while true {
                let line = try readLine()
                guard let size = Int(line.prefix { $0.isHexDigit }, radix: 16),
                    message.body.count + size <= HTTPMessage.bodyBytesMax
                else { throw SocketError.malformed }
                message.body += Array((line + "\r\n").utf8)
                if size == 0 { break }
                while buffer.count < size + 2 { try socket.receive(into: &buffer) }
                message.body += buffer[..<(size + 2)]
                buffer.removeFirst(size + 2)
            }
            while true {
                let trailer = try readLine()
                message.body += Array((trailer + "\r\n").utf8)
                if trailer.isEmpty { return }
            }
        case .untilEnd:
            do {
                while buffer.count <= HTTPMessage.bodyBytesMax {
                    try socket.receive(into: &buffer)
                }
            } catch SocketError.ended {}
            message.body = buffer
            buffer = []
        }
    }

    /// Reads a request with its body.
    package mutating func readRequest() throws -> HTTPMessage {
        var message = try readHead(isReply: false)
        if message.expectsContinue {
            try socket.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }
        try readBody(of: &message)
        return message
    }

    /// Reads a reply with its body; 1xx replies before it are skipped.
    package mutating func readReply() throws -> HTTPMessage {
        while true {
            var message = try readHead(isReply: true)
            if let status = message.status, (100..<200).contains(status) { continue }
            try readBody(of: &message)
            return message
        }
    }

    private mutating func readLine() throws -> String {
        while true {
            if let feed = buffer.firstIndex(of: 10), feed > 0 {
                let line = String(decoding: buffer[..<(feed - 1)], as: UTF8.self)
                buffer.removeFirst(feed + 1)
                return line
            }
            guard buffer.count <= HTTPMessage.headBytesMax else { throw SocketError.malformed }
            try socket.receive(into: &buffer)
        }
    }

    private static func headEnd(_ bytes: [UInt8], from start: Int) -> Int? {
        guard bytes.count >= 4 else { return nil }
        for index in start...max(start, bytes.count - 4)
        where index + 4 <= bytes.count && bytes[index] == 13 && bytes[index + 1] == 10
            && bytes[index + 2] == 13 && bytes[index + 3] == 10
        {
            return index + 4
        }
        return nil
    }
}
