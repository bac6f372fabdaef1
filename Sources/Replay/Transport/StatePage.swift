// A page of an app's own API: between RequestTransport+Reading and StateRecords. Spec/protocol/reading.md, READ-2.

import EventSourcing
import Foundation
import LogFormat

/// What an answer to a read of the API shows.
struct StatePage: Hashable, Sendable {
    /// The kind of the answer.
    enum Kind: Hashable, Sendable {
        case page
        /// 304: the list is as it was.
        case notModified
        /// No page.
        case failed(String, retryAfterSeconds: Double?, isUnreachable: Bool)
    }

    var kind = Kind.page
    /// The states, each with its mark, in the order of the page.
    var states: [EventDraft] = []
    /// The number of elements.
    var count = 0
    /// The greatest number among the versions, also of states that cannot be recorded.
    var newest: Int64?
    /// The number of elements that could not be read.
    var unusable = 0
    /// The reason of the first of them.
    var firstFault: String?
    /// The number of elements that the app reads later.
    var notReady = 0
    /// True for an answer with the status 200: not a part of the list.
    var isWhole = false
    /// The cursor of the next page, if the app says it.
    var next: String?
    var tag: String?
    /// True for a failure by which the API may refuse the cursor: 400, 404, 410 or 422.
    var refusesCursor = false

    static func failed(
        _ reason: String, retryAfterSeconds: Double? = nil, isUnreachable: Bool = false
    ) -> StatePage {
        StatePage(
            kind: .failed(
                reason, retryAfterSeconds: retryAfterSeconds, isUnreachable: isUnreachable))
    }
}
