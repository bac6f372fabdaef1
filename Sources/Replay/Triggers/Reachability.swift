// The state of the network: reachable or not, and paid by volume or not. The system's answer on Apple
// systems; that of Linux is in LinuxReachability.swift. Spec/protocol/triggers.md.

import Foundation

#if canImport(Network)
    import Network
#endif

/// The way to the server.
public enum NetworkPath: Hashable, Sendable {
    /// There is none.
    case none
    /// Wi-Fi, or a wire: one need not be sparing.
    case wifi
    /// One that is paid by volume, as a phone's is.
    case cellular
}

/// Knows whether there is a network.
public protocol Reachability: Sendable {
    /// The present path, then every change. Ends when nobody listens any more.
    var paths: AsyncStream<NetworkPath> { get }
}

/// A network that is taken to be there always and not to be paid by volume: for servers, and for a
/// server on the same machine. Requests that fail back off by themselves.
public struct AlwaysReachable: Reachability {
    /// Creates it.
    public init() {}
    public var paths: AsyncStream<NetworkPath> {
        AsyncStream { continuation in continuation.yield(.wifi) }
    }
}

#if canImport(Network)
    /// What the system says. Not tested: this one is for Apple systems.
    public struct SystemReachability: Reachability {
        /// Creates it.
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
