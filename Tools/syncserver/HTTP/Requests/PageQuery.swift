// The parsed query of GET /v1/events. Spec/protocol/sync-protocol.md, SYNC-30 to SYNC-34.

import EventSourcing
import Foundation
import Hummingbird
import NIOHTTPTypes
import SyncServerStorage
import SyncWire

/// The query of a pull.
struct PageQuery {
    /// The requested source; nil requests the events of all.
    let source: UUID?
    /// The cursor after which the page begins; nil begins at the start.
    let cursor: EventCursor?
    /// The most events.
    let limit: Int
    private let restores: Restores

    /// Parses the query of a request.
    ///
    /// - Throws: `RequestError` with 400.
    init(_ request: Request, limitMax: Int, _ restores: Restores) throws {
        self.restores = restores
        let query = request.uri.queryParameters
        source = try query[Substring(WireQuery.source)].map { text in
            guard let source = UUID(sourceName: String(text)) ?? UUID(text: String(text))
            else { throw Self.refusal("bad_source", "source is not a UUID") }
            return source
        }
        limit =
            try query[Substring(WireQuery.limit)].map { text in
                guard let limit = Int(digits: text), limit >= 1 else {
                    throw Self.refusal("bad_limit", "limit is not a number from 1 on")
                }
                return min(limit, limitMax)
            } ?? limitMax
        let bySource = source != nil
        cursor = try query[Substring(WireQuery.after)].map { text in
            let cursor = try Self.cursor(
                String(text), restores, else: "after is not a cursor of this order")
            guard cursor.isBySource == bySource else {
                throw Self.refusal("bad_cursor", "after is not a cursor of this order")
            }
            return cursor
        }
    }

    /// Reads a cursor.
    ///
    /// - Parameter detail: the message for one that is malformed.
    /// - Throws: `RequestError`: 400 `bad_cursor`, or `restored` for a cursor from before a restore.
    private static func cursor(
        _ text: String, _ restores: Restores, else detail: String
    ) throws(RequestError) -> EventCursor {
        switch restores.read(text) {
        case .cursor(let cursor): return cursor
        case .malformed: throw refusal("bad_cursor", detail)
        case .outdated(let restore):
            throw RequestError(
                .badRequest, "restored",
                "the database was restored to its state of \(restore.restoredTo)",
                headers: [
                    restored: ServerRestore(
                        time: restore.restoredTo.milliseconds, generation: restore.generation
                    ).header
                ])
        }
    }

    private static let restored = HTTPFields.Element.Name(valid: WireHeader.restored)

    /// The cursor after which a stream begins: that of `Last-Event-ID`, which a client sends when it resumes
    /// with the same URL, else that of the query, else the start.
    ///
    /// - Throws: `RequestError` with 400.
    static func startOfStream(
        _ request: Request, _ restores: Restores
    ) throws -> EventCursor {
        let query = try PageQuery(request, limitMax: .max, restores)
        guard query.source == nil else {
            throw refusal("bad_source", "a stream has the events of all sources")
        }
        guard let resumed = request.headers[lastEventID], !resumed.isEmpty else {
            return query.cursor ?? .start(bySource: false)
        }
        let detail = "Last-Event-ID is not the id of an event of this stream"
        let cursor = try cursor(resumed, restores, else: detail)
        guard !cursor.isBySource else { throw refusal("bad_cursor", detail) }
        return cursor
    }

    private static let lastEventID = HTTPFields.Element.Name(valid: WireHeader.lastEventID)

    /// The query for the next page.
    func next(_ cursor: EventCursor) -> String {
        let source = source.map { "\(WireQuery.source)=\($0.text)&" } ?? ""
        return source
            + "\(WireQuery.limit)=\(limit)&\(WireQuery.after)=\(restores.text(of: cursor))"
    }

    private static func refusal(_ code: String, _ detail: String) -> RequestError {
        RequestError(.badRequest, code, detail)
    }
}
