// A request to an app's own API, as the app describes it, and what it may use to do so. Before RequestTransport.
// Spec/protocol/requests.md.

import EventSourcing
import Foundation
import LogFormat
import Synchronization

/// The request for an event.
///
/// ```swift
/// try APIRequest(.put, "habits", done.habit, "days", done.day, json: done)
/// ```
public struct APIRequest: Hashable, Sendable {
    /// The method of a request.
    public typealias Method = RequestMethod

    /// The method.
    public var method: Method
    /// The segments of the path below the API's address. Each is percent-encoded, a `/` in it, too.
    public var path: [String]
    /// The query.
    public var query: [URLQueryItem]
    /// The headers, such as `If-Match`. No credentials: a request is recorded in the log.
    public var headers: [String: String]
    /// The media type of the body.
    public var contentType = "application/json"
    /// The body; nil for none.
    public var body: [UInt8]?

    /// Creates a request with a body of any kind, or none.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the segments of the path below the API's address.
    ///   - query: the query.
    ///   - headers: the headers, without credentials.
    ///   - body: the body; nil for none.
    public init(
        _ method: Method, _ path: String..., query: [URLQueryItem] = [],
        headers: [String: String] = [:], body: [UInt8]? = nil
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
    }

    /// Creates a request with a body in JSON: members sorted, dates in ISO 8601.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the segments of the path below the API's address.
    ///   - query: the query.
    ///   - headers: the headers, without credentials.
    ///   - json: the body's value.
    /// - Throws: `EncodingError` for a value that JSON cannot express.
    public init(
        _ method: Method, _ path: String..., query: [URLQueryItem] = [],
        headers: [String: String] = [:], json: some Encodable
    ) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        self.init(method, query: query, headers: headers, body: Array(try encoder.encode(json)))
        self.path = path
    }

    /// The bytes to send, with the idempotency key.
    ///
    /// - Throws: `EventError` (`invalidData`) for a path that another one could be taken for, and for a body that
    ///   cannot have the key; `TransportError` for a header that must not be set.
    func buildRequest(with key: RequestKey, for id: UUID) throws -> BuiltRequest {
        _ = try HTTPHeaders(headers, reserving: Self.credentialHeaders)
        var headers = headers
        var body = body
        switch key {
        case .header(let name, let isQuoted):
            // A header of the app with this name, in any case of letters, would be sent in its place.
            headers = headers.filter { $0.key.lowercased() != name.lowercased() }
            headers[name] = isQuoted ? "\"\(id.text)\"" : id.text
        case .member(let name): body = try Self.body(body ?? Array("{}".utf8), with: name, id)
        case .inRequest: break
        }
        headers["Accept"] = "application/json"
        if body != nil { headers["Content-Type"] = contentType }
        return BuiltRequest(method, try target(), headers: headers, body: body)
    }

    /// The names, in lower case, of headers that hold credentials.
    private static let credentialHeaders: Set<String> = ["cookie", "proxy-authorization"]

    private static func body(
        _ body: [UInt8], with name: String, _ id: UUID
    ) throws(EventError) -> [UInt8] {
        let fields = try JSONFields(body, path: "the body")
        guard fields.raw(named: name) == nil else {
            throw EventError(.invalidData, "the body has a member \(name), which the key must be")
        }
        var writer = JSONObjectWriter()
        writer.appendMembers(of: body)
        writer.appendMember(name, id.text)
        return writer.finished()
    }

    /// The path and the query, percent-encoded.
    private func target() throws(EventError) -> String {
        for segment in path where ["", ".", ".."].contains(segment) {
            throw EventError(.invalidData, "the path has the segment '\(segment)'")
        }
        let path = path.map(Self.encoded).joined(separator: "/")
        guard !query.isEmpty else { return path }
        let items = query.map { item in
            Self.encoded(item.name) + (item.value.map { "=" + Self.encoded($0) } ?? "")
        }
        return path + "?" + items.joined(separator: "&")
    }

    /// The text with all bytes but the unreserved characters of RFC 3986 percent-encoded.
    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}

/// Where a request has the key by which the API recognises it: the event's id.
public enum RequestKey: Hashable, Sendable {
    /// A header. `isQuoted`: as a string of RFC 8941, which the IETF draft of `Idempotency-Key` asks for; most
    /// servers take the plain text.
    case header(String, isQuoted: Bool = false)
    /// A member of the body, which must be a JSON object.
    case member(String)
    /// The app puts it there itself: in the path of a PUT, or as a primary key.
    case inRequest

    /// The header `Idempotency-Key`.
    public static let idempotencyKey = RequestKey.header("Idempotency-Key")
}

/// What an app may use to build a request.
public struct RequestContext: Sendable {
    /// The event, in its newest form.
    public let event: Event
    private let store: EventStore
    private let fault = Fault()

    /// What a function of this value found, which cannot throw.
    private final class Fault: Sendable {
        let error = Mutex<EventError?>(nil)
    }

    init(_ event: Event, _ store: EventStore) {
        self.event = event
        self.store = store
    }

    /// What `build` returns, unless it has asked for states that the store does not keep.
    ///
    /// - Throws: what `build` throws; `EventError` (`refused`).
    func checked<Result>(_ build: (RequestContext) throws -> Result) throws -> Result {
        let result = try build(self)
        if let error = fault.error.withLock({ $0 }) { throw error }
        return result
    }

    /// Whether the store keeps the states of a type. If not, the request is refused.
    func keepsStates(of state: (some APIState).Type) -> Bool {
        if store.catalogue[state.type]?.payload is any APIState.Type, store.has(APIStates.self) {
            return true
        }
        fault.error.withLock { $0 = RequestTransport.noRule(of: state.type) }
        return false
    }

    /// The state of a view at this moment. With what the answers to earlier requests have taught. O(1).
    public func view<View: Projection>(_ view: View.Type) -> View { store.view(view) }
}

/// The error of a request that cannot be built yet, because another one must be answered before. The event is tried
/// again after at most a minute, as often as needed; no retry is counted.
public struct RequestNotReady: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// What the request waits for.
    public var description: String

    /// Creates the error.
    ///
    /// - Parameter reason: what the request waits for.
    public init(_ reason: String) { description = reason }

    /// The same as `description`.
    public var errorDescription: String? { description }
    /// The next step.
    public var recoverySuggestion: String? { "Wait: the change is sent after the earlier one." }
}
