// What all connections of a HostileProxy share, and the threads that serve them. Threads keep this
// alive, not the proxy itself, so that a proxy that nobody holds any more ends. Part of HostileProxy.

import Dispatch
import Foundation
import Synchronization

/// The proxy's engine.
final class ProxyCore: Sendable {
    let serverPort: UInt16
    let stop: StopSignal
    private let listener: TCPListener
    private let seed: UInt64
    let options: HostileProxy.Options
    private let threads = DispatchGroup()
    private let state = Mutex(State())

    private struct State {
        var isCalm = false
        var counts: [String: Int] = [:]
        /// Requests that have reached the server.
        var delivered = 0
        /// Copies that are still to be delivered.
        var held = 0
        var connections = 0
    }

    init(_ server: UInt16, seed: UInt64, options: HostileProxy.Options) throws {
        serverPort = server
        self.seed = seed
        self.options = options
        stop = try StopSignal()
        listener = try TCPListener(stop: stop)
    }

    var port: UInt16 { listener.port }

    // MARK: State

    var isCalm: Bool {
        get { state.withLock { $0.isCalm } }
        set { state.withLock { $0.isCalm = newValue } }
    }

    var counts: [String: Int] { state.withLock { $0.counts } }

    var held: Int { state.withLock { $0.held } }

    func count(_ fault: ProxyFault) { count(fault.rawValue) }

    func count(_ label: String) { state.withLock { $0.counts[label, default: 0] += 1 } }

    func hasDelivered() { state.withLock { $0.delivered += 1 } }

    // MARK: Waiting

    /// Waits; no longer than until it is calm.
    func wait(milliseconds: Int) {
        var rest = milliseconds
        while rest > 0, !isCalm, !stop.wait(milliseconds: min(rest, Self.tickMilliseconds)) {
            rest -= Self.tickMilliseconds
        }
    }

    /// Waits until another request has reached the server, or nobody believes in it any more.
    func waitUntilOvertaken() -> Bool {
        let before = state.withLock { $0.delivered }
        var rest = options.delayMilliseconds
        while rest > 0, !isCalm, !stop.wait(milliseconds: Self.tickMilliseconds) {
            if state.withLock({ $0.delivered }) > before { return true }
            rest -= Self.tickMilliseconds
        }
        return false
    }

    private static let tickMilliseconds = 5

    // MARK: Threads

    /// Begins to take connections.
    func start() { run { $0.acceptAll() } }

    /// Ends everything, and waits for it.
    func end() {
        stop.raise()
        threads.wait()
    }

    private func run(_ body: @escaping @Sendable (ProxyCore) -> Void) {
        threads.enter()
        Thread.detachNewThread { [self] in
            body(self)
            threads.leave()
        }
    }

    private func acceptAll() {
        while true {
            switch acceptNext() {
            case .served: continue
            case .refused(let deed): listener.refuse(milliseconds: deed.delayMilliseconds)
            case .over: return
            }
        }
    }

    private enum Accepted {
        case served
        case refused(ProxyPlan.Deed)
        case over
    }

    /// Takes a connection and serves it, or refuses it. On return nobody here holds it any more.
    private func acceptNext() -> Accepted {
        guard let client = listener.accept() else { return .over }
        let number = state.withLock { state in
            state.connections += 1
            return state.connections
        }
        count("proxy: connections")
        let plan = ProxyPlan(seed: seed, connection: number, options: options)
        if !isCalm, let refusal = plan.refusal {
            client.willReset()
            count(.connectionRefused)
            return .refused(refusal)
        }
        run { core in
            var connection = ProxyConnection(core, client, plan)
            connection.serve()
        }
        return .served
    }

    /// Delivers a copy of a request, on a connection of its own. Nobody hears the answer.
    func deliverLater(_ request: HTTPMessage, milliseconds: Int) {
        state.withLock { $0.held += 1 }
        run { core in
            core.wait(milliseconds: milliseconds)
            if !core.stop.isRaised, core.deliver(request) { core.count(.requestDoubled) }
            core.state.withLock { $0.held -= 1 }
        }
    }

    private func deliver(_ request: HTTPMessage) -> Bool {
        do {
            let server = try TCPSocket(to: serverPort, stop: stop)
            try server.send(request.bytes)
            hasDelivered()
            var reader = HTTPReader(server)
            _ = try reader.reply()
            return true
        } catch { return false }
    }
}
