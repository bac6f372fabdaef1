// A TCP connection on this machine whose calls block until a timeout or a stop signal.

import Foundation

#if canImport(Glibc)
    import Glibc
#endif

/// An error of a connection.
package enum SocketError: Error, Hashable, Sendable {
    /// The peer has closed the connection.
    case ended
    /// The stop signal was raised.
    case stopped
    /// Nothing arrived within the timeout.
    case timedOut
    /// The received bytes are not HTTP/1.1, or too long.
    case malformed
    /// A system call failed: its name and `errno`.
    case failed(String, Int32)
}

/// An open socket. Closed when its last reference is released.
package final class TCPSocket: Sendable {
    let descriptor: Int32
    private let stop: StopSignal

    init(descriptor: Int32, stop: StopSignal) {
        self.descriptor = descriptor
        self.stop = stop
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        Self.set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        #if canImport(Darwin)
            Self.set(descriptor, SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
    }

    deinit { close(descriptor) }

    /// Connects to a port of this machine.
    package convenience init(to port: UInt16, stop: StopSignal) throws {
        let descriptor = try Self.make()
        var address = Self.loopback(port)
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, length)
            }
        }
        let number = errno
        // If no process listens at the port, the system may choose it for this end, which then connects to
        // itself.
        guard result == 0, Self.localPort(descriptor) != port else {
            close(descriptor)
            throw SocketError.failed("connect", result == 0 ? ECONNREFUSED : number)
        }
        self.init(descriptor: descriptor, stop: stop)
    }

    /// Makes the connection end with a reset (RST) instead of a FIN when it is closed.
    package func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Whether the peer has closed the connection or has sent bytes.
    package var isReadable: Bool {
        var ends = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
        return poll(&ends, 1, 0) > 0
    }

    /// Sends all bytes.
    package func send(_ bytes: some Collection<UInt8>) throws {
        let bytes = ContiguousArray(bytes)
        var sent = 0
        while sent < bytes.count {
            #if canImport(Darwin)
                let flags: Int32 = 0
            #else
                let flags = Int32(MSG_NOSIGNAL)
            #endif
            let count = bytes.withUnsafeBytes {
                Foundation.send(
                    descriptor, $0.baseAddress?.advanced(by: sent), bytes.count - sent, flags)
            }
            if count >= 0 {
                sent += count
            } else if errno == EAGAIN {
                try wait(Int16(POLLOUT), milliseconds: Self.timeoutMilliseconds)
            } else if errno != EINTR {
                throw SocketError.failed("send", errno)
            }
        }
    }

    /// Appends received bytes to a buffer, and waits for at least one.
    package func receive(
        into buffer: inout [UInt8], milliseconds: Int = TCPSocket.timeoutMilliseconds
    ) throws {
        while true {
            let count = withUnsafeTemporaryAllocation(
                byteCount: Self.chunkBytes, alignment: 16
            ) { chunk in
                let count = recv(descriptor, chunk.baseAddress, chunk.count, 0)
                if count > 0 { buffer.append(contentsOf: chunk[..<count]) }
                return count
            }
            if count > 0 { return }
            if count == 0 { throw SocketError.ended }
            if errno == EAGAIN {
                try wait(Int16(POLLIN), milliseconds: milliseconds)
            } else if errno != EINTR {
                throw SocketError.failed("recv", errno)
            }
        }
    }

    /// Forwards bytes to another socket and back until either side ends.
    ///
    /// - Parameter limit: the time after which both connections break; nil for no limit.
    func exchange(with other: TCPSocket, for limit: Duration? = nil) throws {
        let sides = [self, other]
        let end = limit.map { ContinuousClock.now + $0 }
        while true {
            var ends = [descriptor, other.descriptor, stop.readEnd].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let remaining = end.map { Int32(max(0, ($0 - .now) / .milliseconds(1))) }
            if remaining == 0 {
                for side in sides { side.resetOnClose() }
                throw SocketError.ended
            }
            _ = poll(&ends, nfds_t(ends.count), remaining ?? -1)
            for index in 0..<2 where ends[index].revents != 0 {
                var bytes: [UInt8] = []
                try sides[index].receive(into: &bytes)
                try sides[1 - index].send(bytes)
            }
            if ends[2].revents != 0 { throw SocketError.stopped }
        }
    }

    private func wait(_ events: Int16, milliseconds: Int) throws {
        var ends = [
            pollfd(fd: descriptor, events: events, revents: 0),
            pollfd(fd: stop.readEnd, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&ends, 2, Int32(clamping: milliseconds))
        if ends[1].revents != 0 { throw SocketError.stopped }
        if count == 0 { throw SocketError.timedOut }
        if count < 0, errno != EINTR { throw SocketError.failed("poll", errno) }
    }

    /// The longest silence of the peer.
    package static let timeoutMilliseconds = 60_000
    private static let chunkBytes = 65_536
}

extension TCPSocket {
    /// Opens a socket.
    static func make() throws -> Int32 {
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        guard descriptor >= 0 else { throw SocketError.failed("socket", errno) }
        return descriptor
    }

    static func set(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    /// The port of this end.
    static func localPort(_ descriptor: Int32) -> UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length)
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }
}
