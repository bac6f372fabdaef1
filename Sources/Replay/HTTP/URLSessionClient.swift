// Requests over URLSession, on Apple systems. Below BoundedHTTPClient. The project's tests run on Linux and
// do not reach it.

#if canImport(Darwin)
    import Foundation
    import Synchronization

    /// Carries requests over URLSession.
    final class URLSessionClient: Sendable {
        private let session: URLSession
        private let transfers: URLSessionTransfers

        /// - Throws: `TransportError` with `badCertificate`.
        init(_ timeouts: BoundedHTTPClient.Timeouts, _ route: BoundedHTTPClient.Route)
            throws(TransportError)
        {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = timeouts.silenceSeconds
            if let seconds = timeouts.requestSeconds {
                configuration.timeoutIntervalForResource = seconds
            }
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
            configuration.httpCookieStorage = nil
            configuration.urlCredentialStorage = nil
            if let proxy = route.proxy {
                configuration.connectionProxyDictionary = [
                    "HTTPSEnable": 1, "HTTPSProxy": proxy.url.host ?? "",
                    "HTTPSPort": proxy.url.port ?? 80,
                    kCFProxyUsernameKey as String: proxy.user ?? "",
                    kCFProxyPasswordKey as String: proxy.password ?? "",
                ]
            }
            transfers = URLSessionTransfers(try route.certificate?.credential())
            let queue = OperationQueue()
            // Handlers need their calls one after the other.
            queue.maxConcurrentOperationCount = 1
            session = URLSession(
                configuration: configuration, delegate: transfers, delegateQueue: queue)
        }

        deinit { session.invalidateAndCancel() }

        /// Carries one request.
        ///
        /// - Throws: `TransportError`, `CancellationError`.
        func send(
            _ request: BoundedHTTPRequest, to origin: HTTPOrigin, _ handler: any ResponseBodyHandler
        ) async throws -> BoundedHTTPResponseHead {
            var urlRequest = URLRequest(url: request.url)
            urlRequest.httpMethod = request.body == nil ? "GET" : "POST"
            for (name, value) in request.fields {
                urlRequest.setValue(value, forHTTPHeaderField: name)
            }
            urlRequest.httpBody = request.body.map { Data($0) }
            let task = session.dataTask(with: urlRequest)
            do {
                return try await withTaskCancellationHandler {
                    try await withCheckedThrowingContinuation { continuation in
                        transfers.begin(task.taskIdentifier, continuation, handler)
                        task.resume()
                    }
                } onCancel: {
                    task.cancel()
                }
            } catch let error as URLError {
                if Task.isCancelled { throw CancellationError() }
                throw TransportError(
                    error.code == .timedOut ? .timedOut : .connectionFailed, place: origin.host,
                    error.localizedDescription)
            }
        }
    }

    /// The requests under way.
    private final class URLSessionTransfers: NSObject, URLSessionDataDelegate {
        private struct Transfer {
            var continuation: CheckedContinuation<BoundedHTTPResponseHead, any Error>
            var handler: any ResponseBodyHandler
            var head: BoundedHTTPResponseHead?
            /// The handler wants no more.
            var hasEnded = false
        }

        private struct State {
            var open: [Int: Transfer] = [:]
            /// Tasks that ended before they were waited for: cancelled before they began.
            var ended: Set<Int> = []
        }

        private let state = Mutex(State())
        private let credential: URLCredential?

        init(_ credential: URLCredential?) { self.credential = credential }

        func begin(
            _ task: Int, _ continuation: CheckedContinuation<BoundedHTTPResponseHead, any Error>,
            _ handler: any ResponseBodyHandler
        ) {
            let hasEnded = state.withLock { state in
                guard state.ended.remove(task) == nil else { return true }
                state.open[task] = Transfer(continuation: continuation, handler: handler)
                return false
            }
            if hasEnded { continuation.resume(throwing: CancellationError()) }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            switch challenge.protectionSpace.authenticationMethod {
            case NSURLAuthenticationMethodServerTrust:
                completionHandler(.performDefaultHandling, nil)
            case NSURLAuthenticationMethodClientCertificate where credential != nil:
                completionHandler(.useCredential, credential)
            default:
                // A demand for a password is a 401 like any other.
                completionHandler(.rejectProtectionSpace, nil)
            }
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
            if let response = response as? HTTPURLResponse { receiveHead(dataTask, response) }
        }

        private func receiveHead(_ task: URLSessionTask, _ response: HTTPURLResponse) {
            var head = BoundedHTTPResponseHead(status: response.statusCode)
            for case (let name as String, let value as String) in response.allHeaderFields {
                head.add(name, value)
            }
            let handler = state.withLock { state -> (any ResponseBodyHandler)? in
                guard let transfer = state.open[task.taskIdentifier], transfer.head == nil else {
                    return nil
                }
                state.open[task.taskIdentifier]?.head = head
                return transfer.handler
            }
            guard let handler, !handler.begin(head) else { return }
            end(task)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
        ) {
            let handler = state.withLock { state -> (any ResponseBodyHandler)? in
                let transfer = state.open[dataTask.taskIdentifier]
                return transfer?.hasEnded ?? true ? nil : transfer?.handler
            }
            guard let handler else { return }
            if !handler.receive(Array(data)) { end(dataTask) }
        }

        private func end(_ task: URLSessionTask) {
            state.withLock { $0.open[task.taskIdentifier]?.hasEnded = true }
            task.cancel()
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            // A reply without a body, and one that was to lead elsewhere.
            if error == nil, let response = task.response as? HTTPURLResponse {
                receiveHead(task, response)
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
#endif
