// An API in memory whose answers a script decides, for trials of offline queues. It counts what it applies,
// so a trial can compare that with the user's changes. Spec/testing/testing.md.

import Foundation
import Synchronization

/// A change of a user, in a trial of an offline queue.
public struct TrialChange: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The entity that is changed: `note-1`. The changes of one entity must be applied in their order.
    public var entity: String
    /// The number of the change among those of its entity, from 1.
    public var number: Int

    /// Creates a change.
    ///
    /// - Parameters:
    ///   - entity: the entity that is changed.
    ///   - number: the number of the change among those of its entity, from 1.
    public init(_ entity: String, _ number: Int = 1) {
        self.entity = entity
        self.number = number
    }

    /// Number and entity.
    public var description: String { "change \(number) of \(entity)" }
}

/// An API in memory that answers by a script, on a virtual clock.
///
/// A request has one change or several, each with an optional idempotency key: the API applies a key once.
/// Each request takes 100 ms of the clock, and a time-out a minute.
public final class ScriptedAPI: Sendable {
    /// The error of a request without an answer.
    public enum ConnectionError: String, LocalizedError, CustomStringConvertible {
        /// No network.
        case offline = "there is no network"
        /// No answer within a minute.
        case timedOut = "no answer arrived within a minute"
        /// The connection was closed before the answer.
        case reset = "the connection was reset"

        /// The same as `description`.
        public var errorDescription: String? { description }
        /// The caller's next step.
        public var recoverySuggestion: String? { "Send the request again with the same key." }
        /// The message.
        public var description: String { rawValue }
    }

    /// An answer with its status, as an HTTP client gets it.
    public struct Reply: Hashable, Sendable {
        /// The HTTP status.
        public var status: Int
        /// The headers.
        public var headers: [String: String]
        /// The body.
        public var body: String
        /// The answers to the changes of a batch, in their order; empty if the whole batch got this answer.
        public var results: [Reply] = []

        /// Creates a reply; without `headers`, one with JSON.
        ///
        /// - Parameters:
        ///   - status: the HTTP status.
        ///   - body: the body.
        ///   - headers: the headers.
        public init(
            _ status: Int, _ body: String = "{}",
            headers: [String: String] = ["Content-Type": "application/json"]
        ) {
            self.status = status
            self.headers = headers
            self.body = body
        }

        /// A page in HTML, as a proxy or a captive portal sends it.
        ///
        /// - Parameter status: the HTTP status.
        public static func page(_ status: Int) -> Reply {
            Reply(
                status, "<html><body>Welcome!</body></html>", headers: ["Content-Type": "text/html"]
            )
        }
    }

    /// The answer to a change. All but `applied` and `rejected` are the answer to the whole request that has
    /// the change.
    public enum Answer: Sendable {
        /// The change is applied, status 200.
        case applied
        /// The API will never apply the change, and says so in the body, with this status.
        case rejected(status: Int)
        /// Nothing is applied.
        case reply(Reply)
        /// Nothing is applied, and no answer arrives.
        case failed(ConnectionError)
        /// The request is applied, and its answer is lost.
        case answerLost
        /// Nothing is applied, and the request never returns.
        case hung
    }

    /// A change that the API has applied.
    public struct Applied: Hashable, Sendable {
        /// The change.
        public var change: TrialChange
        /// The user whose token the request had.
        public var user: String
        /// The idempotency key, if the request had one.
        public var key: String?
    }

    /// A change in a request, with its idempotency key.
    public typealias Item = (change: TrialChange, key: String?)

    /// Decides the answer to a change, from the change and the number of the request under this script.
    public typealias Script = @Sendable (_ change: TrialChange, _ request: Int) -> Answer

    fileprivate struct State {
        var script: Script = { _, _ in .applied }
        var requests = 0
        var failures = 0
        var applied: [Applied] = []
        var attempts: [(change: TrialChange, time: Int64)] = []
        var afterApplying: (@Sendable () async -> Void)?
        var onHang: (@Sendable () -> Void)?
    }

    fileprivate enum Outcome {
        case reply(Reply)
        case failed(ConnectionError)
        case hung
    }

    /// The clock of the trial. A queue that waits before a retry advances it.
    public let clock: VirtualClock
    private let state = Mutex(State())

