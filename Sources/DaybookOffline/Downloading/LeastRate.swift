// Ends a reply that trickles. Between the HTTP client and the receiver of a download. Spec/model/downloads.md,
// DL-18.

import Daybook
import Foundation
import Synchronization

/// Passes a body on as long as the server sends it at a least rate.
final class LeastRate: ResponseBodyHandler {
    /// The bytes of the body that must arrive within the time.
    private static let bytesMin = DownloadBackoff.progressBytes

    private struct State {
        var bytes = 0
        /// The time that the client has waited for these bytes.
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
        limit = .seconds(2 * timeoutSeconds)
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
        state.withLock { $0 = State() }
        return handler.begin(head)
    }

    func receive(_ bytes: [UInt8]) -> Bool {
        let goesOn = state.withLock { state in
            state.bytes += bytes.count
            state.waited += ContinuousClock.now - state.waitsSince
            guard state.waited >= limit else { return true }
            state.isTooSlow = state.bytes < Self.bytesMin
            (state.bytes, state.waited) = (0, .zero)
            return !state.isTooSlow
        }
        // The bytes count in any case: the next request continues after them.
        guard handler.receive(bytes), goesOn else { return false }
        // A slow disk is not the server's fault.
        state.withLock { $0.waitsSince = .now }
        return true
    }
}
