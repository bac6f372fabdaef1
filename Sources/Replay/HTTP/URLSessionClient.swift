// Requests with URLSession, on Apple systems. Below BoundedHTTPClient. The project's tests run on Linux and
// do not reach it.

#if canImport(Darwin)
    import Foundation
    import Network
    import Synchronization

    /// An HTTP client with URLSession.
    final class URLSessionClient: Sendable {
        /// The session for https, with the app's proxy, if there is one.
        private let secure: URLSession
        /// The session for http, without the proxy, which could read it.
        private let plain: URLSession
        private let transfers: URLSessionTransfers

        /// Creates a client.
        ///
        /// - Throws: `TransportError` with `badCertificate` or `badProxy`.
        init(_ timeouts: BoundedHTTPClient.Timeouts, _ route: BoundedHTTPClient.Route)
            throws(TransportError)
        {
            transfers = URLSessionTransfers(try route.certificate?.credential())
            let queue = OperationQueue()
            // Handlers must be called one after the other.
            queue.maxConcurrentOperationCount = 1
            // A session copies its configuration.
            let configuration = Self.configuration(timeouts)
            plain = URLSession(
                configuration: configuration, delegate: transfers, delegateQueue: queue)
            if let proxy = route.proxy {
                configuration.proxyConfigurations = [try Self.tunnel(through: proxy)]
            }
            secure = URLSession(
                configuration: configuration, delegate: transfers, delegateQueue: queue)
        }

        // A session retains its delegate until it is invalidated.
        deinit {
            secure.invalidateAndCancel()
            plain.invalidateAndCancel()
        }

        /// A configuration without cookies, cache and passwords.
        private static func configuration(
            _ timeouts: BoundedHTTPClient.Timeouts
        ) -> URLSessionConfiguration {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = timeouts.silenceSeconds
            if let seconds = timeouts.requestSeconds {
                configuration.timeoutIntervalForResource = seconds
            }
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
            configuration.urlCache = nil
            configuration.httpCookieStorage = nil
            configuration.urlCredentialStorage = nil
            configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
            return configuration
        }

        private static func tunnel(
            through proxy: HTTPProxy
        ) throws(TransportError) -> ProxyConfiguration {
            guard let origin = HTTPOrigin(proxy.url),
                let port = UInt16(exactly: origin.port).flatMap(NWEndpoint.Port.init(rawValue:))
            else {
                throw TransportError(
                    .badProxy, location: "proxy", "its address is not http://host:port")
            }
            let tunnel = ProxyConfiguration(
                httpCONNECTProxy: .hostPort(host: NWEndpoint.Host(origin.host), port: port))
            if let user = proxy.user {
                tunnel.applyCredential(username: user, password: proxy.password ?? "")
            }
            return tunnel
        }

        /// Sends one request.
        ///
        /// - Throws: `TransportError`, `CancellationError`.
        func send(
            _ request: BoundedHTTPRequest, to origin: HTTPOrigin, _ handler: any ResponseBodyHandler
        ) async throws -> BoundedHTTPResponseHead {
            var urlRequest = URLRequest(url: request.url)
            urlRequest.httpMethod =
                request.method?.rawValue ?? (request.body == nil ? "GET" : "POST")
            for (name, value) in request.fields {
                urlRequest.setValue(value, forHTTPHeaderField: name)
            }
            urlRequest.httpBody = request.body.map { Data($0) }
            let session = origin.scheme == "https" ? secure : plain
            let task = session.dataTask(with: urlRequest)
            do {
                return try await withTaskCancellationHandler {
                    try await withCheckedThrowingContinuation { continuation in
                        transfers.begin(task, continuation, handler)
                        task.resume()
                    }
                } onCancel: {
                    task.cancel()
                }
            } catch {
                if Task.isCancelled { throw CancellationError() }
                throw TransportError(
                    Self.code(of: error), location: origin.host, error.localizedDescription)
            }
        }

        private static func code(of error: any Error) -> TransportError.Code {
            switch (error as? URLError)?.code {
            case .timedOut: .timedOut
            case .badServerResponse, .cannotParseResponse: .malformedReply
            default: .connectionFailed
            }
        }
    }

    /// The requests under way.
    private final class URLSessionTransfers: NSObject, URLSessionDataDelegate {
        private struct Transfer {
            var continuation: CheckedContinuation<BoundedHTTPResponseHead, any Error>
            var handler: any ResponseBodyHandler
            var head: BoundedHTTPResponseHead?
            /// True if the handler has ended the request.
            var hasEnded = false
        }

        private struct State {
            var open: [URLSessionTask: Transfer] = [:]
            /// Tasks that were cancelled before `begin` was called.
            var ended: Set<URLSessionTask> = []
        }

        private let state = Mutex(State())
        private let credential: URLCredential?

        init(_ credential: URLCredential?) { self.credential = credential }

        func begin(
            _ task: URLSessionTask,
            _ continuation: CheckedContinuation<BoundedHTTPResponseHead, any Error>,
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
                // A password challenge is a 401 like any other.
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
                guard let transfer = state.open[task], transfer.head == nil else {
                    return nil
                }
                state.open[task]?.head = head
                return transfer.handler
            }
            guard let handler, !handler.begin(head) else { return }
            end(task)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
        ) {
            let handler = state.withLock { state -> (any ResponseBodyHandler)? in
                let transfer = state.open[dataTask]
                return transfer?.hasEnded ?? true ? nil : transfer?.handler
            }
            guard let handler else { return }
            if !handler.receive(Array(data)) { end(dataTask) }
        }

        private func end(_ task: URLSessionTask) {
            state.withLock { $0.open[task]?.hasEnded = true }
            task.cancel()
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            // Of HTTP/1 the head says how the body ends.
            guard let name = metrics.transactionMetrics.last?.networkProtocolName,
                !name.lowercased().hasPrefix("http/1")
            else { return }
            state.withLock { $0.open[task]?.head?.isFramed = true }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            // Replies without a body, and redirects, for which no response was delivered.
            if error == nil, let response = task.response as? HTTPURLResponse {
                receiveHead(task, response)
            }
            let transfer = state.withLock { state -> Transfer? in
                let transfer = state.open.removeValue(forKey: task)
                if transfer == nil { state.ended.insert(task) }
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
