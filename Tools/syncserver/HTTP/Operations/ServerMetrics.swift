// The server's counters and their text for Prometheus (GET /metrics). Spec/operations/operating.md.

import Synchronization

/// The counters of a server. Labels have few values, so the number of series is bounded; no label
/// names an account.
final class ServerMetrics: Sendable {
    /// The reason why the server closed a connection early.
    enum Cut: String, CaseIterable {
        case bodyTooLarge = "body_too_large"
        case notHTTP = "not_http"
        case slowReader = "slow_reader"
        case slowRequest = "slow_request"
        case tokenWithdrawn = "token_withdrawn"
        case tooMany = "too_many_connections"
    }

    private struct Request: Hashable {
        let endpoint: String
        let status: Int
    }

    private struct Counts {
        var requests: [Request: Int] = [:]
        var verdicts: [String: Int] = [:]
        var cuts: [Cut: Int] = [:]
        var eventsOut = 0
        var bytesIn = 0
        var bytesOut = 0
        var connections = 0
        /// Requests that took at most each of `secondsBounds`; last, all requests.
        var durations = [Int](repeating: 0, count: secondsBounds.count + 1)
        var secondsTotal = 0.0
    }

    private static let secondsBounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]
    private let counts = Mutex(Counts())

    /// Counts an answered request.
    ///
    /// - Parameter endpoint: method and path of a known endpoint, otherwise `other`.
    func countRequest(_ endpoint: String, status: Int, seconds: Double) {
        counts.withLock { counts in
            counts.requests[Request(endpoint: endpoint, status: status), default: 0] += 1
            for (index, bound) in Self.secondsBounds.enumerated() where seconds <= bound {
                counts.durations[index] += 1
            }
            counts.durations[Self.secondsBounds.count] += 1
            counts.secondsTotal += seconds
        }
    }

    /// Counts the verdicts of a batch.
    func countVerdicts(_ statuses: [String: Int]) {
        counts.withLock { $0.verdicts.merge(statuses) { $0 + $1 } }
    }

    /// Counts events that were sent to clients.
    func countEvents(out events: Int) { counts.withLock { $0.eventsOut += events } }

    /// Counts received bytes of bodies.
    func countBytes(in bytes: Int) { counts.withLock { $0.bytesIn += bytes } }

    /// Counts sent bytes of bodies.
    func countBytes(out bytes: Int) { counts.withLock { $0.bytesOut += bytes } }

    /// Counts an opened connection.
    func countConnection() { counts.withLock { $0.connections += 1 } }

    /// Counts a connection that the server closed early.
    func countCut(_ reason: Cut) { counts.withLock { $0.cuts[reason, default: 0] += 1 } }

    /// The counters in Prometheus's text format, version 0.0.4.
    func text(openConnections: Int, openStreams: Int, heldBytes: Int) -> String {
        let counts = counts.withLock { $0 }
        var text = ""
        func family(_ name: String, _ kind: String, _ help: String, _ samples: [(String, String)]) {
            text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
            for (labels, value) in samples { text += "\(name)\(labels) \(value)\n" }
        }
        family(
            "daybook_requests_total", "counter", "Requests answered.",
            counts.requests.map {
                ("{endpoint=\"\($0.endpoint)\",status=\"\($0.status)\"}", "\($1)")
            }.sorted { $0 < $1 })
        family(
            "daybook_verdicts_total", "counter", "Events given a verdict.",
            counts.verdicts.map { ("{status=\"\($0)\"}", "\($1)") }.sorted { $0 < $1 })
        family(
            "daybook_events_sent_total", "counter", "Events sent to clients.",
            [("", "\(counts.eventsOut)")])
        family(
            "daybook_body_bytes_total", "counter", "Bytes of bodies.",
            [
                ("{direction=\"in\"}", "\(counts.bytesIn)"),
                ("{direction=\"out\"}", "\(counts.bytesOut)"),
            ])
        family(
            "daybook_connections_total", "counter", "Connections opened.",
            [("", "\(counts.connections)")])
        family(
            "daybook_connections_cut_total", "counter", "Connections closed early.",
            Cut.allCases.map { ("{reason=\"\($0.rawValue)\"}", "\(counts.cuts[$0] ?? 0)") })
        family(
            "daybook_connections_open", "gauge", "Open connections.",
            [("", "\(openConnections)")])
        family(
            "daybook_streams_open", "gauge", "Open streams of events.",
            [("", "\(openStreams)")])
        family(
            "daybook_held_bytes", "gauge", "Memory reserved for bodies and replies.",
            [("", "\(heldBytes)")])
        text += "# HELP daybook_request_seconds Time from a request's head to its reply.\n"
        text += "# TYPE daybook_request_seconds histogram\n"
        for (index, count) in counts.durations.enumerated() {
            let bound =
                index < Self.secondsBounds.count ? "\(Self.secondsBounds[index])" : "+Inf"
            text += "daybook_request_seconds_bucket{le=\"\(bound)\"} \(count)\n"
        }
        text += "daybook_request_seconds_sum \(counts.secondsTotal)\n"
        text += "daybook_request_seconds_count \(counts.durations[Self.secondsBounds.count])\n"
        return text
    }
}
