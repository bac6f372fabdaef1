// The codes of records about events whose requests fail. Spec/protocol/replay.md, W2, W3 and RPL-17.

/// The codes that the replayer records itself, where the server has given no verdict.
enum FailureCode {
    /// No answer comes.
    static let noAnswer = "no_answer"
    /// The answer has no verdict.
    static let noVerdicts = "no_verdicts"

    /// The answer has this status.
    static func status(_ status: Int) -> String { "http_\(status)" }
}
