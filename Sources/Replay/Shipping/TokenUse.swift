// The machine that decides when a token is requested. T1 to T4 of Spec/protocol/replay.md.

import Foundation

/// The use of a token.
///
/// | state | next | by |
/// |---|---|---|
/// | unknown | usable | T1 |
/// | usable | refused | W1, the first time for this token |
/// | usable | unknown | T3; W1 again after a renewal; W8 |
/// | refused | usable | a new token |
/// | refused | unknown | T3, W8, `resume` |
///
/// T4 and a doubt change no state.
struct TokenUse: Sendable {
    enum Input {
        /// T1: there is a token, or none is needed. The end is by the server's clock. `isRenewed`: an earlier renewal
        /// has returned it.
        case received(expiresAt: Int64?, now: Int64, lastRequest: Int, isRenewed: Bool)
        /// T3: the issuer refuses a new token.
        case refusedByIssuer
        /// T4: no token can be had. The time is the device's.
        case failed(now: Int64)
        /// W1: the server refuses the token of a request.
        case unauthorized(request: Int)
        /// An answer counts, or a page was read.
        case accepted
        /// W1 for an event that is set aside.
        case doubted
        /// W8: by the next attempt it may be another token.
        case forgotten
        /// A pause ends.
        case resumed
        /// The offset of the server's clock was measured.
        case clock(offset: Int64)
    }

    enum Effect {
        /// Pause: there is no token that the server accepts.
        case pause
        /// Back off: there is none now.
        case backOff
    }

    private enum State {
        case unknown
        case usable
        case refused
    }

    private var state = State.unknown
    /// True if the token was renewed after a refusal and the server has not accepted it yet.
    private var isNew = false
    /// True once the server has accepted the token, until that is in doubt.
    private(set) var isAccepted = false
    private var expiresAt: Int64?
    /// The time of the next renewal, by the server's clock.
    private var renewAt: Int64?
    /// The time at which the token was received, by the device's clock. A correction of the clock does not
    /// change it.
    private var receivedAt: Int64 = 0
    /// The earliest time of the next renewal after one that failed, by the device's clock.
    private var renewalNotBefore = Int64.min
    /// True from the request for a new token until it succeeds or fails.
    private var isRenewing = false
    /// True if a renewal has returned the token, so that its end is not a reason for another one.
    private var isRenewed = false
    /// Server time − device time, in milliseconds.
    private(set) var clockOffset: Int64 = 0
    /// The number of the last request that was sent with an older token.
    private var since = 0

    /// Whether requests may be sent with the token.
    var isUsable: Bool { state == .usable }

    /// Whether a request was sent with the present token, and the server has not refused it since.
    func isUsed(by request: Int) -> Bool { state == .usable && request > since }

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .received(let end, let now, let lastRequest, let wasRenewed):
            isRenewed = wasRenewed || isRenewing || state == .refused
            (isNew, isAccepted) = (state == .refused, false)
            state = .usable
            since = lastRequest
            expiresAt = end
            receivedAt = now
            renewalNotBefore = .min
            isRenewing = false
            scheduleRenewal()
        case .refusedByIssuer:
            isRenewing = false
            state = .unknown
            return [.pause]
        case .failed(let now): return handleFailure(now)
        case .unauthorized(let request):
            // Otherwise the request was sent with an older token, so the current one is not refused.
            guard request > since else { return [] }
            guard isNew else {
                state = .refused
                return []
            }
            isNew = false
            return handle(.refusedByIssuer)
        case .accepted: (isNew, isAccepted) = (false, true)
        case .doubted: isAccepted = false
        case .forgotten: state = .unknown
        case .resumed: if state == .refused { state = .unknown }
        case .clock(let offset):
            clockOffset = offset
            if !isRenewing { scheduleRenewal() }
        }
        return []
    }

    /// Whether a token is being renewed because it has ended by the clock, which may be wrong. If the issuer
    /// has no other one, it is sent, and the server decides.
    func isRenewingEndedToken(now: Int64) -> Bool {
        isRenewing && (expiresAt.map { $0 <= now + clockOffset } ?? false)
    }

    private mutating func handleFailure(_ now: Int64) -> [Effect] {
        let serverNow = now + clockOffset
        isRenewing = false
        guard state == .usable, let expiresAt, expiresAt > serverNow else { return [.backOff] }
        // The current token is still valid.
        renewalNotBefore = now + min(TokenRenewal.retryMilliseconds, expiresAt - serverNow)
        renewAt = renewalNotBefore + clockOffset
        return []
    }

    private mutating func scheduleRenewal() {
        renewAt = expiresAt.flatMap {
            TokenRenewal.time(
                ofTokenUntil: $0, received: receivedAt + clockOffset, isRenewed: isRenewed)
        }
        guard renewalNotBefore > .min, let planned = renewAt else { return }
        renewAt = max(planned, renewalNotBefore + clockOffset)
    }

    /// The action that is needed before a request is sent; nil if it may be sent.
    mutating func actionNeeded(now: Int64) -> ReplayState.Action? {
        switch state {
        case .unknown: return .getToken
        case .refused: return .refreshToken  // T2
        case .usable:
            if let renewAt, renewAt <= now + clockOffset {
                self.renewAt = nil
                isRenewing = true
                return .refreshToken
            }
            return nil
        }
    }
}
