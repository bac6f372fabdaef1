// The bulk endpoint of an app's own API: one request for several changes, with an answer to each.
// Before BulkSender. Spec/protocol/requests.md, REQ-11.

/// An endpoint that takes the requests of several events at once and answers each of them.
///
/// ```swift
/// BulkEndpoint { requests in
///     try APIRequest(.post, "batch", json: Batch(requests))
/// } answers: { answer, _ in
///     try answer.decode(BatchAnswer.self).responses.map {
///         APIAnswer(
///             status: $0.status, headers: ["Content-Type": "application/json"], body: Array($0.body.utf8))
///     }
/// }
/// ```
///
/// Each request is built and recorded as if it were sent by itself, with its own key; the endpoint must honour that key.
public struct BulkEndpoint: Sendable {
    let changesMax: Int
    let group: @Sendable (BuiltRequest) -> String?
    let request: @Sendable ([BuiltRequest]) throws -> APIRequest
    let answers: @Sendable (APIAnswer, Int) throws -> [APIAnswer?]

    /// Describes an endpoint.
    ///
    /// - Parameters:
    ///   - changesMax: the largest number of changes in a request; less than 1 counts as 1. A request has no more than
    ///     the run has requests at once: see `Replayer.Options.requestsMax`.
    ///   - group: the group of a request, such as the table of its path; only requests of one group are sent
    ///     together. Nil for a request that the endpoint does not take.
    ///   - request: builds the request for the endpoint. If it throws, each request is sent by itself.
    ///   - answers: the answers in an answer with a status of 2xx, in the order of the requests, and their number; nil
    ///     for a request that the API has not processed. If it throws, or returns another number of answers, each
    ///     request is sent by itself under its key, which the API must know from both endpoints.
    public init(
        changesMax: Int = 50, group: @escaping @Sendable (BuiltRequest) -> String? = { _ in "" },
        request: @escaping @Sendable ([BuiltRequest]) throws -> APIRequest,
        answers: @escaping @Sendable (APIAnswer, Int) throws -> [APIAnswer?]
    ) {
        self.changesMax = max(1, changesMax)
        self.group = group
        self.request = request
        self.answers = answers
    }
}
