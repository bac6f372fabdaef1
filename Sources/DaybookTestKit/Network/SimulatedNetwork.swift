// A network between a replayer and the replicas of a server, for simulations on a virtual clock. It is a
// Transport in front of other Transports, each of which is one replica: `send` draws a fault and performs it.
// The model:
//
// - The client has one request in progress and waits for the reply up to `timeout`.
// - A request may be lost, doubled, or arrive at any later time, after newer ones, at any replica. The reply
//   to a late request is dropped.
// - A reply may be lost, late, truncated, garbled or malformed; it may lack verdicts, or arrive as the reply
//   to a later request of the same client (a restarted client has new connections). The network never invents
//   the verdicts `applied` and `duplicate` for an event of the request: with those any client would lose
//   events.
// - An intermediary may reply: redirections, refusals, overload, captive portals.
// - Between request and reply the other parts of the simulation run (`meanwhile`). They may disconnect the
//   client (`hangUp`): then `send` fails, and its request arrives late or never.
//
// All of it follows from choices, so that a property shrinks it; with every choice 0 there is no fault.
// Fault F11 of Spec/testing/testing.md. NetworkFault lists the faults, ReplyDamage damages the replies. How a
// simulation is built on it: Spec/protocol/sync-simulation.md.

import Daybook
import Foundation
import Synchronization

/// A network with random faults.
public final class SimulatedNetwork: Transport {
    /// The error of a request without a reply.
    public enum Failure: String, LocalizedError, CustomStringConvertible {
        /// No reply arrived within the timeout.
        case timedOut = "timed-out"
        /// The client has disconnected.
        case hungUp = "hung-up"

        /// The same as `description`.
        public var errorDescription: String? { description }

        /// The caller's next step.
        public var recoverySuggestion: String? {
            switch self {
            case .timedOut: "Send the request again: the server may have its events."
            case .hungUp: "Begin another run."
            }
        }

        /// The message.
        public var description: String {
            switch self {
            case .timedOut: "the simulated network delivered no reply within the timeout"
            case .hungUp: "the client has disconnected from the simulated network"
            }
        }
    }

    private struct Request {
        var call: TransportRequest
        var token: String?
        /// Whether the events of the batch are offered (SYNC-52).
        var isOffer = false
    }

    private struct State {
        var faults: [NetworkFault]
        var late: [Request] = []
        var lateReplies: [TransportReply] = []
        /// The fault of the last request: real faults tend to last.
        var lastFault: NetworkFault?
        var isHungUp = false
        var trace: [String] = []
    }

    private let choices: SharedChoices
    private let clock: VirtualClock
    private let replicas: [any Transport]
    private let timeout: Duration
    private let meanwhile: @Sendable () async -> Void
    private let state: Mutex<State>

    /// Creates a network.
    ///
    /// - Parameters:
    ///   - choices: decide on every fault.
    ///   - clock: is advanced while the client waits.
    ///   - replicas: the replicas of the server; at least one. An error that one throws is a broken
    ///     connection.
    ///   - faults: the possible faults. Use a different subset in every run (swarm testing): a fault that
    ///     ends most requests hides the others.
    ///   - timeout: the time for which the client waits for a reply.
    ///   - meanwhile: runs the other parts of the simulation, before a request arrives and before its reply
    ///     does.
    public init(
        _ choices: SharedChoices, clock: VirtualClock, replicas: [any Transport],
        faults: [NetworkFault] = NetworkFault.allCases, timeout: Duration = .seconds(30),
        meanwhile: @escaping @Sendable () async -> Void = {}
    ) {
        precondition(!replicas.isEmpty, "a simulated network needs at least one replica")
        self.choices = choices
        self.clock = clock
        self.replicas = replicas
        self.timeout = timeout
        self.meanwhile = meanwhile
        state = Mutex(State(faults: faults))
    }

    // MARK: Control

    /// Ends all faults.
    public func calm() { state.withLock { $0.faults = [] } }

    /// Disconnects the client: the request in progress fails, and so do later ones until `reconnect`.
    public func hangUp() { state.withLock { $0.isHungUp = true } }

    /// Connects a new client. Replies to the previous client are dropped, since they belong to its
    /// connections; its late requests may still arrive.
    public func reconnect() {
        state.withLock { state in
            state.isHungUp = false
            state.lateReplies = []
        }
    }

    /// Delivers all late requests, in any order.
    public func deliverAll() async { while await deliverLate() {} }

    /// The requests, replies and faults so far, one a line. O(1).
    public var trace: [String] { state.withLock { $0.trace } }

    /// A hash of the trace. The same choices give the same hash. O(trace).
    public var traceHash: UInt64 {
        var hash = XXH64()
        for line in trace { hash.update(Array((line + "\n").utf8).span.bytes) }
        return hash.value()
    }

    private func appendTrace(_ line: String) { state.withLock { $0.trace.append(line) } }

    // MARK: Transport

    public func send(_ call: TransportRequest, token: String?) async throws -> TransportReply {
        try await send(Request(call: call, token: token))
    }