    /// Creates an API that applies every change.
    ///
    /// - Parameter clock: the clock of the trial.
    public init(clock: VirtualClock = VirtualClock()) { self.clock = clock }

    /// Everything that was applied, in its order; a change without a key may be in it several times.
    public var applied: [Applied] { state.withLock { $0.applied } }

    /// Sets the script for the requests from now on; their numbers begin at 1. After 200 failed requests
    /// under one script the API applies everything, so that a queue that retries without a limit ends.
    ///
    /// - Parameter script: decides the answers.
    public func answer(by script: @escaping Script) {
        state.withLock { state in
            state.script = script
            (state.requests, state.failures, state.attempts) = (0, 0, [])
        }
    }

    /// Calls a closure once, after the next change is applied and before its answer.
    func afterApplying(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { $0.afterApplying = body }
    }

    /// Calls a closure when a request hangs.
    func onHang(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onHang = body } }

    /// The largest number of attempts that one change had within one second under the present script.
    var attemptsPerSecond: Int {
        let attempts = state.withLock { $0.attempts }
        return attempts.map { first in
            attempts.count { $0.change == first.change && 0..<1_000 ~= $0.time - first.time }
        }.max() ?? 0
    }

    /// Sends a request with one change.
    ///
    /// - Parameters:
    ///   - change: the change.
    ///   - key: the idempotency key; nil for none.
    ///   - user: the user whose token the request has.
    /// - Throws: `ConnectionError` if no answer arrives.
    public func send(_ change: TrialChange, key: String? = nil, user: String) async throws -> Reply
    {
        let reply = try await send([(change, key)], user: user)
        return reply.results.first ?? reply
    }

    /// Sends a batch of changes.
    ///
    /// - Parameters:
    ///   - batch: the changes with their keys.
    ///   - user: the user whose token the request has.
    /// - Returns: the reply, with a result for each change unless something else than the API has answered.
    /// - Throws: `ConnectionError` if no answer arrives.
    public func send(_ batch: [Item], user: String) async throws -> Reply {
        clock.advance(by: .milliseconds(100))
        let time = clock.milliseconds
        let (outcome, hook) = state.withLock { state -> (Outcome, (@Sendable () async -> Void)?) in
            let before = state.applied.count
            let outcome = state.handle(batch, user, time)
            guard state.applied.count > before else { return (outcome, nil) }
            defer { state.afterApplying = nil }
            return (outcome, state.afterApplying)
        }
        await hook?()
        switch outcome {
        case .reply(let reply): return reply
        case .failed(let error):
            if error == .timedOut { clock.advance(by: .seconds(60)) }
            throw error
        case .hung:
            state.withLock { $0.onHang }?()
            // Never resumed: code of a killed process must not run any more, not even its error handling.
            await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            throw ConnectionError.reset
        }
    }
}

extension ScriptedAPI.State {
    /// Applies what the script lets through.
    fileprivate mutating func handle(
        _ batch: [ScriptedAPI.Item], _ user: String, _ time: Int64
    ) -> ScriptedAPI.Outcome {
        requests += 1
        for item in batch { attempts.append((item.change, time)) }
        let answers = batch.map { failures < 200 ? script($0.change, requests) : .applied }
        for answer in answers {
            switch answer {
            case .applied, .rejected: continue
            case .reply(let reply):
                failures += 1
                return .reply(reply)
            case .failed(let error):
                failures += 1
                return .failed(error)
            case .answerLost:
                failures += 1
                for item in batch { apply(item, user) }
                return .failed(.timedOut)
            case .hung: return .hung
            }
        }
        var reply = ScriptedAPI.Reply(200)
        for (item, answer) in zip(batch, answers) {
            if case .rejected(let status) = answer {
                reply.results.append(.init(status, #"{"error":"the title is too long"}"#))
            } else {
                apply(item, user)
                reply.results.append(.init(200))
            }
        }
        return .reply(reply)
    }

    private mutating func apply(_ item: ScriptedAPI.Item, _ user: String) {
        guard item.key == nil || !applied.contains(where: { $0.key == item.key }) else { return }
        applied.append(.init(change: item.change, user: user, key: item.key))
    }
}
