// POST {endpoint} by URLSession, on Apple systems and on Linux. Spec/sync-protocol.md.

import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The transport of the sync protocol.
public final class HTTPTransport: Transport {
    private let endpoint: URL
    private let session: URLSession
    private let exchanges = Exchanges()

    /// Bytes of a reply that are read at most.
    static let replyBytesMax = 4 * 1024 * 1024

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - endpoint: where batches are posted: the server's `…/v1/events`.
    ///   - timeoutSeconds: how long the server may be silent.
    public init(endpoint: URL, timeoutSeconds: Double = 30) {
        self.endpoint = endpoint
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = timeoutSeconds
        // Silence is one thing, an answer that comes byte by byte another.
        configuration.timeoutIntervalForResource = 4 * timeoutSeconds
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    }

    deinit { session.invalidateAndCancel() }

    public func send(
        _ call: TransportRequest, token: String?
    ) async throws -> TransportReply {
        var request = URLRequest(url: endpoint)
        switch call {
        case .append(let batch):
            request.httpMethod = "POST"
            request.setValue(
                "application/cloudevents-batch+json", forHTTPHeaderField: "Content-Type")
            request.setValue("application/json", forHTTPHeaderField: "Accept")
            request.httpBody = Data(batch)
        case .read(let cursor):
            if let cursor { request.url = try page(cursor) }
            request.setValue(
                "application/cloudevents-batch+json", forHTTPHeaderField: "Accept")
        }
        if let token {
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }
        let task = session.dataTask(with: request)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                exchanges.begin(task.taskIdentifier, continuation)
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
    }
}

extension HTTPTransport {
    /// Where a page is. A link to another server is not followed: the token would go with it.
    fileprivate func page(_ cursor: String) throws -> URL {
        guard let url = URL(string: cursor, relativeTo: endpoint)?.absoluteURL,
            url.scheme == endpoint.scheme, url.host == endpoint.host, url.port == endpoint.port
        else { throw URLError(.redirectToNonExistentLocation) }
        return url
    }
}

/// The requests under way: gathers each answer up to its limit and follows no redirection, which
/// would carry the token to somebody else.
private final class Exchanges: NSObject, URLSessionDataDelegate {
    private struct Exchange {
        var continuation: CheckedContinuation<TransportReply, any Error>
        var body: [UInt8] = []
        var isTooLong = false
    }

    private struct State {
        var open: [Int: Exchange] = [:]
        /// Tasks that ended before anybody waited for them: cancelled before they began.
        var ended: Set<Int> = []
    }

    private let state = Mutex(State())

    func begin(_ task: Int, _ continuation: CheckedContinuation<TransportReply, any Error>) {
        let hasEnded = state.withLock { state in
            guard state.ended.remove(task) == nil else { return true }
            state.open[task] = Exchange(continuation: continuation)
            return false
        }
        if hasEnded { continuation.resume(throwing: CancellationError()) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
        let goesOn = state.withLock { state in
            guard let length = state.open[dataTask.taskIdentifier]?.body.count,
                length + data.count <= HTTPTransport.replyBytesMax
            else {
                state.open[dataTask.taskIdentifier]?.isTooLong = true
                return false
            }
            state.open[dataTask.taskIdentifier]?.body.append(contentsOf: data)
            return true
        }
        if !goesOn { dataTask.cancel() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        let ended = state.withLock { state -> Exchange? in
            let exchange = state.open.removeValue(forKey: task.taskIdentifier)
            if exchange == nil { state.ended.insert(task.taskIdentifier) }
            return exchange
        }
        guard let exchange = ended else { return }
        if exchange.isTooLong {
            exchange.continuation.resume(throwing: URLError(.dataLengthExceedsMaximum))
        } else if let error {
            exchange.continuation.resume(throwing: error)
        } else if let response = task.response as? HTTPURLResponse {
            exchange.continuation.resume(
                returning: TransportReply(
                    status: response.statusCode, body: exchange.body,
                    date: response.value(forHTTPHeaderField: "Date").flatMap(HTTPDate.parse),
                    retryAfterSeconds: response.value(forHTTPHeaderField: "Retry-After")
                        .flatMap(HTTPDate.retryAfterSeconds),
                    next: response.value(forHTTPHeaderField: "Link").flatMap(LinkHeader.next)))
        } else {
            exchange.continuation.resume(throwing: URLError(.badServerResponse))
        }
    }
}

/// The header `Link` (RFC 8288), as far as pages need it.
package enum LinkHeader {
    /// The target of the first link whose relation is `next`.
    package static func next(_ header: String) -> String? {
        for link in header.split(separator: ",") {
            let parts = link.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
            guard let target = parts.first, target.hasPrefix("<"), target.hasSuffix(">"),
                parts.dropFirst().contains(where: {
                    $0.lowercased() == "rel=\"next\"" || $0.lowercased() == "rel=next"
                })
            else { continue }
            return String(target.dropFirst().dropLast())
        }
        return nil
    }
}

/// Dates of HTTP headers (RFC 9110, section 5.6.7, the preferred form).
package enum HTTPDate {
    package static func parse(_ text: String) -> Int64? {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let parts = text.split(separator: " ")
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        guard parts.count == 6, let day = Int(parts[1]), parts[5] == "GMT",
            let month = months.firstIndex(of: String(parts[2])), let year = Int(parts[3])
        else { return nil }
        let stamp =
            String(format: "%04d-%02d-%02d", year, month + 1, day) + "T" + parts[4] + "Z"
        guard stamp.count == 20 else { return nil }
        return millisecondsOfRFC3339(stamp)
    }

    /// `Retry-After`: seconds, or a date.
    package static func retryAfterSeconds(_ text: String) -> Double? {
        if let seconds = Double(text), seconds.isFinite, seconds >= 0 { return seconds }
        guard let date = parse(text) else { return nil }
        return max(0, Double(date) / 1_000 - Date().timeIntervalSince1970)
    }
}
