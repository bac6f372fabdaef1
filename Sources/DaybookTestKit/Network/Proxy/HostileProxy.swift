// A proxy with random faults between real clients and a real server on this machine. The faults of each
// connection follow from a seed; their timing depends on the machine. SimulatedNetwork is the counterpart on
// a virtual clock. Usage: Spec/protocol/sync-simulation.md.

import Foundation

/// A TCP proxy that breaks connections, and loses, delays, doubles, reorders and damages requests and
/// replies.
///
/// It parses as much of HTTP/1.1 as is needed to find the end of a message. A client connects to it instead
/// of to the server:
///
/// ```swift
/// let proxy = try HostileProxy(to: 8080, seed: 7)
/// let report = try await store.sync(to: proxy.url.appending(path: "v1/events"))
/// proxy.calm()
/// …
/// proxy.stop()
/// print(proxy.counts)
/// ```
///
/// The proxy never invents a reply, and damage cannot turn a reply into another valid one: it removes bytes
/// from the end, or writes zero bytes, which no JSON contains.
public final class HostileProxy: Sendable {
    /// The faults and their frequency.
    public struct Options: Sendable {
        /// The possible faults. A fault of a body has no effect on a message without one.
        public var faults = ProxyFault.allCases
        /// One in `oneIn` requests has a fault.
        public var oneIn = 4
        /// One in `refusedOneIn` connections is refused.
        public var refusedOneIn = 16
        /// The longest delay of a reply or a copy, the longest time for which a request waits to be
        /// overtaken, and the longest time for which connections are refused. Should exceed the client's
        /// timeout.
        public var delayMilliseconds = 3_000
        /// Whether a connection may be closed, rather than reset, in the middle of a reply's headers.
        /// Foundation of Swift 6.3 on Linux then ends the client's process ("Transfer completed, but there's
        /// no response").
        public var endsInHeaders = false

        /// Creates the default options.
        public init() {}
    }

    private let core: ProxyCore

    /// Creates a proxy at a free port of 127.0.0.1, and starts to accept connections.
    ///
    /// - Parameters:
    ///   - server: the server's port on 127.0.0.1. The server may start later.
    ///   - seed: the faults of the nth connection and of its requests follow from the seed and n.
    ///   - options: the faults and their frequency.
    /// - Throws: an error of the system if no socket or no port is available.
    public init(to server: UInt16, seed: UInt64, options: Options = Options()) throws {
        core = try ProxyCore(server, seed: seed, options: options)
        core.start()
    }

    deinit { core.end() }

    /// The port at which the proxy listens.
    public var port: UInt16 { core.port }

    /// The address for clients, without a path.
    public var url: URL {
        var parts = URLComponents()
        parts.scheme = "http"
        parts.host = "127.0.0.1"
        parts.port = Int(port)
        // Never nil: scheme, host and port are valid.
        return parts.url ?? URL(filePath: "/")
    }

    /// The number of events by label: `ProxyFault.rawValue` for each fault that had an effect, and
    /// `proxy: connections`, `proxy: requests`, `proxy: server not there`, `proxy: server gave no reply`.
    public var counts: [String: Int] { core.counts }

    /// The number of times that a fault had an effect.
    public func count(of fault: ProxyFault) -> Int { counts[fault.rawValue] ?? 0 }

    /// The number of copies of requests that are still to be delivered.
    public var held: Int { core.held }

    /// Ends all faults; delayed requests, replies and copies are sent at once.
    public func calm() { core.isCalm = true }

    /// Starts the faults again after `calm()`.
    public func storm() { core.isCalm = false }

    /// Breaks all connections, accepts no more, and waits until every thread has ended. Copies of requests
    /// that are still waiting are not delivered.
    public func stop() { core.end() }
}
