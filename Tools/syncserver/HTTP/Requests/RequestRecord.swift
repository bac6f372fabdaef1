// Facts about a request, which inner middleware and routes set and RequestLog logs.

import Foundation
import Hummingbird
import SyncServerStorage
import Synchronization

/// Facts about one request.
final class RequestRecord: Sendable {
    private struct Facts {
        var account: String?
        var replyFields: HTTPFields = [:]
        var counts: [(name: String, count: Int)] = []
    }

    private let facts = Mutex(Facts())

    /// The account, once it is known.
    var account: String? {
        get { facts.withLock { $0.account } }
        set { facts.withLock { $0.account = newValue } }
    }

    /// Headers that every reply to the request gets, also an error.
    var replyFields: HTTPFields {
        get { facts.withLock { $0.replyFields } }
        set { facts.withLock { $0.replyFields = newValue } }
    }

    /// Counts for the log line, with their names.
    var counts: [(name: String, count: Int)] {
        get { facts.withLock { $0.counts } }
        set { facts.withLock { $0.counts = newValue } }
    }

    /// The account as it appears in the log: a digest, so that the log shows no accounts, but the lines
    /// of a known one can be found (`printf %s ana | sha256sum | cut -c 1-12`).
    var accountDigest: String? {
        account.map { String(AccountSignals.Digest(account: $0).description.prefix(12)) }
    }
}
