// A proxy on this machine between real clients and a real server, over real connections, on which
// everything goes wrong that can. What goes wrong with which connection follows from a seed; when it
// does depends on the machine. For a network on a virtual clock see SimulatedNetwork. How it is used:
// Spec/protocol/sync-simulation.md.

import Foundation

/// A TCP proxy that breaks connections, and loses, delays, doubles, reorders and damages what goes
/// through.
///
/// It understands HTTP/1.1 as far as it must know where a request ends. A client is pointed at it
/// instead of at the server:
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
/// It never makes up a reply, and damage to a reply cannot turn it into another valid one: bytes are
/// taken away from the end, or become zeros, which no JSON has.
public final class HostileProxy: Sendable {
    /// What goes wrong, and how often.
    public struct Options: Sendable {
        /// What may go wrong. A fault that needs a body passes over messages without one.
        public var faults = ProxyFault.allCases
        /// One of so many requests goes wrong.
        public var oneIn = 4
        /// One of so many connections is refused.
        public var refusedOneIn = 16
        /// How long at most a reply or a copy waits, a request waits to be overtaken, and nobody
        /// listens. Best is more than the client's time-out.
        public var delayMilliseconds = 3_000
        /// Whether a connection may end in good order in the middle of a reply's headers; otherwise
        /// it is reset there. Foundation of Swift 6.3 on Linux ends the process of a client to which
        /// that happens ("Transfer completed, but there's no response").
        public var endsInHeaders = false

        /// The usual.
        public init() {}
    }

    private let core: ProxyCore

    /// Creates a proxy at a free port of 127.0.0.1, and begins to take connections.
    ///
    /// - Parameters:
    ///   - server: the server's port on 127.0.0.1. Nobody need listen there yet.
    ///   - seed: what decides on everything: what happens to the nth connection, and to the requests
    ///     on it, follows from the seed and n.
    ///   - options: what goes wrong, and how often.
    /// - Throws: an error of the system where there is no socket or no port to be had.
    public init(to server: UInt16, seed: UInt64, options: Options = Options()) throws {
        core = try ProxyCore(server, seed: seed, options: options)
        core.start()
    }

    deinit { core.end() }

    /// Where it listens.
    public var port: UInt16 { core.port }

    /// The address for clients, without a path.
    public var url: URL {
        var parts = URLComponents()
        parts.scheme = "http"
        parts.host = "127.0.0.1"
        parts.port = Int(port)
        // Cannot fail: the parts are right.
        return parts.url ?? URL(filePath: "/")
    }

    /// What happened, by name: `ProxyFault.rawValue` for each fault that really had its effect, and
    /// `proxy: connections`, `proxy: requests`, `proxy: server not there`, `proxy: server gave no
    /// reply`.
    public var counts: [String: Int] { core.counts }

    /// How often a fault has had its effect.
    public func count(of fault: ProxyFault) -> Int { counts[fault.rawValue] ?? 0 }

    /// Copies of requests that are still to be delivered.
    public var held: Int { core.held }

    /// From now on nothing goes wrong any more, and what waits goes through at once.
    public func calm() { core.isCalm = true }

    /// Things go wrong again.
    public func storm() { core.isCalm = false }

    /// Breaks all connections, takes no more, and waits until every thread has ended. What was held
    /// back is not delivered.
    public func stop() { core.end() }
}
