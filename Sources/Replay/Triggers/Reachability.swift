// The state of the network: connected or not, metered or not. The implementation for Apple systems; that for
// Linux is in LinuxReachability.swift. Spec/protocol/triggers.md.

import Foundation

#if canImport(Network)
    import Network
#endif

/// The kind of the network connection.
public enum NetworkPath: Hashable, Sendable {
    /// No connection.
    case none
    /// An unmetered connection: Wi-Fi or a cable.
    case wifi
    /// A metered connection, such as a phone's.
    case cellular
}

/// A source of the network's state.
public protocol Reachability: Sendable {
    /// The present path, then every change. The stream ends with its iteration.
    var paths: AsyncStream<NetworkPath> { get }
}

/// A network that is always connected and unmetered: for apps on servers, and for a sync server on the same
/// machine. Requests that fail are retried with backoff.
public struct AlwaysReachable: Reachability {
    /// Creates the source.
    public init() {}
    public var paths: AsyncStream<NetworkPath> {
        AsyncStream { continuation in continuation.yield(.wifi) }
    }
}

#if canImport(Network)
    /// The network's state according to the system. The project's tests run on Linux and do not reach this
    /// type.
    public struct SystemReachability: Reachability {
        /// Creates the source.
        public init() {}

        public var paths: AsyncStream<NetworkPath> {
            AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                let monitor = NWPathMonitor()
                monitor.pathUpdateHandler = { path in
                    guard path.status == .satisfied else { continuation.yield(.none); return }
                    continuation.yield(path.isExpensive ? .cellular : .wifi)
                }
                continuation.onTermination = { _ in monitor.cancel() }
                monitor.start(queue: DispatchQueue(label: "daybook.reachability"))
            }
        }
    }
#endif
