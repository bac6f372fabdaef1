// Accepts connections at a port of this machine, and can refuse them for a time without losing the port.

import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// A listening socket, and a second one that only reserves the port.
package final class TCPListener: Sendable {
    /// The port.
    package let port: UInt16
    private let stop: StopSignal
    private let portReservation: Int32
    private let listening: Mutex<Int32>

    /// Listens at a free port.
    package init(stop: StopSignal) throws {
        self.stop = stop
        portReservation = try Self.openSocket(boundTo: 0)
        port = TCPSocket.localPort(portReservation)
        do {
            listening = Mutex(try Self.openListener(at: port))
        } catch {
            close(portReservation)
            throw error
        }
    }

    deinit {
        endListening()
        close(portReservation)
    }

    /// Waits for a connection.
    ///
    /// - Returns: nil once the stop signal is raised.
    package func accept() -> TCPSocket? {
        while true {
            let descriptor = listening.withLock { $0 }
            var ends = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stop.readEnd, events: Int16(POLLIN), revents: 0),
            ]
            _ = poll(&ends, 2, -1)
            if ends[1].revents != 0 { return nil }
            let connection = Foundation.accept(descriptor, nil, nil)
            if connection >= 0 { return TCPSocket(descriptor: connection, stop: stop) }
            // While descriptors are exhausted, retrying at once would use a whole core.
            if errno != EINTR, errno != EAGAIN, stop.wait(milliseconds: 10) { return nil }
        }
    }

    /// Refuses connections for a time. Must be called on the thread that calls `accept()`.
    package func refuse(milliseconds: Int) {
        endListening()
        guard !stop.wait(milliseconds: milliseconds) else { return }
        while true {
            if let descriptor = try? Self.openListener(at: port) {
                listening.withLock { $0 = descriptor }
                return
            }
            if stop.wait(milliseconds: 10) { return }
        }
    }

    private func endListening() {
        listening.withLock { descriptor in
            if descriptor >= 0 { close(descriptor) }
            descriptor = -1
        }
    }

    private static func openListener(at port: UInt16) throws -> Int32 {
        let descriptor = try openSocket(boundTo: port)
        guard listen(descriptor, 128) == 0 else {
            close(descriptor)
            throw SocketError.failed("listen", errno)
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return descriptor
    }

    private static func openSocket(boundTo port: UInt16) throws -> Int32 {
        let descriptor = try TCPSocket.make()
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        for option in [SO_REUSEADDR, SO_REUSEPORT] {
            TCPSocket.set(descriptor, SOL_SOCKET, option, 1)
        }
        var address = TCPSocket.loopback(port)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw SocketError.failed("bind", errno)
        }
        return descriptor
    }
}

extension TCPListener {
    /// Finds a port in a range at which no process listens.
    package static func freePort(in range: Range<UInt16>) throws -> UInt16 {
        for _ in 0..<200 {
            let port = UInt16.random(in: range)
            guard let descriptor = try? openSocket(boundTo: port) else { continue }
            close(descriptor)
            return port
        }
        throw SocketError.failed("bind", EADDRINUSE)
    }
}
