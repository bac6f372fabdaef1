// Requests that the system goes on with while the app is suspended or ended, on Apple systems. A client of
// RequestTransport, in place of BoundedHTTPClient. The project's tests run on Linux and do not reach it: it has never run.
// Spec/decisions/0076-background-session.md.

#if canImport(Darwin)
    import Cryptography
    import EventSourcing
    import Foundation
    import Synchronization

    /// A client for an app's own API whose requests outlive the app's process.
    ///
    /// ```swift
    /// let transport = try RequestTransport(
    ///     store, api: "habits", at: base, promise: .once(keysKeptFor: .seconds(86_400)),
    ///     client: BackgroundAPIClient("com.example.habits.api"))
    /// ```
    ///
    /// A request that is under way when a run ends goes on. The next attempt of the same request, also after a launch,
    /// takes its answer instead of sending it again. Requests without a body, and those of `atLeastOnce`, are sent in
    /// the foreground: the system uploads files only, and may repeat an upload.
    ///
    /// The system follows redirects in the background; an answer from another address is refused.
    public final class BackgroundAPIClient: APIClient {
        private let foreground: BoundedHTTPClient
        private let session: URLSession
        private let uploads: Uploads
        private let folder: URL

        /// Creates a client. One for each identifier and process, early in a launch: the system reports finished
        /// requests to it.
        ///
        /// - Parameters:
        ///   - identifier: the identifier of the background session.
        ///   - http: headers and limits. A background session has neither certificate nor proxy of the app.
        ///   - requestSeconds: the longest time for a request, waits for a network included. Let it be far below the
        ///     time for which the API keeps keys, and take it from `keysKeptFor`.
        ///   - didFinish: called when the system has reported all finished requests after a launch in the background;
        ///     calls the completion handler of `handleEventsForBackgroundURLSession`.
        /// - Throws: `TransportError`: `badCertificate` or `badProxy` for options with one; as
        ///   `BoundedHTTPClient.check()`. An error of the file system.
        public init(
            _ identifier: String, http: HTTPOptions = HTTPOptions(),
            requestSeconds: Double = 3_600, didFinish: @escaping @Sendable () -> Void = {}
        ) throws {
            guard http.certificate == nil else {
                throw TransportError(
                    .badCertificate, location: "client certificate",
                    "a background session cannot present it; use BoundedHTTPClient")
            }
            guard http.proxy == nil else {
                throw TransportError(
                    .badProxy, location: "proxy",
                    "a background session does not use it; use BoundedHTTPClient")
            }
            foreground = BoundedHTTPClient(forSyncing: http)
            try foreground.check()
            folder = URL.cachesDirectory.appending(path: "daybook-requests/\(identifier)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            uploads = Uploads(folder, didFinish)
            let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
            configuration.timeoutIntervalForResource = requestSeconds
            configuration.httpCookieStorage = nil
            configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
            session = URLSession(
                configuration: configuration, delegate: uploads, delegateQueue: nil)
        }

        // The system goes on with the requests.
        deinit { session.finishTasksAndInvalidate() }

        /// Sends a request, or takes up the same request of an earlier run.
        ///
        /// - Throws: as `BoundedHTTPClient.answer(to:token:)`.
        public func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer
        {
            guard let body = request.body, !request.isSentOnce else {
                return try await foreground.answer(to: request, token: token)
            }
            // Without the token: a renewed one does not make another request of it.
            let name = Self.name(of: request, body)
            let request = try foreground.prepare(request, token: token, isOwn: true).request
            try Task.checkCancellation()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    guard !uploads.takeAnswer(name, for: continuation) else { return }
                    // A task that was cancelled before has called `leave` already.
                    guard !Task.isCancelled else { return uploads.leave(name) }
                    // In this order: a request that ends in between resumes the continuation.
                    session.getAllTasks { [self] tasks in
                        guard !tasks.contains(where: { $0.taskDescription == name }),
                            uploads.isAwaited(name)
                        else { return }
                        do { try upload(request, body, name) } catch {
                            uploads.end(name, .failure(error))
                        }
                    }
                }
            } onCancel: {
                uploads.leave(name)
            }
        }

        private func upload(_ request: BoundedHTTPRequest, _ body: [UInt8], _ name: String) throws {
            let file = folder.appending(path: name)
            try Data(body).write(to: file, options: .atomic)
            var urlRequest = URLRequest(url: request.url)
            urlRequest.httpMethod = request.method?.rawValue ?? "POST"
            for (name, value) in request.fields {
                urlRequest.setValue(value, forHTTPHeaderField: name)
            }
            let task = session.uploadTask(with: urlRequest, fromFile: file)
            task.taskDescription = name
            task.resume()
        }

        private static func name(of request: BoundedHTTPRequest, _ body: [UInt8]) -> String {
            var text = "\(request.method?.rawValue ?? "POST") \(request.url.absoluteString)\n"
            for (name, value) in request.fields { text += "\(name):\(value)\n" }
            return SHA256.hash(Array(text.utf8) + body).hexadecimalDigits
        }
    }

    /// The uploads, by the name of their request.
    private final class Uploads: NSObject, URLSessionDataDelegate {
        private struct Upload {
            var body = ReplyBody()
            var continuation: CheckedContinuation<APIAnswer, any Error>?
            /// An answer that nothing waits for yet.
            var answer: APIAnswer?
        }

        private let state = Mutex<[String: Upload]>([:])
        private let folder: URL
        private let didFinish: @Sendable () -> Void

        init(_ folder: URL, _ didFinish: @escaping @Sendable () -> Void) {
            self.folder = folder
            self.didFinish = didFinish
        }

        /// Resumes a continuation with the answer that has arrived, or keeps it for the one to come.
        ///
        /// - Returns: whether there was an answer.
        func takeAnswer(
            _ name: String, for continuation: CheckedContinuation<APIAnswer, any Error>
        ) -> Bool {
            let answer = state.withLock { state -> APIAnswer? in
                if let answer = state[name]?.answer {
                    state[name] = nil
                    return answer
                }
                state[name, default: Upload()].continuation = continuation
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
            return answer != nil
        }

        func isAwaited(_ name: String) -> Bool {
            state.withLock { $0[name]?.continuation != nil }
        }

        /// Ends the wait for an upload, which goes on.
        func leave(_ name: String) {
            let continuation = state.withLock { state in
                defer { state[name]?.continuation = nil }
                return state[name]?.continuation
            }
            continuation?.resume(throwing: CancellationError())
        }

        /// Ends an upload. An answer is kept until it is asked for.
        func end(_ name: String, _ result: Result<APIAnswer, any Error>) {
            let continuation = state.withLock { state in
                defer { state[name] = nil }
                return state[name]?.continuation
            }
            try? FileManager.default.removeItem(at: folder.appending(path: name))
            if let continuation { return continuation.resume(with: result) }
            guard case .success(let answer) = result else { return }
            state.withLock { $0[name, default: Upload()].answer = answer }
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
        ) {
            guard let name = dataTask.taskDescription else { return }
            let body = state.withLock { state in
                let upload = state[name] ?? Upload()
                state[name] = upload
                return upload.body
            }
            if !body.receive(Array(data)) { dataTask.cancel() }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            guard let name = task.taskDescription else { return }
            end(name, Result { try answer(of: task, name, error) })
        }

        private func answer(
            of task: URLSessionTask, _ name: String, _ error: (any Error)?
        ) throws -> APIAnswer {
            let body = state.withLock { $0[name]?.body } ?? ReplyBody()
            guard let url = task.originalRequest?.url,
                let response = task.response as? HTTPURLResponse, response.url == url
            else {
                throw TransportError(
                    .connectionFailed, location: task.originalRequest?.url?.host ?? "server",
                    error?.localizedDescription ?? "the answer is from another address")
            }
            var head = BoundedHTTPResponseHead(status: response.statusCode)
            for case (let name as String, let value as String) in response.allHeaderFields {
                head.add(name, value)
            }
            let bytes = try body.checked(head, from: url)
            if let error { throw error }
            return APIAnswer(head, bytes)
        }

        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { didFinish() }
    }
#endif
