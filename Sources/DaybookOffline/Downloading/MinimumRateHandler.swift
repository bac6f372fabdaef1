// Ends a reply that trickles. Between the HTTP client and the receiver of a download. Spec/model/downloads.md,
// DL-18.

import Daybook
import Foundation
import Synchronization

/// A receiver that ends a body below a minimum rate, and otherwise passes it on.
final class MinimumRateHandler: ResponseBodyHandler {
    /// The bytes of the body that must arrive within the time.
    private static let bytesMin = DownloadBackoff.progressBytes

    private struct State {
        /// The bytes of the body that are still to come, if the head says it.
        var remaining: Int?
        /// The bytes that have arrived within `waited`.
        var bytes = 0
        /// The time that the client has waited for the server.
        var waited = Duration.zero
        var waitsSince = ContinuousClock.now
        var isTooSlow = false
    }

    private let handler: any ResponseBodyHandler
    private let limit: Duration
    private let state = Mutex(State())

    /// - Parameter timeoutSeconds: the longest silence of a server; the bytes may take twice as long.
    init(_ handler: any ResponseBodyHandler, timeoutSeconds: Double) {
        self.handler = handler
        // Not a number counts as the longest time.
        limit = .seconds(timeoutSeconds < 1e6 ? 2 * max(timeoutSeconds, 0.001) : 2e6)
    }

    /// Throws if the request was ended because of its rate.
    ///
    /// - Throws: `TransportError` with `timedOut`.
    func check(_ url: URL) throws {
        guard state.withLock({ $0.isTooSlow }) else { return }
        throw TransportError(
            .timedOut, location: url.host ?? "server",
            "the server has sent less than \(Self.bytesMin) bytes in \(limit)")
    }

    func begin(_ head: BoundedHTTPResponseHead) -> Bool {
        state.withLock {
            $0 = State()
            $0.remaining = head["Content-Length"].flatMap { Int($0) }
        }
        defer { state.withLock { $0.waitsSince = .now } }
        return handler.begin(head)
    }

    func receive(_ bytes: [UInt8]) -> Bool {
        let waited = state.withLock { ContinuousClock.now - $0.waitsSince }
        guard handler.receive(bytes) else { return false }
        return state.withLock { state in
            // A slow disk is not the server's fault.
            state.waitsSince = .now
            state.bytes += bytes.count
            state.waited += waited
            if let remaining = state.remaining { state.remaining = remaining - bytes.count }
            guard state.waited >= limit else { return true }
            state.isTooSlow = state.bytes < Self.bytesMin && state.remaining ?? 1 > 0
            (state.bytes, state.waited) = (0, .zero)
            return !state.isTooSlow
        }
    }
}
