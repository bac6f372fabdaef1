// Requests over libcurl, on systems without a URLSession of their own. Below HTTPClient. Each
// request has a thread while it is under way: handlers may block, and neither a slow server nor a
// slow disk holds up Swift's own threads or another request. Why not URLSession:
// Spec/decisions/0038-libcurl-on-linux.md.

#if !canImport(Darwin)
    import CCurl
    import Foundation
    import Synchronization

    /// Carries requests over libcurl.
    final class CurlClient: Sendable {
        private let timeouts: HTTPClient.Timeouts
        /// Handles that no request uses, each with the connection that it has kept.
        private let idle = Mutex<[CurlHandle]>([])

        /// Connections that are kept for later requests at most.
        private static let idleMax = 8

        init(_ timeouts: HTTPClient.Timeouts) { self.timeouts = timeouts }

        /// Carries one request.
        ///
        /// - Parameter origin: of the request's URL, checked.
        /// - Throws: `TransportError`, `CancellationError`.
        func send(
            _ request: HTTPRequest, to origin: HTTPOrigin, _ handler: any ResponseBodyHandler
        ) async throws -> HTTPResponseHead {
            guard let handle = idle.withLock({ $0.popLast() }) ?? CurlHandle() else {
                throw TransportError(
                    .connectionFailed, place: origin.host,
                    "libcurl cannot start: too little memory, or too many open files")
            }
            let cancellation = Cancellation()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let thread = Thread { [self] in
                        Self.blockBrokenPipeSignal()
                        CurlExchange(request, to: origin, handler, timeouts, cancellation)
                            .run(on: handle) { result, isReusable in
                                if isReusable { keep(handle) }
                                continuation.resume(with: result)
                            }
                    }
                    thread.name = "daybook.http"
                    thread.start()
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
