// Requests with libcurl, on Linux. Below BoundedHTTPClient. Each request has its own thread, because handlers
// may block: a slow server or disk must not block the cooperative pool or another request. The reasons
// against URLSession: Spec/decisions/0038-libcurl-on-linux.md.

#if os(Linux)
    import CCurl
    import Foundation
    import Synchronization

    /// An HTTP client with libcurl.
    final class CurlClient: Sendable {
        private let timeouts: BoundedHTTPClient.Timeouts
        private let route: BoundedHTTPClient.Route
        /// The idle handles, each with its open connection.
        private let idle = Mutex<[CurlHandle]>([])

        /// The largest number of idle handles.
        private static let idleMax = 8

        /// The stack size of a request's thread in bytes; nil for the system's default.
        private let stackBytes: Int?

        /// Creates a client.
        ///
        /// - Parameters:
        ///   - timeouts: the timeouts of requests.
        ///   - route: the certificate and the proxy of connections.
        ///   - stackBytes: the stack size of each request's thread in bytes; nil for the system's default. A
        ///     test sets more than there is memory, so that no thread can start.
        /// - Throws: `TransportError` with `certificatesUnsupported`.
        init(
            _ timeouts: BoundedHTTPClient.Timeouts,
            _ route: BoundedHTTPClient.Route = BoundedHTTPClient.Route(),
            stackBytes: Int? = nil
        ) throws(TransportError) {
            guard route.certificate == nil || curl_presents_certificates() != 0 else {
                throw TransportError(
                    .certificatesUnsupported, location: "client certificate",
                    "the system's libcurl was not built with OpenSSL, or is older than 7.71; "
                        + "install another, or use a transport of your own")
            }
            self.timeouts = timeouts
            self.route = route
            self.stackBytes = stackBytes
        }

        /// Sends one request.
        ///
        /// - Parameter origin: the checked origin of the request's URL.
        /// - Throws: `TransportError`, `CancellationError`.
        func send(
            _ request: BoundedHTTPRequest, to origin: HTTPOrigin, _ handler: any ResponseBodyHandler
        ) async throws -> BoundedHTTPResponseHead {
            guard let handle = idle.withLock({ $0.popLast() }) ?? CurlHandle() else {
                throw TransportError(
                    .connectionFailed, location: origin.host,
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
                            .connectionFailed, location: origin.host,
                            "cannot start a thread for the request: "
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

        /// Blocks SIGPIPE in this thread: a broken connection is an error of the system call instead.
        private static func blockBrokenPipeSignal() {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }
    }

    /// A detached thread. Foundation's `Thread` ignores the error if the system cannot start it, so a request
    /// on it would never end.
    private enum DetachedThread {
        private final class Work {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }

        /// Starts a thread.
        ///
        /// - Returns: 0, or the `errno` of the failure; then `body` is not called.
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

    /// The flag by which a request is cancelled.
    final class Cancellation: Sendable {
        private let flag = Atomic(false)

        var isCancelled: Bool { flag.load(ordering: .acquiring) }

        func cancel() { flag.store(true, ordering: .releasing) }
    }

    /// A transfer of libcurl (an easy handle), its loop (a multi handle), and their open connection.
    final class CurlHandle: Sendable {
        // Used by one thread at a time: that of the request that owns the handle. Only curl_multi_wakeup is
        // called from other threads, which libcurl allows.
        nonisolated(unsafe) let easy: UnsafeMutableRawPointer
        nonisolated(unsafe) let multi: UnsafeMutableRawPointer

        private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

        /// Whether `wakeUp` ends a wait. In a process without free file descriptors it may not.
        let canBeWoken: Bool

        /// Creates a handle; nil if libcurl cannot.
        ///
        /// - Parameter canBeWoken: false as if there were no free file descriptor.
        init?(canBeWoken: Bool = true) {
            guard Self.isReady, let easy = curl_easy_init() else { return nil }
            guard let multi = curl_multi_init() else {
                curl_easy_cleanup(easy)
                return nil
            }
            self.easy = easy
            self.multi = multi
            self.canBeWoken = canBeWoken && curl_multi_wakeup(multi) == CURLM_OK
        }

        deinit {
            curl_easy_cleanup(easy)
            curl_multi_cleanup(multi)
        }

        /// Ends a wait of the loop. May be called from any thread.
        func wakeUp() { curl_multi_wakeup(multi) }
    }
#endif
