// One request over URLSession whose answer is handed on piece by piece as it comes. Keeps nothing
// itself: what is done with the bytes is the taker's business. Spec/downloads.md, DL-11, DL-12.

import Foundation
import Replay
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Status and headers of an answer.
struct AnswerHead: Sendable {
    var status: Int
    private var fields: [String: String]

    init(_ response: HTTPURLResponse) {
        status = response.statusCode
        fields = [:]
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String {
                fields[name.lowercased()] = value
            }
        }
    }

    init(status: Int, _ fields: [String: String] = [:]) {
        self.status = status
        self.fields = Dictionary(
            uniqueKeysWithValues: fields.map { ($0.key.lowercased(), $0.value) })
    }

    /// A header's value, whatever the case of its name.
    subscript(_ name: String) -> String? { fields[name.lowercased()] }

    /// The error of a status that says to come back later; nil for any other.
    var patience: DownloadError? {
        guard status == 408 || status == 425 || status == 429 || status >= 500 else { return nil }
        return DownloadError(
            .unavailable, "the server answers \(status)",
            retryAfterSeconds: self["Retry-After"].flatMap {
                HTTPDate.retryAfterSeconds($0, now: self["Date"])
            })
    }

    /// The length of the body, if the answer says so and it is a number.
    var contentLength: Int? {
        self["Content-Length"].flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }

    /// Whether the body is what is meant, and not packed.
    var isPlain: Bool {
        ["", "identity"].contains((self["Content-Encoding"] ?? "").lowercased())
    }
}

/// Takes an answer as it comes. All calls for one request come one after the other.
protocol AnswerTaker: Sendable {
    /// - Returns: false to end the request here.
    func begin(_ head: AnswerHead) -> Bool
    /// - Returns: false to end the request here.
    func take(_ bytes: [UInt8]) -> Bool
}

/// Carries requests. Keeps no cookies, no cache and no passwords, and follows no redirection.
final class DownloadClient: Sendable {
    private let session: URLSession
    private let transfers: Transfers

    /// - Parameters:
    ///   - timeoutSeconds: how long the server may be silent.
    ///   - connectionsMax: connections to one server at the same time.
    init(timeoutSeconds: Double, connectionsMax: Int) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = timeoutSeconds
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        configuration.httpMaximumConnectionsPerHost = connectionsMax
        // One piece at a time: takers need no more.
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        transfers = Transfers(queue)
        session = URLSession(
            configuration: configuration, delegate: transfers, delegateQueue: queue)
    }

    deinit { session.invalidateAndCancel() }

    /// Carries one request.
    ///
    /// - Returns: status and headers; the body went to the taker. Also where the taker ended it.
    /// - Throws: `URLError` where the answer is not complete; `CancellationError`;
    ///   `TransportError` for a token that cannot be sent.
    func send(
        _ request: URLRequest, token: String?, to taker: any AnswerTaker
    ) async throws -> AnswerHead {
        var request = request
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        if let token {
            try HTTPHeaders.checkToken(token, place: "token")
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }
        let task = session.dataTask(with: request)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                transfers.begin(task.taskIdentifier, continuation, taker)
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
    }
}

/// The requests under way.
private final class Transfers: NSObject, URLSessionDataDelegate {
    private struct Transfer {
        var continuation: CheckedContinuation<AnswerHead, any Error>
        var taker: any AnswerTaker
        var head: AnswerHead?
        /// The taker wants no more.
        var hasEnded = false
        /// Pieces came faster than they could be written.
        var isFlooded = false
    }

    private struct State {
        var open: [Int: Transfer] = [:]
        /// Tasks that ended before anybody waited for them: cancelled before they began.
        var ended: Set<Int> = []
    }

    private let state = Mutex(State())
    private let queue: OperationQueue

    /// Pieces that may wait to be written. The system reads on while they do, and nothing else would
    /// bound the memory they take: a piece has at most 16 KiB on Linux.
    private static let waitingMax = 256

    init(_ queue: OperationQueue) { self.queue = queue }

    func begin(
        _ task: Int, _ continuation: CheckedContinuation<AnswerHead, any Error>,
        _ taker: any AnswerTaker
    ) {
        let hasEnded = state.withLock { state in
            guard state.ended.remove(task) == nil else { return true }
            state.open[task] = Transfer(continuation: continuation, taker: taker)
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
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(.allow)
        if let response = response as? HTTPURLResponse { takeHead(dataTask, response) }
    }

    private func takeHead(_ task: URLSessionTask, _ response: HTTPURLResponse) {
        let taker = state.withLock { state -> (any AnswerTaker)? in
            guard let transfer = state.open[task.taskIdentifier], transfer.head == nil else {
                return nil
            }
            state.open[task.taskIdentifier]?.head = AnswerHead(response)
            return transfer.taker
        }
        guard let taker, !taker.begin(AnswerHead(response)) else { return }
        end(task)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
        let taker = state.withLock { state -> (any AnswerTaker)? in
            let transfer = state.open[dataTask.taskIdentifier]
            return transfer?.hasEnded ?? true ? nil : transfer?.taker
        }
        guard let taker else { return }
        if !taker.take(Array(data)) { return end(dataTask) }
        if queue.operationCount > Self.waitingMax {
            // What has come is still written; the rest is asked for again.
            state.withLock { $0.open[dataTask.taskIdentifier]?.isFlooded = true }
            dataTask.cancel()
        }
    }

    private func end(_ task: URLSessionTask) {
        state.withLock { $0.open[task.taskIdentifier]?.hasEnded = true }
        task.cancel()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        // An answer without a body, and one that was to lead elsewhere.
        if error == nil, let response = task.response as? HTTPURLResponse {
            takeHead(task, response)
        }
        let transfer = state.withLock { state -> Transfer? in
            let transfer = state.open.removeValue(forKey: task.taskIdentifier)
            if transfer == nil { state.ended.insert(task.taskIdentifier) }
            return transfer
        }
        guard let transfer else { return }
        if transfer.hasEnded, let head = transfer.head {
            transfer.continuation.resume(returning: head)
        } else if transfer.isFlooded {
            transfer.continuation.resume(throwing: URLError(.networkConnectionLost))
        } else if let error {
            transfer.continuation.resume(throwing: error)
        } else if let head = transfer.head {
            transfer.continuation.resume(returning: head)
        } else {
            transfer.continuation.resume(throwing: URLError(.badServerResponse))
        }
    }
}
