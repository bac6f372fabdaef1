// Why events are not exchanged, as kinds that an app can switch over, with what it should do about each.
// Spec/protocol/triggers.md, STA-5.

import Foundation

/// Why events are not exchanged. The raw value is stable and machine-readable.
public enum SyncFailure: String, Hashable, Sendable, CaseIterable {
    /// No network is reported.
    case offline
    /// The app's or the user's limits do not allow it.
    case notAllowed
    /// The server does not accept the token, and there is no new one.
    case unauthorized
    /// The token belongs to another account than the log.
    case wrongAccount
    /// The log has events of no known account, which must not get into the token's account unasked.
    case accountNeeded
    /// The server's answers show that the endpoint is wrong, or that the account may not use it.
    case wrongEndpoint
    /// The transport refuses to send for another reason, for example because of a header or a certificate.
    case refused
    /// The last request failed, or got an answer that cannot be used; it is tried again.
    case failed
    /// The server has asked to send some events again later.
    case postponed
    /// A conflict is left, because the resolver failed or the server does not accept what it decides.
    case unresolved
    /// The disk is full, so that the server's answers cannot be recorded.
    case diskFull
    /// The run's time was up before everything was sent.
    case outOfTime
    /// Another run exchanges this store's events.
    case elsewhere
    /// The last run has ended because the store is suspended or closed, or by an error.
    case ended

    /// What an app does about a failure.
    public enum Remedy: String, Hashable, Sendable, CaseIterable {
        /// Nothing: the next attempt may succeed without a change.
        case wait
        /// Ask the user to sign in, with the log's account.
        case signIn
        /// Correct the app or its settings: an endpoint, a header, a certificate, a resolver.
        case update
        /// Ask the user for a decision or for free space; the message says what is missing.
        case askUser
    }

    /// What an app does about it.
    public var remedy: Remedy {
        switch self {
        case .offline, .notAllowed, .failed, .postponed, .outOfTime, .elsewhere, .ended: .wait
        case .unauthorized, .wrongAccount: .signIn
        case .wrongEndpoint, .refused, .unresolved: .update
        case .accountNeeded, .diskFull: .askUser
        }
    }
}

extension SyncFailure {
    init(_ error: TransportError) {
        self =
            switch error.code {
            case .wrongAccount: .wrongAccount
            case .accountNeeded: .accountNeeded
            case .badToken: .unauthorized
            case .badEndpoint, .foreignPage, .localAddress, .otherAPI: .wrongEndpoint
            case .badHeader, .reservedHeader, .tokenInClear, .badCertificate, .badProxy,
                .certificatesUnsupported:
                .refused
            case .replyTooLong, .malformedReply, .connectionFailed, .timedOut: .failed
            }
    }

    init(_ pause: ReplayState.Pause) {
        self =
            switch pause {
            case .unauthorized: .unauthorized
            case .endpoint: .wrongEndpoint
            case .refused(let error): SyncFailure(error)
            case .offline: .offline
            case .notAllowed: .notAllowed
            }
    }

    /// The failure of a request whose answer cannot be used, or not now.
    init(_ answer: ReplayState.Answer) {
        self =
            switch AnswerRow(answer) {
            case .unauthorized: .unauthorized
            case .wrongEndpoint: .wrongEndpoint
            case .refused(let error): SyncFailure(error)
            case .complete, .tooLarge, .malformed, .wait, .failed, .unanswered: .failed
            }
    }
}
