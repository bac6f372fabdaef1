// The API's answer to a request, and what it says of the change. After the client, before RequestTransport.
// Spec/protocol/requests.md, REQ-7.

import EventSourcing
import Foundation

/// A complete answer.
public struct APIAnswer: Sendable {
    /// The status, the headers.
    private let head: BoundedHTTPResponseHead
    /// The body.
    public let body: [UInt8]
    /// True if it answers a confirmation: the question whether a change is there.
    public internal(set) var isConfirmation = false

    /// Creates an answer.
    ///
    /// - Parameters:
    ///   - status: the HTTP status.
    ///   - headers: the headers.
    ///   - body: the body.
    public init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.init(BoundedHTTPResponseHead(status: status, headers), body)
    }

    init(_ head: BoundedHTTPResponseHead, _ body: [UInt8]) {
        self.head = head
        self.body = body
    }

    /// The HTTP status.
    public var status: Int { head.status }

    /// The value of a header; the case of the name does not matter.
    public subscript(header header: String) -> String? { head[header] }

    /// Decodes the body as JSON, dates in ISO 8601.
    ///
    /// - Parameter type: the type of the value.
    /// - Throws: `DecodingError`.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        return try decoder.decode(type, from: Data(body))
    }

    /// Whether the body is a page in HTML: of a proxy, a captive portal or a server's error page. A body that begins
    /// with `<` is one unless its content type is XML.
    public var isHTML: Bool {
        if mediaType == "text/html" || mediaType == "application/xhtml+xml" { return true }
        let isXML = mediaType.map { $0.hasSuffix("/xml") || $0.hasSuffix("+xml") } ?? false
        return !isXML && body.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "<")
    }

    /// Whether the content type is JSON.
    public var isJSON: Bool {
        mediaType == "application/json" || mediaType?.hasSuffix("+json") == true
    }

    /// Whether the body is a JSON array without elements.
    var isEmptyList: Bool {
        if case .array(let elements)? = try? JSONValue(body.span.bytes) {
            elements.isEmpty
        } else {
            false
        }
    }

    /// The header `Retry-After` in seconds from now; nil if it cannot be read.
    var retryAfterSeconds: Double? {
        self[header: "Retry-After"].flatMap {
            HTTPDate.retryAfterSeconds($0, now: self[header: "Date"])
        }
    }

    private var mediaType: String? {
        self[header: "Content-Type"]?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
            .lowercased()
    }

    /// The API's reason, if the body is a JSON object with a text of a usual name (RFC 9457).
    var reason: String? {
        guard case .object(let members)? = try? JSONValue(body.span.bytes) else { return nil }
        return ["detail", "message", "error", "title"]
            .lazy.compactMap { members[$0]?.stringValue }.first
    }
}

/// What shows that an answer comes from the API itself and not from a proxy on the way.
public enum APIEvidence: Hashable, Sendable {
    /// The content type is JSON.
    case json
    /// The answer has a header, which no proxy sends.
    case header(String)

    /// Whether an answer may be one of the API: any but a page in HTML without the header that shows the API.
    func admits(_ answer: APIAnswer) -> Bool { !answer.isHTML || isFound(in: answer) }

    func isFound(in answer: APIAnswer) -> Bool {
        switch self {
        case .json: answer.isJSON && !answer.isHTML
        case .header(let name): answer[header: name] != nil
        }
    }
}

/// What an answer says of a change.
public enum APIVerdict: Hashable, Sendable {
    /// The API has applied it.
    case applied
    /// The API had it already.
    case duplicate
    /// The API will never apply it: the user or the app decides what becomes of it.
    case rejected(code: String? = nil, detail: String? = nil)
    /// The API's state has moved on: its lane waits for a decision.
    case conflict(code: String? = nil, detail: String? = nil)
    /// The API will apply it later. Counted: after five such answers it is tried every 30 to 60 minutes.
    case retry(afterSeconds: Double? = nil)
    /// The answer says nothing of the change. The change is sent again.
    case nothing

    /// The verdict of the table of Spec/protocol/requests.md.
    ///
    /// - Parameters:
    ///   - answer: the answer.
    ///   - evidence: what shows that an answer comes from the API.
    public static func standard(for answer: APIAnswer, evidence: APIEvidence) -> APIVerdict {
        guard !answer.isHTML else { return .nothing }
        switch answer.status {
        case 200..<300: return .applied
        case 404 where !evidence.isFound(in: answer), 415 where !evidence.isFound(in: answer):
            return .nothing
        case 400, 404, 410, 415, 422:
            return .rejected(code: "http_\(answer.status)", detail: answer.reason)
        case 409: return .retry(afterSeconds: answer.retryAfterSeconds)
        case 412: return .conflict(code: "http_412", detail: answer.reason)
        default: return .nothing
        }
    }
}
