// A connection on which a test sends arbitrary bytes, which HTTP clients do not allow.

import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#endif

/// A TCP connection to a server on this machine.
final class RawConnection: Sendable {
    private let descriptor: Int32

    struct Failure: Error { let call: String }

    /// Connects.
    ///
    /// - Parameters:
    ///   - address: the last byte of the local loopback address.
    ///   - receiveBuffer: the size of the receive buffer in bytes; small for a slow reader.
    init(_ base: String, from address: UInt8? = nil, receiveBuffer: Int32? = nil) throws {
        #if canImport(Darwin)
            descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        // From here on deinit closes the socket, also if this throws: a second close could hit a descriptor that
        // another test has just opened.
        guard descriptor >= 0 else { throw Failure(call: "socket") }
        if var size = receiveBuffer {
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        // After this time without an answer, the test fails.
        var timeout = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        if let last = address {
            var source = sockaddr_in()
            source.sin_family = sa_family_t(AF_INET)
            source.sin_addr.s_addr = (in_addr_t(0x7F00_0000) + in_addr_t(last)).bigEndian
            guard Self.withSocketAddress(of: &source, { bind(descriptor, $0, $1) == 0 }) else {
                throw Failure(call: "bind")
            }
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        address.sin_port = in_port_t(URL(string: base)?.port ?? 0).bigEndian
        guard Self.withSocketAddress(of: &address, { connect(descriptor, $0, $1) == 0 }) else {
            throw Failure(call: "connect")
        }
    }

    deinit { close(descriptor) }

    private static func withSocketAddress(
        of address: inout sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool
    ) -> Bool {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Sends bytes.
    ///
    /// - Returns: false if the server has closed the connection.
    @discardableResult
    func send(_ bytes: some Sequence<UInt8>) -> Bool {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                #if canImport(Darwin)
                    Darwin.send(descriptor, $0.baseAddress, $0.count, 0)
                #else
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                #endif
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Sends text.
    @discardableResult
    func send(_ text: String) -> Bool { send(text.utf8) }

    /// Sends as much of a text as the socket accepts without blocking.
    func sendWithoutWaiting(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { bytes in
            #if canImport(Darwin)
                Darwin.send(descriptor, bytes.baseAddress, bytes.count, MSG_DONTWAIT)
            #else
                Glibc.send(
                    descriptor, bytes.baseAddress, bytes.count,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            #endif
        }
    }

    /// Receives some bytes; returns nil at the end of the connection.
    func receive(atMost count: Int = 65_536) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var received = recv(descriptor, &bytes, count, 0)
        while received < 0, errno == EINTR { received = recv(descriptor, &bytes, count, 0) }
        if received < 0, errno == EAGAIN { throw Failure(call: "recv: nothing came") }
        return received > 0 ? Array(bytes[..<received]) : nil
    }

    /// True if bytes have arrived that were not received yet.
    var hasInput: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    /// Receives everything up to the end of the connection.
    func readToEnd() throws -> String {
        var bytes: [UInt8] = []
        while let part = try receive() { bytes += part }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Receives everything up to and including a text, or up to the end of the connection.
    func text(until end: String) throws -> String {
        var text = ""
        while !text.contains(end), let part = try receive() {
            text += String(decoding: part, as: UTF8.self)
        }
        return text
    }
}
