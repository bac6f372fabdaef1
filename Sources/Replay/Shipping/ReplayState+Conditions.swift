// What a run tells the machines besides answers: conditions, demands, tokens, the clock. C1 to C4 of
// Spec/protocol/triggers.md, T1 to T4 of replay.md.

import Foundation

extension ReplayState {
    // MARK: Conditions and tokens

    /// C1, C2: sets the conditions. If the network comes back, the backoff ends.
    public mutating func set(_ conditions: Conditions) { pipeline.handle(.conditions(conditions)) }

    /// Whether pages may be read (C3, C4).
    package var mayRead: Bool { pipeline.mayRead }

    /// Whether a stream of the account's events may be open.
    package var mayFollow: Bool { pipeline.mayFollow && token.isUsable }

    /// C4: ends all waits and allows requests, whatever `isAllowed` and `mayRead` say, until nothing is left
    /// to do. Without a network no request is sent.
    public mutating func demand() {
        resume()
        pipeline.handle(.demand)
        _ = sending.handle(.demand)
    }

    /// Ends a pause and the backoff.
    public mutating func resume() {
        pipeline.handle(.resume)
        _ = token.handle(.resumed)
    }

    /// T1: handles a new token, or that none is needed.
    ///
    /// - Parameters:
    ///   - expiresAt: the token's end by the server's clock, in milliseconds since 1970.
    ///   - now: the device's time.
    ///   - isRenewed: true if an earlier renewal has returned the token.
    public mutating func tokenChanged(
        expiresAt: Int64? = nil, now: Int64 = 0, isRenewed: Bool = false
    ) {
        _ = token.handle(
            .received(
                expiresAt: expiresAt, now: now, lastRequest: lastNumber, isRenewed: isRenewed))
        pipeline.handle(.tokenChanged)
    }

    /// Whether a token is being renewed because it has ended by the clock, which may be wrong.
    func isRenewingEndedToken(now: Int64) -> Bool { token.isRenewingEndedToken(now: now) }

    /// T3: pauses, because the issuer refuses a new token.
    public mutating func tokenRefused() {
        _ = token.handle(.refusedByIssuer)
        pipeline.handle(.pause(.unauthorized))
    }

    /// Asks for the token again before the next request.
    mutating func forgetToken() { _ = token.handle(.forgotten) }

    /// T4: handles a token request that failed. No retry is counted; the pipeline backs off.
    public mutating func tokenFailed(_ reason: String, now: Int64, random: Double) -> [Effect] {
        guard token.handle(.failed(now: now)).isEmpty else {
            return backOff(Moment(now: now, random: random), reason)
        }
        return [.report(reason)]
    }

    /// Sets the offset of the server's clock, server time − device time, in milliseconds.
    public mutating func setClock(offset: Int64) { _ = token.handle(.clock(offset: offset)) }
}
