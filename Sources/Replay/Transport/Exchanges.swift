// The requests of one HTTPClient that are under way, and what is taken from their answers.
// Spec/sync-protocol.md.

import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The requests under way: gathers each answer up to its limit and follows no redirection, which
/// would carry the token to somebody else.
final class Exchanges: NSObject, URLSessionDataDelegate {
    /// Bytes of a reply that are read at most.
    static let replyBytesMax = 4 * 1024 * 1024

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

    #if canImport(Security)
        private let credential: URLCredential?

        /// - Parameter credential: the client certificate, for a server that asks for one.
        init(credential: URLCredential? = nil) { self.credential = credential }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let method = challenge.protectionSpace.authenticationMethod
            guard method == NSURLAuthenticationMethodClientCertificate, let credential else {
                return completionHandler(.performDefaultHandling, nil)
            }
            completionHandler(.useCredential, credential)
        }
    #endif

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
                length + data.count <= Self.replyBytesMax
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
            exchange.continuation.resume(
                throwing: TransportError(
                    .replyTooLong, place: task.originalRequest?.url?.host ?? "server",
                    "the reply has more than \(Self.replyBytesMax) bytes"))
        } else if let error {
            exchange.continuation.resume(throwing: error)
        } else if let response = task.response as? HTTPURLResponse {
            exchange.continuation.resume(
                returning: TransportReply(
                    status: response.statusCode, body: exchange.body,
                    date: response.value(forHTTPHeaderField: "Date").flatMap(HTTPDate.parse),
                    retryAfterSeconds: response.value(forHTTPHeaderField: "Retry-After")
                        .flatMap {
                            HTTPDate.retryAfterSeconds(
                                $0, now: response.value(forHTTPHeaderField: "Date"))
                        },
                    next: response.value(forHTTPHeaderField: "Link").flatMap(LinkHeader.next)
                        .flatMap { Self.cursor($0, from: response.url) }))
        } else {
            exchange.continuation.resume(throwing: URLError(.badServerResponse))
        }
    }

    /// A link is relative to the page that has it; a cursor must mean the same by itself. A link to
    /// another server would never be followed, and is none.
    private static func cursor(_ link: String, from page: URL?) -> String? {
        let isRooted = link.hasPrefix("/") && !link.hasPrefix("//")
        guard !isRooted, let page else { return link }
        guard let target = try? HTTPOrigin.page(link, from: page),
            let parts = URLComponents(url: target, resolvingAgainstBaseURL: true)
        else { return nil }
        let path = parts.percentEncodedPath
        return (path.isEmpty ? "/" : path) + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
    }
}
