// A server with scripted verdicts that records its requests, and the app's own view of a StoreHistory.

import DaybookOffline
import Foundation
import Synchronization

/// The scripted verdict on one event.
package enum ScriptedVerdict: String, CaseIterable, Sendable {
    case applied, duplicate, rejected, conflict, retry, unprocessed, missing
}

/// A transport that replies with the verdicts of a script.
final class ScriptedServer: Transport {
    /// One request and its verdicts.
    struct Exchange: Sendable {
        var batch: [UInt8]
        var verdicts: [(id: UUID, verdict: ScriptedVerdict)]
    }

    private struct State {
        var exchanges: [Exchange] = []
        var next = 0
    }

    private let script: [ScriptedVerdict]
    /// The status of the reply; verdicts are sent only with 200.
    private let status: Int
    private let date: Int64?
    private let state = Mutex(State())

    init(_ script: [ScriptedVerdict], status: Int, date: Int64?) {
        self.script = script.isEmpty ? [.applied] : script
        self.status = status
        self.date = date
    }

    var exchanges: [Exchange] { state.withLock { $0.exchanges } }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        guard status == 200 else {
            return TransportReply(status: status, retryAfterSeconds: 3_000)
        }
        let ids = Self.ids(in: batch)
        let verdicts = state.withLock { state in
            let verdicts = ids.enumerated().map { index, id in
                let verdict = script[(state.next + index) % script.count]
                // After a reply without any verdict the replayer would back off.
                let isSilent = verdict == .unprocessed || verdict == .missing
                return (id: id, verdict: index == 0 && isSilent ? .applied : verdict)
            }
            state.next += ids.count
            state.exchanges.append(Exchange(batch: batch, verdicts: verdicts))
            return verdicts
        }
        let objects: [[String: Any]] = verdicts.filter { $0.verdict != .missing }.map {
            id, verdict in
            var object: [String: Any] = ["id": id.uuidString, "status": verdict.rawValue]
            if verdict == .retry { object["retryAfterSeconds"] = 3_000 }
            if verdict == .conflict { object["detail"] = "newer \u{1F469}" }
            return object
        }
        let body = try JSONSerialization.data(withJSONObject: ["verdicts": objects])
        return TransportReply(status: 200, body: Array(body), date: date)
    }
}

extension ScriptedServer {
    /// The ids of a batch, found by the prefix of a line: Foundation's parser rejects JSON that a line may
    /// contain, such as lone surrogates.
    private static func ids(in batch: [UInt8]) -> [UUID] {
        let prefix = "{\"specversion\":\"1.0\",\"id\":\""
        return String(decoding: batch, as: UTF8.self).components(separatedBy: prefix).dropFirst()
            .compactMap { UUID(uuidString: String($0.prefix(36))) }
    }
}

/// A view of the app that counts all events and depends on their order.
struct TallyView: Projection, Codable, Equatable {
    static let name = "tally"
    static let version = 1
    static let allowsCompaction = true
    private(set) var count = 0
    private(set) var last: UInt64 = 0
    private(set) var mix: UInt64 = 0

    mutating func fold(_ event: Event) {
        countEvent(event.id, event.position.rawValue)
    }

    mutating func countEvent(_ id: UUID, _ position: UInt64) {
        count += 1
        last = position
        let bytes = withUnsafeBytes(of: id.uuid) { Array($0) }
        mix = bytes.reduce(mix &* 31) { ($0 &* 257) ^ UInt64($1) }
    }
}

/// A difference between the store and the model.
package struct Difference: Error, CustomStringConvertible {
    package let description: String
}
