// A network between a replayer and the replicas of a server, for simulations on a virtual clock. It is
// a Transport in front of other Transports, each of which is one replica: `send` draws what happens to
// the request, and does it. The model, in words:
//
// - The client has one request under way and waits for it up to `timeout`.
// - A request may be lost, doubled, or arrive late: any time later, behind newer ones, at any replica.
//   What arrives late is answered, and nobody hears the answer.
// - A reply may be lost, late, cut off, garbled, malformed; it may lack verdicts, or come as the
//   answer to a later request of the same client (a client that is started again has connections of
//   its own). It never claims `applied` or `duplicate` of its own: a network that lies about that can
//   make any client lose events.
// - Something in between may answer: redirections, refusals, overload, captive portals.
// - At every step between request and reply the rest of the world goes on (`meanwhile`), and may hang
//   up (`hangUp`): then `send` fails, and what is under way arrives late or never.
//
// All of it follows from choices, so a property shrinks it; with every choice 0 nothing goes wrong.
// Fault F11 of Spec/testing/testing.md. The faults one by one are in NetworkFault, what is done to replies in
// ReplyDamage. How a simulation is built on it: Spec/protocol/sync-simulation.md.

import Daybook
import Foundation
import Synchronization

/// A network on which everything goes wrong that can.
public final class SimulatedNetwork: Transport {
    /// Why no answer came.
    public enum Failure: String, LocalizedError, CustomStringConvertible {
        /// The client has waited in vain.
        case timedOut = "timed-out"
        /// The client has gone.
        case hungUp = "hung-up"

        /// The same as `description`.
        public var errorDescription: String? { description }

        /// What to do next.
        public var recoverySuggestion: String? {
            switch self {
            case .timedOut: "Send the request again: the server may have its events."
            case .hungUp: "Begin another run."
            }
        }

        /// What happened.
        public var description: String {
            switch self {
            case .timedOut: "the simulated network gave no answer in time"
            case .hungUp: "the client has hung up"
            }
        }
    }

    private struct Request {
        var call: TransportRequest
        var token: String?
    }

    private struct State {
        var faults: [NetworkFault]
        var late: [Request] = []
        var lateReplies: [TransportReply] = []
        /// What happened to the last request: what goes wrong tends to go on.
        var last: NetworkFault?
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
    ///   - choices: what decides on everything.
    ///   - clock: time passes on it while the client waits.
    ///   - replicas: the server, as often as it runs. One that throws has broken the connection.
    ///   - faults: what may go wrong. Best is another subset in every run (swarm testing): a fault
    ///     that ends most requests hides the others.
    ///   - timeout: how long the client waits for a reply.
    ///   - meanwhile: what the rest of the world does before a request arrives, and before its reply
    ///     does.
    public init(
        _ choices: SharedChoices, clock: VirtualClock, replicas: [any Transport],
        faults: [NetworkFault] = NetworkFault.allCases, timeout: Duration = .seconds(30),
        meanwhile: @escaping @Sendable () async -> Void = {}
    ) {
        precondition(!replicas.isEmpty, "somebody must answer")
        self.choices = choices
        self.clock = clock
        self.replicas = replicas
        self.timeout = timeout
        self.meanwhile = meanwhile
        state = Mutex(State(faults: faults))
    }

    // MARK: For whoever simulates

    /// From now on nothing goes wrong any more.
    public func calm() { state.withLock { $0.faults = [] } }

    /// The client goes: the request under way fails, and so do later ones until `reconnect`.
    public func hangUp() { state.withLock { $0.isHungUp = true } }

    /// Connects a new client. Replies to the client before are dropped, since they belong to its
    /// connections; its late requests may still arrive.
    public func reconnect() {
        state.withLock { state in
            state.isHungUp = false
            state.lateReplies = []
        }
    }

    /// Lets every request that is still under way arrive, in any order.
    public func deliverAll() async { while await deliverLate() {} }

    /// What happened, a line each. O(1).
    public var trace: [String] { state.withLock { $0.trace } }

    /// A hash of the trace: the same choices give the same one. O(trace).
    public var traceHash: UInt64 {
        var hash = XXH64()
        for line in trace { hash.update(Array((line + "\n").utf8).span.bytes) }
        return hash.value()
    }

    private func tell(_ line: String) { state.withLock { $0.trace.append(line) } }

    // MARK: Transport

