// One request to the server, in a task of its own. Between ReplaySession and the transport.
// Spec/protocol/replay.md, RPL-12 and RPL-13.

import EventSourcing
import Foundation
import LogFormat
import SyncWire
import Telemetry

/// The I/O of a request.
struct RequestTask: Sendable {
    let replayer: Replayer
    let end: Replayer.End

    /// The result of a request.
    struct Exchange: Sendable {
        var number: Int
        var answer: ReplayState.Answer
        /// The verdicts of the answer, if it has any: parsed in the request's task, not in the loop.
        var verdicts: [Verdict]?
        /// True if the transport's timeout ended the request.
        var hasTimedOut: Bool
        var sent: Int64
        var received: Int64
        /// The last position that the outbox had folded when the request was sent.
        var through: Position
    }

    /// Sends a request.
    ///
    /// - Parameter isOffer: whether the events of the batch are settled, and the server may lack them.
    /// - Throws: `TransportError` if nothing can ever be sent to the endpoint.
    func exchange(
        _ call: TransportRequest, _ number: Int, token: String?, isOffer: Bool
    ) async throws -> Exchange {
        let sent = replayer.store.deviceNow
        let through = replayer.store.view(Outbox.self).through
        let answer: ReplayState.Answer
        var hasTimedOut = false
        do {
            answer = .reply(try await send(call, token, isOffer))
        } catch let error as TransportError where error.code == .foreignPage {
            // The recorded cursor is another server's. Handled as a refused cursor: G2.
            answer = .reply(TransportReply(status: 400))
        } catch let error as TransportError where error.isMisuse {
            throw error
        } catch let error as TransportError where !error.isTransient {
            answer = .refused(error)
        } catch {
            hasTimedOut = (error as? TransportError)?.code == .timedOut
            answer = .failure("no answer: \(Self.message(of: error))")
        }
        let received = replayer.store.deviceNow
        var verdicts: [Verdict]?
        if case .append = call, case .reply(let reply) = answer, reply.status == 200 {
            verdicts = Verdict.parse(reply.body)
        }
        return Exchange(
            number: number, answer: answer, verdicts: verdicts, hasTimedOut: hasTimedOut,
            sent: sent, received: received, through: through)
    }

    private func send(
        _ call: TransportRequest, _ token: String?, _ isOffer: Bool
    ) async throws -> TransportReply {
        let instruments = replayer.instruments
        let reply: TransportReply = try await instruments.measure(
            .syncRequest, failure: { $0.status == 200 ? nil : "http-\($0.status)" }
        ) {
            try await withDeadline { try await sendForAccount(call, token, isOffer) }
        }
        if case .append(let batch) = call { instruments.count(.sentBytes, batch.count) }
        instruments.count(.receivedBytes, reply.body.count)
        return reply
    }

    /// Sends a request for the log's account (SYNC-47, SYNC-51).
    ///
    /// - Throws: `TransportError` (`wrongAccount`, `accountNeeded`) before anything is sent; what the transport
    ///   throws.
    private func sendForAccount(
        _ call: TransportRequest, _ token: String?, _ isOffer: Bool
    ) async throws -> TransportReply {
        let transport = replayer.transport
        let account = try PeerCheck.account(of: replayer.store, over: transport, token: token)
        if isOffer, case .append(let batch) = call {
            return try await transport.offer(batch, token: token, account: account)
        }
        return try await transport.send(call, token: token, account: account)
    }

    /// Runs `body`. In a run that ends at a time, cancels it then and throws `timedOut`.
    func withDeadline<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard case .at(let time) = end else { return try await body() }
        let remaining = max(0, time.milliseconds - replayer.store.deviceNow)
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await replayer.sleep(.milliseconds(remaining))
                throw TransportError(
                    .timedOut, location: "server", "the run ended before the server answered")
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }

    /// The system's description of an error. It never contains the request, which has a token.
    static func message(of error: any Error) -> String {
        (error as NSError).localizedDescription
    }
}
