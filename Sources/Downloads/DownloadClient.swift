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
        transfers = Transfers()
        session = URLSession(
            configuration: configuration, delegate: transfers, delegateQueue: NarrowQueue())
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

/// A queue with little room: whoever adds to it waits until there is some. On Linux the session adds
/// each piece that it has read, and would read on without end while a disk is slow; so it reads no
/// more than is written. Systems whose sessions see to that themselves may never use this method.
/// That it is `@unchecked Sendable` is inherited, and must be said again.
private final class NarrowQueue: OperationQueue, @unchecked Sendable {
    /// Pieces that may wait, of 16 KiB at most each.
    private let room = DispatchSemaphore(value: 64)

    override init() {
        super.init()
        // One piece at a time: takers need no more.
        maxConcurrentOperationCount = 1
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) {
        room.wait()
        super.addOperation { [room] in
            block()
            room.signal()
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
    }

    private struct State {
        var open: [Int: Transfer] = [:]
        /// Tasks that ended before anybody waited for them: cancelled before they began.
        var ended: Set<Int> = []
    }

    private let state = Mutex(State())

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
        if !taker.take(Array(data)) { end(dataTask) }
    }

    private func end(_ task: URLSessionTask) {
        state.withLock { $0.open[task.taskIdentifier]?.hasEnded = true }
        // Elsewhere: it waits for the session, which may wait for room in this queue.
        DispatchQueue.global().async { task.cancel() }
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
        } else if let error {
            transfer.continuation.resume(throwing: error)
        } else if let head = transfer.head {
            transfer.continuation.resume(returning: head)
        } else {
            transfer.continuation.resume(throwing: URLError(.badServerResponse))
        }
    }
}
