// The inputs, actions and effects of ReplayState. Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

extension ReplayState {
    /// The next action of the replayer.
    public enum Action: Hashable, Sendable {
        /// Send this request, and pass its answer to `handleAnswer` with the same number.
        case send(Request, number: Int)
        /// Wait until this time, in milliseconds since 1970, or for an input.
        case wait(until: Int64)
        /// Get a token (`Credentials.token`), then call one of the token inputs.
        case getToken
        /// Get a new token (`Credentials.refresh`), then call one of the token inputs.
        case refreshToken
        /// Wait for the answer to a request, or until this time, if there is one.
        case busy(until: Int64?)
        /// Wait until the reason of the pause has been removed.
        case paused(Pause)
        /// Nothing is left to do.
        case idle
    }

    /// A request to the server.
    public enum Request: Hashable, Sendable {
        /// Ship these events in this order.
        case append([ReplayItem])
        /// Read the account's events after a cursor; nil is the beginning.
        case read(after: String?)
    }

    /// The reason why the pipeline is paused although there is something to do.
    public enum Pause: Hashable, Sendable {
        /// The server refuses the token, and there is no new one.
        case unauthorized
        /// The status of the server's answers shows that the endpoint is wrong.
        case endpoint(status: Int)
        /// The transport refuses to send, so no answer of the server can end the pause.
        case refused(TransportError)
        /// There is no network.
        case offline
        /// The conditions do not allow it: syncing is off, or not allowed over this network.
        case notAllowed

        /// The reason, as a message.
        var message: String {
            switch self {
            case .unauthorized:
                "the server does not accept the token: log in again, or check the credentials"
            case .endpoint(413):
                "the server answers 413: check the endpoint, and the limit of a proxy for the size of a request"
            case .endpoint(403):
                "the server answers 403: check that the token's account may use this endpoint"
            case .endpoint(let status): "the server answers \(status): check the endpoint"
            case .refused(let error): error.description
            case .offline: "no network connection is reported"
            case .notAllowed: "syncing is not allowed now"
            }
        }
    }

    /// The network state and the rules under which a run works.
    public struct Conditions: Hashable, Sendable {
        /// Whether a network connection is reported.
        public var isReachable = true
        /// Whether the run may send requests without a demand of the app.
        public var isAllowed = true
        /// Whether the run may read other logs' events without a demand of the app. False on a metered
        /// network if the rules say so.
        public var mayRead = true

        /// Creates conditions; the defaults allow everything.
        public init(isReachable: Bool = true, isAllowed: Bool = true, mayRead: Bool = true) {
            self.isReachable = isReachable
            self.isAllowed = isAllowed
            self.mayRead = mayRead
        }
    }

    /// The answer to a request.
    public enum Answer: Sendable {
        /// A complete answer.
        case reply(TransportReply)
        /// No complete answer, with the reason.
        case failure(String)
        /// The transport refuses to send, or refuses the answer.
        case refused(TransportError)

        /// False for an answer that the transport has given itself.
        var isServers: Bool { if case .reply(let reply) = self { reply.isServers } else { true } }

        /// The events that a complete answer teaches.
        var learned: [EventDraft] { if case .reply(let reply) = self { reply.learned } else { [] } }

        /// The page of an app's own API, if it is the answer to a read of it.
        var states: StatePage? { if case .reply(let reply) = self { reply.states } else { nil } }
    }

    /// A page of the account's events.
    public struct Page: Hashable, Sendable {
        /// A JSON array.
        public var body: [UInt8]
        /// The cursor with which the page was read.
        public var after: String?
        /// The cursor of the next page.
        public var next: String?
    }

    /// An effect of an answer, to be performed in the order in which they are returned.
    public enum Effect: Sendable {
        /// Report this message.
        case report(String)
        /// Record these outcomes.
        case record(Settlement)
        /// Note that an attempt with these events had no verdicts.
        case noteAttempt([ReplayItem])
        /// Record the server's event of a conflict, and ask the resolver.
        case resolve(ReplayItem, current: JSONValue?)
        /// Record this page, then call `pageRecorded` or `pageRefused`.
        case recordPage(Page)
        /// The server was restored: ship a batch of the events that it may lack. After the last one call
        /// `readFromStart`.
        case recover(ServerRestore)
    }

    /// The outcomes of a request's events.
    public struct Settlement: Sendable {
        /// The events that the server has applied.
        public var applied: [Position] = []
        /// The events that the server already had.
        public var duplicate: [Position] = []
        /// The entries of the record for events that were not settled.
        public var entries: [SyncSettled.Entry] = []
        /// The incarnations with which another log writes, too.
        public var forked: Set<UUID> = []
        /// True if it follows from verdicts, and not from a failure.
        public var hasVerdicts = false

        var isEmpty: Bool { applied.isEmpty && duplicate.isEmpty && entries.isEmpty }

        /// The settled positions, each with its status.
        package var settled: [Position: Verdict.Status] {
            var settled: [Position: Verdict.Status] = [:]
            for position in applied { settled[position] = .applied }
            for position in duplicate { settled[position] = .duplicate }
            return settled
        }
    }

    /// The time and the randomness of an input: the machines have none of their own.
    struct Moment {
        /// The device's time in milliseconds since 1970.
        var now: Int64
        /// A random number between 0 and 1.
        var random: Double
    }
}

extension [ReplayState.Effect] {
    /// The message for the report; nil if there is none.
    package var message: String? {
        for case .report(let message) in reversed() { return message }
        return nil
    }

    /// The outcomes to record; empty if there are none.
    package var settlement: ReplayState.Settlement {
        for case .record(let settlement) in self { return settlement }
        return ReplayState.Settlement()
    }

    /// The page to record; nil if there is none.
    package var page: ReplayState.Page? {
        for case .recordPage(let page) in self { return page }
        return nil
    }
}