    public func send(_ call: TransportRequest, token: String?) async throws -> TransportReply {
        try checkLine()
        choices.count("network: requests")
        let request = Request(call: call, token: token)
        let fault = nextFault()
        tell("\(Self.words(call)) \(fault?.rawValue ?? "well")")
        await meanwhile()
        if isDrawn(), isDrawn() { await deliverLate() }
        do {
            let reply = try await exchange(request, fault)
            await meanwhile()
            try checkLine()
            tell("reply \(reply.status) \(Self.hash(reply.body))")
            return reply
        } catch {
            await meanwhile()
            tell("no reply: \(error)")
            throw error
        }
    }

    private func nextFault() -> NetworkFault? {
        choices.draw { choices in
            state.withLock { state in
                guard !state.faults.isEmpty else { return nil }
                switch choices.int(in: 0...2) {
                case 0: state.last = nil
                case 1: state.last = choices.element(of: state.faults)
                default: break
                }
                return state.last
            }
        }
    }

    private func checkLine() throws {
        if state.withLock({ $0.isHungUp }) { throw Failure.hungUp }
    }

    private static func words(_ call: TransportRequest) -> String {
        switch call {
        case .append(let batch): "send \(hash(batch))"
        case .read(let cursor): "read \(cursor ?? "from the beginning")"
        }
    }

    private static func hash(_ bytes: [UInt8]) -> String {
        "\(bytes.count)#\(String(XXH32.hash(bytes.span.bytes), radix: 16))"
    }

    /// A request arrives.
    private func arrive(_ request: Request) async throws -> TransportReply {
        let index = choices.draw { $0.int(in: 0...replicas.count - 1) }
        let reply = try await replicas[index].send(request.call, token: request.token)
        tell("replica \(index) answers \(reply.status) \(Self.hash(reply.body))")
        return reply
    }

    /// One of the late requests arrives.
    ///
    /// - Returns: whether there was one.
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
        tell("late \(Self.words(request.call))")
        _ = try? await arrive(request)
        return true
    }

    private func isDrawn() -> Bool { choices.draw { $0.bool() } }

    private func timeOut() -> Failure {
        clock.advance(by: timeout)
        return .timedOut
    }

    private func exchange(_ request: Request, _ fault: NetworkFault?) async throws -> TransportReply
    {
        guard let fault else { return try await arrive(request) }
        choices.count(fault.rawValue)
        switch fault {
        case .requestLost:
            throw timeOut()
        case .replyLost:
            _ = try? await arrive(request)
            throw timeOut()
        case .requestDoubled:
            let first = try await arrive(request)
            let second = try await arrive(request)
            return isDrawn() ? second : first
        case .requestLate:
            state.withLock { $0.late.append(request) }
            throw timeOut()
        case .copyLate:
            let reply = try await arrive(request)
            state.withLock { $0.late.append(request) }
            return reply
        case .replyMixedUp:
            return try await mixUp(request)
        case .slow:
            let reply = try await arrive(request)
            let seconds = choices.draw { $0.int(in: 1...29) }
            clock.advance(by: min(.seconds(seconds), timeout))
            return reply
        case .captivePortal, .redirect, .malformedRequest, .unauthorized, .wrongEndpoint, .tooLarge,
            .overloaded:
            return choices.draw { ReplyDamage.answer(of: fault, &$0) }
        case .serverError:
            if isDrawn() { _ = try? await arrive(request) }
            return choices.draw { ReplyDamage.answer(of: fault, &$0) }
        case .replyTruncated, .replyGarbled, .replyMalformed, .verdictsMissing, .verdictsShuffled,
            .verdictsUnprocessed, .verdictsRetry, .wrongDate:
            let reply = try await arrive(request)
            return choices.draw { ReplyDamage.damage(reply, fault, &$0) }
        }
    }

    /// The reply goes to a later request. This one gets that of an earlier one, if there is one, and
    /// may then not have arrived at all.
    private func mixUp(_ request: Request) async throws -> TransportReply {
        let earlier = state.withLock { $0.lateReplies.isEmpty ? nil : $0.lateReplies.removeFirst() }
        if earlier == nil || isDrawn() {
            let reply = try await arrive(request)
            state.withLock { $0.lateReplies.append(reply) }
        }
        guard let earlier else { throw timeOut() }
        choices.count("network: reply of another request")
        return earlier
    }
}
