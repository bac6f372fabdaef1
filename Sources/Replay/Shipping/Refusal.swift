// Why a batch was not accepted, if its events may be the reason. W1 and W4 to W7 of Spec/protocol/replay.md.

import Foundation

/// The failure of a batch.
struct Refusal: Sendable {
    /// What the pipeline does after the failure.
    enum Consequence: Hashable, Sendable {
        /// W1 after a renewal, W4.
        case pause(ReplayState.Pause)
        /// W5.
        case wait(seconds: Double)
        /// W6, W7.
        case backOff
        /// W1: the token is renewed first.
        case renewToken
    }

    /// The code of the record if an event is the reason.
    let code: String
    /// The text of the record if an event is the reason.
    let detail: String
    /// The message of the report if the endpoint is the reason.
    let message: String
    let consequence: Consequence

    /// True if the next attempt is a minute away or more, so that a read goes after the first failure and not the
    /// second.
    var isLong: Bool {
        switch consequence {
        case .pause(.endpoint): true
        case .wait(let seconds): seconds >= 60
        case .pause, .backOff, .renewToken: false
        }
    }

    /// W1, W4 to W6.
    init(status: Int, _ consequence: Consequence, message: String) {
        code = FailureCode.status(status)
        detail = "requests with this change alone are answered \(status), others are accepted"
        self.message = message
        self.consequence = consequence
    }

    /// W7.
    init(noAnswer reason: String) {
        code = FailureCode.noAnswer
        detail = "requests with this change alone get no answer, others are accepted: \(reason)"
        message = reason
        consequence = .backOff
    }

    /// W7, for an answer that says nothing of any event.
    init(noVerdicts reason: String) {
        code = FailureCode.noVerdicts
        detail =
            "requests with this change alone are answered without a verdict, others are accepted"
        message = reason
        consequence = .backOff
    }
}

extension TransportReply {
    /// Whether a reply to a read is a page: a JSON array, so no page of a login or of another server.
    var isPage: Bool {
        status == 200 && body.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "[")
    }
}
