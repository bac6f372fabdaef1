// Requests over libcurl, on Linux. Below BoundedHTTPClient. Each request has a thread while it is under
// way: handlers may block, and neither a slow server nor a slow disk holds up Swift's own threads or
// another request. Why not URLSession: Spec/decisions/0038-libcurl-on-linux.md.

#if os(Linux)
    import CCurl
    import Foundation
    import Synchronization

    /// Carries requests over libcurl.
    final class CurlClient: Sendable {
        private let timeouts: BoundedHTTPClient.Timeouts
        private let route: BoundedHTTPClient.Route
        /// Handles that no request uses, each with the connection that it has kept.
        private let idle = Mutex<[CurlHandle]>([])

        /// Connections that are kept for later requests at most.
        private static let idleMax = 8

        /// Bytes of the stack of a request's thread; nil: the system's default.
        private let stackBytes: Int?

        /// Creates a client.
        ///
        /// - Parameters:
        ///   - timeouts: how long requests may take.
        ///   - route: what connections are made with.
        ///   - stackBytes: of each request's thread; nil: the system's default. A test takes more
        ///     than there is, so that no thread starts.
        /// - Throws: `TransportError` with `certificatesUnsupported`.
        init(
            _ timeouts: BoundedHTTPClient.Timeouts,
            _ route: BoundedHTTPClient.Route = BoundedHTTPClient.Route(),
            stackBytes: Int? = nil
        ) throws(TransportError) {
            guard route.certificate == nil || curl_presents_certificates() != 0 else {
                throw TransportError(
                    .certificatesUnsupported, place: "client certificate",
                    "the system's libcurl was not built with OpenSSL, or is older than 7.71. "
                        + "Install another, or use a transport of your own")
            }
            self.timeouts = timeouts
            self.route = route
            self.stackBytes = stackBytes
        }

        /// Carries one request.
        ///
        /// - Parameter origin: of the request's URL, checked.
        /// - Throws: `TransportError`, `CancellationError`.
        func send(
            _ request: BoundedHTTPRequest, to origin: HTTPOrigin, _ handler: any ResponseBodyHandler
        ) async throws -> BoundedHTTPResponseHead {
            guard let handle = idle.withLock({ $0.popLast() }) ?? CurlHandle() else {
                throw TransportError(
                    .connectionFailed, place: origin.host,
                    "libcurl cannot start: too little memory, or too many open files")
            }
            let cancellation = Cancellation()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let error = DetachedThread.start(stackBytes: stackBytes) { [self] in
                        Thread.current.name = "daybook.http"
                        Self.blockBrokenPipeSignal()
                        CurlExchange(request, to: origin, handler, timeouts, cancellation, route)
                            .run(on: handle) { result, isReusable in
                                if isReusable { keep(handle) }
                                continuation.resume(with: result)
                            }
                    }
                    guard error != 0 else { return }
                    continuation.resume(
                        throwing: TransportError(
                            .connectionFailed, place: origin.host,
                            "no thread for the request can start: "
                                + String(cString: strerror(error))))
                }
            } onCancel: {
                cancellation.cancel()
                handle.wakeUp()
            }
        }

        private func keep(_ handle: CurlHandle) {
            idle.withLock { if $0.count < Self.idleMax { $0.append(handle) } }
        }

        /// A connection that breaks is an error of its call. The signal goes with the thread.
        private static func blockBrokenPipeSignal() {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }
    }

    /// A thread that releases itself when its work ends. Foundation's `Thread` ignores that the
    /// system refuses to start it: a request on such a thread would never end.
    private enum DetachedThread {
        private final class Work {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }

        /// Starts a thread.
        ///
        /// - Returns: 0, or the system's error: then `body` is not called.
        static func start(stackBytes: Int?, _ body: @escaping @Sendable () -> Void) -> Int32 {
            var attributes = pthread_attr_t()
            var error = pthread_attr_init(&attributes)
            guard error == 0 else { return error }
            defer { pthread_attr_destroy(&attributes) }
            pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
            if let stackBytes { pthread_attr_setstacksize(&attributes, stackBytes) }
            let work = Unmanaged.passRetained(Work(body))
            var thread = pthread_t()
            error = pthread_create(
                &thread, &attributes,
                { work in
                    guard let work else { return nil }
                    Unmanaged<Work>.fromOpaque(work).takeRetainedValue().body()
                    return nil
                }, work.toOpaque())
            if error != 0 { work.release() }
            return error
        }
    }

    /// Whether a request is to end.
    final class Cancellation: Sendable {
        private let flag = Atomic(false)

        var isCancelled: Bool { flag.load(ordering: .acquiring) }

        func cancel() { flag.store(true, ordering: .releasing) }
    }

    /// A transfer of libcurl with the loop that drives it, and the connections that it keeps.
    final class CurlHandle: Sendable {
        // One thread at a time uses them: that of the request which has taken the handle. Only
        // curl_multi_wakeup is called from elsewhere, and may be.
        nonisolated(unsafe) let easy: UnsafeMutableRawPointer
        nonisolated(unsafe) let multi: UnsafeMutableRawPointer

        private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

        /// Creates a handle; nil where libcurl cannot.
        init?() {
            guard Self.isReady, let easy = curl_easy_init() else { return nil }
            guard let multi = curl_multi_init() else {
                curl_easy_cleanup(easy)
                return nil
            }
            self.easy = easy
            self.multi = multi
        }

        deinit {
            curl_easy_cleanup(easy)
            curl_multi_cleanup(multi)
        }

        /// Lets the loop look around now. From any thread.
        func wakeUp() { curl_multi_wakeup(multi) }
    }
#endif
