// What is found out about a request on its way inwards, for the line that RequestLog writes when it
// is on its way out again.

import Cryptography
import Foundation
import Hummingbird
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

    /// Headers that the reply gets, whatever it says.
    var replyFields: HTTPFields {
        get { facts.withLock { $0.replyFields } }
        set { facts.withLock { $0.replyFields = newValue } }
    }

    /// How many there were of what.
    var counts: [(name: String, count: Int)] {
        get { facts.withLock { $0.counts } }
        set { facts.withLock { $0.counts = newValue } }
    }

    /// The account as a log may name it: whoever knows an account finds its lines
    /// (`printf %s ana | sha256sum | cut -c 1-12`), and nobody reads accounts off a log.
    var accountDigest: String? {
        account.map { account in
            SHA256.hash(Array(account.utf8)).prefix(6)
                .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
    }
}
