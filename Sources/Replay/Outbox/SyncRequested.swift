// The record of a request to an app's own API, made before its first attempt, so that every later attempt sends the
// same bytes. Spec/protocol/sync-records.md, OUT-12.

import EventSourcing
import Foundation
import LogFormat

/// The record of the request for one event. It holds no credentials.
public struct SyncRequested: EventPayload, Hashable {
    public static let type = "daybook.sync.requested"

    /// The incarnation that wrote the record. A record from another log has no effect here.
    public var by: UUID
    /// The event's position.
    public var position: Position
    /// The event's id.
    public var id: UUID
    /// The request.
    public var request: BuiltRequest

    /// Creates a record.
    ///
    /// - Parameters:
    ///   - incarnation: the incarnation that writes the record.
    ///   - position: the event's position.
    ///   - id: the event's id.
    ///   - request: the request.
    public init(by incarnation: UUID, position: Position, id: UUID, request: BuiltRequest) {
        by = incarnation
        self.position = position
        self.id = id
        self.request = request
    }

    public init(json: [UInt8]) throws {
        guard case .object(let members) = try JSONValue(json.span.bytes) else {
            throw EventError(.invalidData, "data is not a JSON object")
        }
        guard let by = members["by"]?.stringValue.flatMap(UUID.init(text:)),
            let id = members["id"]?.stringValue.flatMap(UUID.init(text:)),
            case .number(let number)? = members["position"], let position = number.integerValue,
            position > 0
        else { throw EventError(.invalidData, "data names no event of a log") }
        self.by = by
        self.id = id
        self.position = Position(UInt64(position))
        request = try BuiltRequest(members: members)
    }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("by", by.text)
        writer.appendMember("position", raw: Array("\(position)".utf8))
        writer.appendMember("id", id.text)
        request.appendMembers(to: &writer)
        return writer.finished()
    }
}

/// The method of a request.
public enum RequestMethod: String, Hashable, Sendable {
    /// `GET`.
    case get = "GET"
    /// `POST`.
    case post = "POST"
    /// `PUT`.
    case put = "PUT"
    /// `PATCH`.
    case patch = "PATCH"
    /// `DELETE`.
    case delete = "DELETE"
}

/// A request as it is sent, apart from the API's address, the app's own headers and the token.
public struct BuiltRequest: Hashable, Sendable {
    /// The method.
    public var method: RequestMethod
    /// The path below the API's address, and the query, percent-encoded: `notes/7?draft=1`.
    public var target: String
    /// The headers, the idempotency key among them.
    public var headers: [String: String]
    /// The body; nil for none.
    public var body: [UInt8]?
    /// True if the body is sent in gzip.
    public var isCompressed = false

    init(
        _ method: RequestMethod, _ target: String, headers: [String: String], body: [UInt8]?
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }

    fileprivate init(members: [String: JSONValue]) throws(EventError) {
        guard let method = members["method"]?.stringValue.flatMap(RequestMethod.init),
            let target = members["target"]?.stringValue
        else { throw EventError(.invalidData, "data is not a request") }
        var headers: [String: String] = [:]
        if case .object(let fields)? = members["headers"] {
            headers = fields.compactMapValues(\.stringValue)
        }
        var body = members["body"]?.stringValue.map { Array($0.utf8) }
        if let text = members["body64"]?.stringValue {
            guard let data = Data(base64Encoded: text) else {
                throw EventError(.invalidData, "data.body64 is not in base 64")
            }
            body = Array(data)
        }
        self.init(method, target, headers: headers, body: body)
        isCompressed = members["encoding"]?.stringValue == Self.gzip
    }

    private static let gzip = "gzip"

    fileprivate func appendMembers(to writer: inout JSONObjectWriter) {
        writer.appendMember("method", method.rawValue)
        writer.appendMember("target", target)
        if !headers.isEmpty {
            var fields = JSONObjectWriter()
            for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
                fields.appendMember(name, value)
            }
            writer.appendMember("headers", raw: fields.finished())
        }
        guard let body else { return }
        if isCompressed { writer.appendMember("encoding", Self.gzip) }
        if let text = String(validating: body, as: UTF8.self) {
            writer.appendMember("body", text)
        } else {
            writer.appendMember("body64", Data(body).base64EncodedString())
        }
    }
}

/// The recorded request for an event of the outbox.
struct RecordedRequest: Hashable, Sendable {
    /// The position of its record.
    var position: Position
    /// The time from which the API keeps its key: of the record, or of a later decision to send the event although the
    /// key may be forgotten.
    var since: Timestamp
}

extension Outbox {
    /// The recorded request for an unsettled event; nil before its first attempt. O(1).
    func request(of event: Event) -> RecordedRequest? { requests[event.position.rawValue] }

    /// Whether the request for an unsettled event is recorded: it may have been sent.
    func hasRequest(at position: Position) -> Bool { requests[position.rawValue] != nil }

    /// Whether the record of a request is that of an unsettled event. O(requests).
    func isNeeded(requestAt position: Position) -> Bool {
        requests.values.contains { $0.position == position }
    }

    mutating func foldRequested(_ event: Event) {
        guard let record = try? SyncRequested(json: event.content.json ?? []) else {
            ignored += 1
            return
        }
        guard event.isOwn, record.by == event.source,
            entry(at: record.position)?.id == record.id
        else { return }
        requests[record.position.rawValue] = RecordedRequest(
            position: event.position, since: event.time)
    }

    mutating func dropRequests(of range: ClosedRange<UInt64>) {
        guard !requests.isEmpty else { return }
        if range.count == 1 {
            requests[range.lowerBound] = nil
        } else {
            requests = requests.filter { !range.contains($0.key) }
        }
    }
}
