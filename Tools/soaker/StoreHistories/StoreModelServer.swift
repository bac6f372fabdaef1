// A server that answers as it is told and remembers what it was sent; and the app's own view of a
// history. Used by StoreHistory.

import DaybookOffline
import Foundation
import Synchronization

/// What the server says of one event.
package enum ServerWord: String, CaseIterable, Sendable {
    case applied, duplicate, rejected, conflict, retry, unprocessed, missing
}

/// A transport with a script.
final class ScriptedServer: Transport {
    /// One request that was answered with verdicts.
    struct Exchange: Sendable {
        var batch: [UInt8]
        var words: [(id: UUID, word: ServerWord)]
    }

    private struct State {
        var exchanges: [Exchange] = []
        var next = 0
    }

    private let script: [ServerWord]
    /// A status for the whole of the first request, instead of verdicts.
    private let status: Int
    private let date: Int64?
    private let state = Mutex(State())

    init(_ script: [ServerWord], status: Int, date: Int64?) {
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
        let words = state.withLock { state in
            let words = ids.enumerated().map { index, id in
                let word = script[(state.next + index) % script.count]
                // A reply that says nothing at all would have to be waited for.
                let isSilent = word == .unprocessed || word == .missing
                return (id: id, word: index == 0 && isSilent ? .applied : word)
            }
            state.next += ids.count
            state.exchanges.append(Exchange(batch: batch, words: words))
            return words
        }
        let verdicts: [[String: Any]] = words.filter { $0.word != .missing }.map { id, word in
            var verdict: [String: Any] = ["id": id.uuidString, "status": word.rawValue]
            if word == .retry { verdict["retryAfterSeconds"] = 3_000 }
            if word == .conflict { verdict["detail"] = "newer \u{1F469}" }
            return verdict
        }
        let body = try JSONSerialization.data(withJSONObject: ["verdicts": verdicts])
        return TransportReply(status: 200, body: Array(body), date: date)
    }
}

extension ScriptedServer {
    /// The ids of a batch, found by how lines begin: Foundation's reader refuses JSON that a line may
    /// hold, such as lone surrogates.
    private static func ids(in batch: [UInt8]) -> [UUID] {
        let mark = "{\"specversion\":\"1.0\",\"id\":\""
        return String(decoding: batch, as: UTF8.self).components(separatedBy: mark).dropFirst()
            .compactMap { UUID(uuidString: String($0.prefix(36))) }
    }
}

/// An app's own view that depends on order and counts everything that is left.
struct TallyView: Projection, Codable, Equatable {
    static let name = "tally"
    static let version = 1
    static let allowsCompaction = true
    private(set) var count = 0
    private(set) var last: UInt64 = 0
    private(set) var mix: UInt64 = 0

    mutating func fold(_ event: Event) {
        add(event.id, event.position.rawValue)
    }

    mutating func add(_ id: UUID, _ position: UInt64) {
        count += 1
        last = position
        let bytes = withUnsafeBytes(of: id.uuid) { Array($0) }
        mix = bytes.reduce(mix &* 31) { ($0 &* 257) ^ UInt64($1) }
    }
}

/// What a history says when store and model differ.
package struct Difference: Error, CustomStringConvertible {
    package let description: String
}
