// A host app's own transport that takes everything and keeps what it was sent.

import Foundation
import Synchronization

@testable import DaybookOffline

/// Says of every event that it was applied.
final class ReceivingTransport: Transport {
    private let batches = Mutex<[[UInt8]]>([])

    /// The bodies of all requests.
    var received: [String] { batches.withLock { $0.map { String(decoding: $0, as: UTF8.self) } } }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        batches.withLock { $0.append(batch) }
        let events = try JSONSerialization.jsonObject(with: Data(batch)) as? [[String: Any]]
        let verdicts = (events ?? []).map { ["id": $0["id"], "status": "applied"] }
        let body = try JSONSerialization.data(withJSONObject: ["verdicts": verdicts])
        return TransportReply(status: 200, body: Array(body))
    }
}
