// The reply to GET /v1/events with `Accept: text/event-stream`: the account's events as server-sent events,
// as soon as they are stored. Spec/protocol/push.md.

import EventSourcing
import Foundation
import Hummingbird
import Logging
import NIOCore
import SyncServerAdmission
import SyncServerStorage
import SyncWire

/// A stream of an account's events.
struct EventStream: Sendable {
    /// The first bytes: they show the client that no proxy withholds the stream.
    private static let opening = Array(": following\n\n".utf8)
    /// A comment, which has no meaning but that the connection lives.
    private static let heartbeat = Array(":\n\n".utf8)

    let storage: any EventStorage
    let metrics: ServerMetrics
    let capacity: SharedCapacity
    /// The context of the request, with its account and the loop of its connection.
    let context: ServerContext
    /// The place among the open streams, released at the end.
    let place: Loan
    let wakeups: StreamWakeups

    /// Whether a request asks for a stream: if it prefers one to pages, or accepts both alike and names the
    /// type of a stream.
    static func isRequested(by request: Request) -> Bool {
        let accepted = AcceptedTypes(request.headers[.accept] ?? "")
        guard let stream = accepted.preference(for: WireType.stream), stream.weight > 0
        else { return false }
        let page = accepted.preference(for: WireType.batch)?.weight ?? 0
        return stream.weight > page || stream.weight == page && stream.isNamed
    }

    /// Writes the account's events after a cursor until the client leaves, its token is withdrawn, the server
    /// ends, or the database fails. Then the client resumes after the last event that it has read.
    func write(after start: EventCursor, to writer: inout any ResponseBodyWriter) async throws {
        defer {
            storage.signals.removeStream(wakeups)
            place.release()
        }
        try await writer.write(ByteBuffer(bytes: Self.opening))
        var cursor = start
        do {
            while let reasons = await wakeups.next() {
                // Also for a token that was withdrawn before the connection counted as a stream.
                try context.checkPermission()
                if reasons.contains(.events) {
                    try await writeEvents(after: &cursor, to: &writer)
                }
                if reasons.contains(.heartbeat) {
                    try await writer.write(ByteBuffer(bytes: Self.heartbeat))
                }
            }
        } catch let error as StorageError {
            context.logger.error("storage failed", metadata: ["cause": "\(error)"])
        } catch let error as RequestError {
            context.logger.notice("stream ended", metadata: ["cause": "\(error.detail)"])
        }
        try await writer.finish(nil)
    }

    private func writeEvents(
        after cursor: inout EventCursor, to writer: inout any ResponseBodyWriter
    ) async throws {
        while true {
            // Held until the client has read all but the last piece.
            let memory = try await capacity.pageMemory(context.account)
            defer { memory.release() }
            let page = try await read(after: cursor)
            let text = text(of: page)
            memory.shrink(to: text.count)
            try await Reply.write(
                text, to: &writer, on: context.channel.eventLoop, check: context.checkPermission)
            metrics.countEvents(out: page.lines.count)
            cursor = page.next
            if case .serial(let serial) = cursor { wakeups.sentSerial = serial }
            guard page.isFull(limit: WireLimits.events) else { return }
        }
    }

    private func read(after cursor: EventCursor) async throws -> ServedPage {
        let turn = try await capacity.turnToRead(context.account)
        defer { turn.release() }
        return try await storage.page(
            account: context.account, source: nil, after: cursor, limit: WireLimits.events)
    }

    /// The events of a page in the format of server-sent events. A line has no line break.
    private func text(of page: ServedPage) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(page.bytes + 32 * page.lines.count)
        for (line, cursor) in zip(page.lines, page.cursors) {
            text += "id: \(storage.restores.text(of: cursor))\ndata: ".utf8
            text += line
            text += "\n\n".utf8
        }
        return text
    }
}
