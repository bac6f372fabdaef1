// The rows of Spec/protocol/replay.md for the answer to a whole request.

import Foundation

/// The row of the decision table that an answer falls under.
enum AnswerRow {
    /// 200: the body decides.
    case complete(TransportReply)
    /// W1.
    case unauthorized
    /// W2.
    case tooLarge(TransportReply)
    /// W3.
    case malformed(TransportReply)
    /// W4.
    case wrongEndpoint(TransportReply)
    /// W5.
    case wait(seconds: Double, status: Int)
    /// W6.
    case failed(TransportReply)
    /// W7, with the reason.
    case unanswered(String)
    /// W8.
    case refused(TransportError)

    init(_ answer: ReplayState.Answer) {
        switch answer {
        case .failure(let reason): self = .unanswered(reason)
        case .refused(let error): self = .refused(error)
        case .reply(let reply): self = Self.row(of: reply)
        }
    }

    private static func row(of reply: TransportReply) -> Self {
        switch reply.status {
        case 200: .complete(reply)
        case 401: .unauthorized
        case 413: .tooLarge(reply)
        case 400, 422: .malformed(reply)
        case 429, 503:
            reply.retryAfterSeconds.map { .wait(seconds: $0, status: reply.status) }
                ?? .failed(reply)
        case 300..<500: .wrongEndpoint(reply)
        default: .failed(reply)
        }
    }
}
