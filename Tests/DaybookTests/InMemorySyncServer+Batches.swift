// The bodies that a server in memory was sent.

import DaybookTestKit

extension InMemorySyncServer {
    /// The batches of all requests, in the order in which they came.
    var batches: [String] {
        requests.compactMap { request in
            guard case .append(let batch) = request else { return nil }
            return String(decoding: batch, as: UTF8.self)
        }
    }
}