    /// Offers a batch to a replica, with the same faults as `send`. The account is not passed on.
    public func offer(
        _ batch: [UInt8], token: String?, account: String?
    ) async throws -> TransportReply {
        choices.count("network: offers")
        return try await send(Request(call: .append(batch: batch), token: token, isOffer: true))
    }

    private func send(_ request: Request) async throws -> TransportReply {
        try checkConnected()
        choices.count("network: requests")
        let fault = nextFault()
        appendTrace("\(Self.describe(request)) \(fault?.rawValue ?? "well")")
        await meanwhile()
        if drawBool(), drawBool() { await deliverLate() }
        do {
            let reply = try await exchange(request, fault)
            await meanwhile()
            try checkConnected()
            appendTrace("reply \(reply.status) \(Self.hash(reply.body))")
            return reply
        } catch {
            await meanwhile()
            appendTrace("no reply: \(error)")
            throw error
        }
    }

    private func nextFault() -> NetworkFault? {
        choices.draw { choices in
            state.withLock { state in
                guard !state.faults.isEmpty else { return nil }
                switch choices.int(in: 0...2) {
                case 0: state.lastFault = nil
                case 1: state.lastFault = choices.element(of: state.faults)
                default: break
                }
                return state.lastFault
            }
        }
    }

    private func checkConnected() throws {
        if state.withLock({ $0.isHungUp }) { throw Failure.hungUp }
    }

    private static func describe(_ request: Request) -> String {
        switch request.call {
        case .append(let batch): "\(request.isOffer ? "offer" : "send") \(hash(batch))"
        case .read(let cursor): "read \(cursor ?? "from the beginning")"
        }
    }

    private static func hash(_ bytes: [UInt8]) -> String {
        "\(bytes.count)#\(String(XXH32.hash(bytes.span.bytes), radix: 16))"
    }

    /// Delivers a request to a replica.
    private func deliver(_ request: Request) async throws -> TransportReply {
        let index = choices.draw { $0.int(in: 0...replicas.count - 1) }
        let reply: TransportReply
        if case .append(let batch) = request.call, request.isOffer {
            reply = try await replicas[index].offer(batch, token: request.token, account: nil)
        } else {
            reply = try await replicas[index].send(request.call, token: request.token)
        }
        appendTrace("replica \(index) answers \(reply.status) \(Self.hash(reply.body))")
        return reply
    }

    /// Delivers one of the late requests.
    ///
    /// - Returns: false if there was none.
    @discardableResult
    private func deliverLate() async -> Bool {
        let request = choices.draw { choices in
            state.withLock { state -> Request? in
                guard !state.late.isEmpty else { return nil }
                return state.late.remove(at: choices.int(in: 0...state.late.count - 1))
            }
        }
        guard let request else { return false }
        choices.count("network: arrived late")
        appendTrace("late \(Self.describe(request))")
        _ = try? await deliver(request)
        return true
    }

    private func drawBool() -> Bool { choices.draw { $0.bool() } }

    private func timeOut() -> Failure {
        clock.advance(by: timeout)
        return .timedOut
    }

    private func exchange(_ request: Request, _ fault: NetworkFault?) async throws -> TransportReply
    {
        guard let fault else { return try await deliver(request) }
        choices.count(fault.rawValue)
        switch fault {
        case .requestLost:
            throw timeOut()
        case .replyLost:
            _ = try? await deliver(request)
            throw timeOut()
        case .requestDoubled:
            let first = try await deliver(request)
            let second = try await deliver(request)
            return drawBool() ? second : first
        case .requestLate:
            state.withLock { $0.late.append(request) }
            throw timeOut()
        case .copyLate:
            let reply = try await deliver(request)
            state.withLock { $0.late.append(request) }
            return reply
        case .replyMixedUp:
            return try await swapReply(of: request)
        case .slow:
            let reply = try await deliver(request)
            let seconds = choices.draw { $0.int(in: 1...29) }
            clock.advance(by: min(.seconds(seconds), timeout))
            return reply
        case .captivePortal, .redirect, .malformedRequest, .unauthorized, .wrongEndpoint, .tooLarge,
            .overloaded:
            return choices.draw { ReplyDamage.makeReply(for: fault, &$0) }
        case .serverError:
            if drawBool() { _ = try? await deliver(request) }
            return choices.draw { ReplyDamage.makeReply(for: fault, &$0) }
        case .replyTruncated, .replyGarbled, .replyMalformed, .verdictsMissing, .verdictsShuffled,
            .verdictsUnprocessed, .verdictsRetry, .wrongDate:
            let reply = try await deliver(request)
            return choices.draw { ReplyDamage.damage(reply, fault, &$0) }
        }
    }

    /// Keeps the reply for a later request, and returns the kept reply of an earlier one. If there is one,
    /// the request itself may not be delivered.
    private func swapReply(of request: Request) async throws -> TransportReply {
        let earlier = state.withLock { $0.lateReplies.isEmpty ? nil : $0.lateReplies.removeFirst() }
        if earlier == nil || drawBool() {
            let reply = try await deliver(request)
            state.withLock { $0.lateReplies.append(reply) }
        }
        guard let earlier else { throw timeOut() }
        choices.count("network: reply of another request")
        return earlier
    }
}
