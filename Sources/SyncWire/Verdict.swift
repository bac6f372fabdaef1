// The server's answer to one event, and the parser of a reply. Spec/protocol/sync-protocol.md.

import EventSourcing
import Foundation
import LogFormat

/// The server's answer to one event.
public struct Verdict: Hashable, Sendable {
    /// The result for the event.
    public enum Status: String, Sendable {
        /// The server has it now, durably.
        case applied
        /// The server had it already.
        case duplicate
        /// The server will never accept it.
        case rejected
        /// The server's state has moved on since the event was made.
        case conflict
        /// The event is to be sent again later.
        case retry
        /// The server has not processed the event.
        case unprocessed
    }

    /// The event's id.
    public var id: UUID
    /// The status; an unknown one counts as `unprocessed`.
    public var status: Status
    /// The machine-readable reason.
    public var code: String?
    /// The reason for people to read.
    public var detail: String?
    /// The server's event, for a conflict.
    public var current: JSONValue?
    /// The wait before the next attempt, for a retry.
    public var retryAfterSeconds: Double?

    /// Creates a verdict.
    public init(
        id: UUID, status: Status, code: String? = nil, detail: String? = nil,
        current: JSONValue? = nil, retryAfterSeconds: Double? = nil
    ) {
        self.id = id
        self.status = status
        self.code = code
        self.detail = detail
        self.current = current
        self.retryAfterSeconds = retryAfterSeconds
    }

    /// The id of the server's event; nil if `current` is not an event.
    package var currentID: UUID? {
        guard case .object(let members)? = current else { return nil }
        return members["id"]?.stringValue.flatMap(UUID.init(text:))
    }

    /// The member of a reply that has the verdicts.
    static let listName: StaticString = "verdicts"

    /// Parses the verdicts of a reply.
    ///
    /// - Returns: nil if the body is not a verdict reply.
    package static func parse(_ body: [UInt8]) -> [Verdict]? {
        let text = body.span.bytes
        var verdicts: [Verdict]?
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.members(text) { (scanner, name) throws(JSONError) in
                guard JSONText.isEqual(text, name, to: listName) else {
                    try scanner.value(text, depth: 1)
                    return
                }
                verdicts = try list(&scanner, text)
            }
            try scanner.expectEnd(text)
        } catch { return nil }
        return verdicts
    }

    /// The verdicts of an array; nil for anything else.
    private static func list(
        _ scanner: inout JSONScanner, _ text: RawSpan
    ) throws(JSONError) -> [Verdict]? {
        guard scanner.peek(text) == UInt8(ascii: "[") else {
            try scanner.value(text, depth: 1)
            return nil
        }
        var verdicts: [Verdict] = []
        var isComplete = true
        try scanner.elements(text) { (scanner) throws(JSONError) in
            if let verdict = plain(&scanner, text) {
                verdicts.append(verdict)
            } else if let verdict = try Verdict(&scanner, text) {
                verdicts.append(verdict)
            } else {
                isComplete = false
            }
        }
        return isComplete ? verdicts : nil
    }

    /// Parses one verdict; nil for another value.
    private init?(_ scanner: inout JSONScanner, _ text: RawSpan) throws(JSONError) {
        guard scanner.peek(text) == UInt8(ascii: "{") else {
            try scanner.value(text, depth: 2)
            return nil
        }
        var id: UUID?
        var verdict = Verdict(id: UUID(integer: 0), status: .unprocessed)
        try scanner.members(text) { (scanner, name) throws(JSONError) in
            let value = try scanner.value(text, depth: 3)
            func isNamed(_ other: StaticString) -> Bool { JSONText.isEqual(text, name, to: other) }
            func string() -> String? {
                guard text.byte(at: value.lowerBound) == UInt8(ascii: "\"") else { return nil }
                return JSONText.string(text, value.lowerBound + 1..<value.upperBound - 1)
            }
            if isNamed("id") {
                id = string().flatMap(UUID.init(text:))
            } else if isNamed("status") {
                verdict.status = string().flatMap(Status.init) ?? .unprocessed
            } else if isNamed("code") {
                verdict.code = string()
            } else if isNamed("detail") {
                verdict.detail = string()
            } else if isNamed("current") {
                verdict.current = try JSONValue(text.extracting(value))
            } else if isNamed("retryAfterSeconds") {
                let number = try JSONValue(text.extracting(value))
                verdict.retryAfterSeconds = nil
                if case .number(let seconds) = number {
                    verdict.retryAfterSeconds = seconds.doubleValue
                }
            }
        }
        guard let id else { return nil }
        self = verdict
        self.id = id
    }

    /// Parses an accepted event's verdict with no white space and no other members. Without this shortcut for nearly
    /// all verdicts, parsing them takes three times the instructions.
    ///
    /// - Returns: nil for any other value, of which nothing is scanned.
    private static func plain(_ scanner: inout JSONScanner, _ text: RawSpan) -> Verdict? {
        guard text.matches("{\"id\":\"", at: scanner.offset),
            let id = LineText.uuid(text, at: scanner.offset + 7, acceptUppercase: true)
        else { return nil }
        let end = scanner.offset + 43
        func isFollowed(by rest: StaticString) -> Bool {
            guard text.matches(rest, at: end) else { return false }
            scanner.offset = end + rest.utf8CodeUnitCount
            return true
        }
        if isFollowed(by: "\",\"status\":\"applied\"}") {
            return Verdict(id: UUID(integer: id), status: .applied)
        }
        if isFollowed(by: "\",\"status\":\"duplicate\"}") {
            return Verdict(id: UUID(integer: id), status: .duplicate)
        }
        return nil
    }
}
