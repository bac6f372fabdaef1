// The faults of one request. Each raw value is also the label under which SimulatedNetwork counts the fault,
// so that a property can require that it occurred. Fault F11 of Spec/testing/testing.md.

/// A fault between a client and a server.
public enum NetworkFault: String, CaseIterable, Sendable {
    /// The request never arrives; the client times out.
    case requestLost = "network: request lost"
    /// The server processes the request; the client times out.
    case replyLost = "network: reply lost"
    /// The request arrives twice, possibly at two replicas; the client gets one of the replies.
    case requestDoubled = "network: request doubled"
    /// The client times out; the request arrives later, after newer ones.
    case requestLate = "network: request late"
    /// The request succeeds, and a copy of it arrives later, after newer ones.
    case copyLate = "network: copy late"
    /// The client times out; the reply arrives as the reply to a later request.
    case replyMixedUp = "network: reply mixed up"
    /// The reply is delayed.
    case slow = "network: slow"
    /// An intermediary replies with HTML, as a captive portal does.
    case captivePortal = "network: captive portal"
    /// 3xx.
    case redirect = "network: 3xx"
    /// 400 or 422.
    case malformedRequest = "network: 400 or 422"
    /// 401.
    case unauthorized = "network: 401"
    /// 403, 404, 405, 409, 410, 415: the endpoint is wrong.
    case wrongEndpoint = "network: other 4xx"
    /// 413.
    case tooLarge = "network: 413"
    /// 429 or 503, with or without `Retry-After`, sensible or not.
    case overloaded = "network: 429 or 503"
    /// 500, 502, 504, or an unknown status; the server may have processed the request.
    case serverError = "network: 5xx"
    /// The reply is truncated.
    case replyTruncated = "network: reply truncated"
    /// Some bytes of the reply are overwritten.
    case replyGarbled = "network: reply garbled"
    /// The reply is empty or is JSON without valid verdicts.
    case replyMalformed = "network: reply malformed"
    /// Verdicts are missing.
    case verdictsMissing = "network: verdicts missing"
    /// Verdicts are in another order, some twice, and some are about events that were not in the request.
    case verdictsShuffled = "network: verdicts shuffled"
    /// Some verdicts have the status `unprocessed` or an unknown one.
    case verdictsUnprocessed = "network: verdicts unprocessed"
    /// Some verdicts have the status `retry`.
    case verdictsRetry = "network: verdicts retry"
    /// The reply's date is wrong.
    case wrongDate = "network: wrong date"
}
