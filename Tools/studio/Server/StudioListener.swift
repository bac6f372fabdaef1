// Accepts connections at a port of 127.0.0.1: a bounded number of them, each with a thread of its own.

import Foundation
import Synchronization

/// A listening socket and its connections.
final class StudioListener: Sendable {
    /// The port at which it listens.
    let port: UInt16
    private let descriptor: Int32
    private let handler: StudioHandler
    private let connections = Mutex<[Int32: Connection]>([:])
    private let isStopped = Atomic(false)

    private struct Connection {
        /// The time since which the connection waits for a request with the key; nil while one is answered.
        var waitingSince: ContinuousClock.Instant? = .now
    }

    /// A browser has at most 6 connections to a server, and two or three windows.
    private static let connectionsMax = 32
    private static let pauseMilliseconds: Int32 = 250

    /// Listens at a port; 0 for one that the system chooses.
    ///
    /// - Throws: `StudioError` if the port cannot be opened.
    init(port: UInt16, _ handler: StudioHandler) throws(StudioError) {
        self.handler = handler
        #if canImport(Darwin)
            descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        Self.set(descriptor, SOL_SOCKET, SO_REUSEADDR)
        Self.prepare(descriptor)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listening = descriptor
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, length) == 0 && listen(listening, SOMAXCONN) == 0
                    && getsockname(listening, $0, &length) == 0
            }
        }
        let reason = errno
        self.port = UInt16(bigEndian: address.sin_port)
        guard isListening else {
            if descriptor >= 0 { close(descriptor) }
            throw StudioError(
                description:
                    "cannot open port \(port) of 127.0.0.1: \(String(cString: strerror(reason)))")
        }
    }

    /// Accepts connections, in a thread of its own, until `stop()`.
    func start() { Thread.detachNewThread { self.acceptConnections() } }

    /// Ends all connections. The port is free a moment later.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        connections.withLock {
            for descriptor in $0.keys { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    private func acceptConnections() {
        while !isStopped.load(ordering: .relaxed) {
            var socket = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&socket, 1, Self.pauseMilliseconds) > 0 else { continue }
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0 else {
                // Without free descriptors the socket stays ready.
                usleep(UInt32(Self.pauseMilliseconds) * 1_000)
                continue
            }
            Self.prepare(connection)
            Self.set(connection, Int32(IPPROTO_TCP), TCP_NODELAY)
            #if canImport(Darwin)
                Self.set(connection, SOL_SOCKET, SO_NOSIGPIPE)
            #endif
            guard admit(connection) else {
                close(connection)
                continue
            }
            Thread.detachNewThread { self.serve(connection) }
        }
        close(descriptor)
    }

    /// Registers a connection. If there are too many, the one that has waited longest for a request with the key
    /// is ended: connections that send nothing, or not the key, keep no browser out.
    ///
    /// - Returns: false if all others are being answered, or are not closed yet.
    private func admit(_ descriptor: Int32) -> Bool {
        connections.withLock { connections in
            guard connections.count < 2 * Self.connectionsMax else { return false }
            if connections.count >= Self.connectionsMax {
                let waiting = connections.filter { $0.value.waitingSince != nil }
                guard
                    let longest = waiting.min(by: {
                        ($0.value.waitingSince ?? .now) < ($1.value.waitingSince ?? .now)
                    })
                else { return false }
                // Its thread closes it.
                shutdown(longest.key, Int32(SHUT_RDWR))
                connections[longest.key]?.waitingSince = .now
            }
            connections[descriptor] = Connection()
            return true
        }
    }

    private func serve(_ descriptor: Int32) {
        var connection = StudioConnection(descriptor, handler)
        connection.serve { isBusy in
            connections.withLock { $0[descriptor]?.waitingSince = isBusy ? nil : .now }
        }
        connections.withLock { connections in
            connections[descriptor] = nil
            close(descriptor)
        }
    }

    private static func prepare(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ name: Int32) {
        var value: Int32 = 1
        setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
