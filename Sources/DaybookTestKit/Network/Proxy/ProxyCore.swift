// The state that the connections of a HostileProxy share, and the threads that serve them. The threads retain
// the core instead of the proxy, so that releasing the proxy stops them.

import Dispatch
import Foundation
import Synchronization

/// The shared state and the threads of a proxy.
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
        /// The number of requests that reached the server.
        var delivered = 0
        /// The number of copies that are still to be delivered.
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

    func countDelivery() { state.withLock { $0.delivered += 1 } }

    // MARK: Waiting

    /// Waits for a time, or until `isCalm` is set or the proxy is stopped.
    func wait(milliseconds: Int) {
        var remaining = milliseconds
        while remaining > 0, !isCalm,
            !stop.wait(milliseconds: min(remaining, Self.tickMilliseconds))
        {
            remaining -= Self.tickMilliseconds
        }
    }

    /// Waits until another request has reached the server.
    ///
    /// - Returns: false if none did within `HostileProxy.Options.delayMilliseconds`.
    func waitUntilOvertaken() -> Bool {
        let before = state.withLock { $0.delivered }
        var remaining = options.delayMilliseconds
        while remaining > 0, !isCalm, !stop.wait(milliseconds: Self.tickMilliseconds) {
            if state.withLock({ $0.delivered }) > before { return true }
            remaining -= Self.tickMilliseconds
        }
        return false
    }

    private static let tickMilliseconds = 5

    // MARK: Threads

    /// Starts to accept connections.
    func start() { runThread { $0.acceptAll() } }

    /// Ends all threads, and waits for them.
    func end() {
        stop.raise()
        threads.wait()
    }

    private func runThread(_ body: @escaping @Sendable (ProxyCore) -> Void) {
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
            case .refused(let refusal): listener.refuse(milliseconds: refusal.delayMilliseconds)
            case .stopped: return
            }
        }
    }

    private enum AcceptResult {
        case served
        case refused(ProxyPlan.PlannedFault)
        case stopped
    }

    /// Accepts a connection, and serves or refuses it. On return this thread has released a refused
    /// connection, so that it is reset before the listener closes.
    private func acceptNext() -> AcceptResult {
        guard let client = listener.accept() else { return .stopped }
        let number = state.withLock { state in
            state.connections += 1
            return state.connections
        }
        count("proxy: connections")
        let plan = ProxyPlan(seed: seed, connection: number, options: options)
        if !isCalm, let refusal = plan.refusal {
            client.resetOnClose()
            count(.connectionRefused)
            return .refused(refusal)
        }
        runThread { core in
            var connection = ProxyConnection(core, client, plan)
            connection.serve()
        }
        return .served
    }

    /// Delivers a copy of a request later, on a separate connection, and drops the reply.
    func deliverLater(_ request: HTTPMessage, milliseconds: Int) {
        state.withLock { $0.held += 1 }
        runThread { core in
            core.wait(milliseconds: milliseconds)
            if !core.stop.isRaised, core.deliver(request) { core.count(.requestDoubled) }
            core.state.withLock { $0.held -= 1 }
        }
    }

    private func deliver(_ request: HTTPMessage) -> Bool {
        do {
            let server = try TCPSocket(to: serverPort, stop: stop)
            try server.send(request.bytes)
            countDelivery()
            var reader = HTTPReader(server)
            _ = try reader.readReply()
            return true
        } catch { return false }
    }
}
