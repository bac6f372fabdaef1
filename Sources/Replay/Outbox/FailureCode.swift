// The codes of records about events whose requests fail, or are not sent. Spec/protocol/replay.md, W2, W3 and RPL-17;
// requests.md.

/// The codes that the replayer records itself, where the server has given no verdict.
enum FailureCode {
    /// No answer comes.
    static let noAnswer = "no_answer"
    /// The answer has no verdict.
    static let noVerdicts = "no_verdicts"
    /// There is no request for the event.
    static let noRequest = "no_request"
    /// The API may have forgotten the key of the request.
    static let keyExpired = "key_expired"
    /// What the answer teaches cannot be recorded.
    static let unusableAnswer = "unusable_answer"
    /// A read of the API has shown a newer state of the entity.
    static let newerState = "newer_state"

    /// The answer has this status.
    static func status(_ status: Int) -> String { "http_\(status)" }
}
