// What an API and its app promise together about a change whose answer was lost. Part of RequestTransport.
// Spec/protocol/requests.md, REQ-4 and REQ-5.

import EventSourcing
import Foundation

/// How often a change takes effect at the API.
public struct RequestPromise: Sendable {
    /// True if the API applies a key once.
    let isOnce: Bool
    /// How long the API keeps a key; nil for ever.
    let keysKeptFor: Duration?
    let confirmation: Confirmation?

    /// Once: the API honours the key, and keeps it for a time.
    ///
    /// A change that was sent, and not answered within that time, is sent again only if `confirm` shows that it is
    /// not there. Without `confirm` it is parked with the code `key_expired`, and the user decides.
    ///
    /// - Parameters:
    ///   - keysKeptFor: how long the API keeps a key; nil for ever, as a primary key.
    ///   - confirm: the question whether a change is there.
    public static func once(
        keysKeptFor: Duration?, confirm: Confirmation? = nil
    ) -> RequestPromise {
        RequestPromise(isOnce: true, keysKeptFor: keysKeptFor, confirmation: confirm)
    }

    /// At least once: the API knows no keys. Without `confirm` a change whose answer was lost takes effect twice.
    ///
    /// - Parameter confirm: the question whether a change is there, asked before each further attempt.
    public static func atLeastOnce(confirm: Confirmation? = nil) -> RequestPromise {
        RequestPromise(isOnce: false, keysKeptFor: nil, confirmation: confirm)
    }

    /// Whether the next attempt may be sent without a question.
    ///
    /// - Parameters:
    ///   - since: the time from which the API keeps the key.
    ///   - now: the time. One before `since` shows that a clock is wrong, by as much as it is away.
    func isKeyKept(since: Timestamp, now: Timestamp) -> Bool {
        guard isOnce else { return confirmation == nil }
        guard let keysKeptFor else { return true }
        let elapsed = (now.milliseconds - since.milliseconds).magnitude
        return Duration.milliseconds(elapsed) < keysKeptFor
    }
}

/// The question whether the API has a change.
public struct Confirmation: Sendable {
    private let request: @Sendable (RequestContext) throws -> APIRequest
    let isApplied: @Sendable (APIAnswer, APIEvidence) throws -> Bool?

    /// The request that asks.
    func question(_ context: RequestContext) throws -> BuiltRequest {
        try context.checked(request).buildRequest(with: .inRequest, for: context.event.id)
    }

    /// Creates a question.
    ///
    /// - Parameters:
    ///   - request: the request that asks.
    ///   - isApplied: whether the answer shows that the change is there; nil if it shows neither. By default 2xx with
    ///     a body shows that it is; an empty list, and a 404 or 410 of the API, that it is not. A page in HTML shows
    ///     nothing.
    public init(
        _ request: @escaping @Sendable (RequestContext) throws -> APIRequest,
        isApplied: (@Sendable (APIAnswer) throws -> Bool?)? = nil
    ) {
        self.request = request
        self.isApplied = { answer, evidence in
            guard evidence.admits(answer) else { return nil }
            if let isApplied { return try isApplied(answer) }
            switch answer.status {
            case 200..<300 where !answer.isHTML && !answer.body.isEmpty:
                return !answer.isEmptyList
            case 404, 410: return evidence.isFound(in: answer) ? false : nil
            default: return nil
            }
        }
    }
}
