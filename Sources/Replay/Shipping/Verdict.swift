// The server's word on one event, and how a reply is read. Spec/sync-protocol.md.

import EventSourcing
import Foundation
import LogFormat

/// The server's word on one event.
public struct Verdict: Hashable, Sendable {
    /// What the server did with it.
    public enum Status: String, Sendable {
        /// The server has it now, durably.
        case applied
        /// The server had it already.
        case duplicate
        /// The server will never accept it.
        case rejected
        /// The server's state has moved on since the event was made.
        case conflict
        /// Not now.
        case retry
        /// Not looked at.
        case unprocessed
    }

    /// The event.
    public var id: UUID
    /// The status; an unknown one counts as `unprocessed`.
    public var status: Status
    /// A machine-readable reason.
    public var code: String?
    /// The reason in words.
    public var detail: String?
    /// What the server holds instead, for a conflict.
    public var current: JSONValue?
    /// How long to wait, for a retry.
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

    /// The id of what the server holds instead, if it is an event.
    var currentID: UUID? {
        guard case .object(let members)? = current else { return nil }
        return members["id"]?.stringValue.flatMap(UUID.init(uuidString:))
    }

    /// Reads the verdicts of a reply.
    ///
    /// - Returns: nil if the body is not a verdict reply.
    package static func parse(_ body: [UInt8]) -> [Verdict]? {
        guard case .object(let members)? = try? JSONValue(body.span.bytes),
            case .array(let list)? = members["verdicts"]
        else { return nil }
        var verdicts: [Verdict] = []
        for element in list {
            guard case .object(let verdict) = element,
                let id = verdict["id"]?.stringValue.flatMap(uuid)
            else { return nil }
            var seconds: Double?
            if case .number(let number)? = verdict["retryAfterSeconds"] {
                seconds = number.doubleValue
            }
            verdicts.append(
                Verdict(
                    id: id,
                    status: verdict["status"]?.stringValue.flatMap(Status.init) ?? .unprocessed,
                    code: verdict["code"]?.stringValue, detail: verdict["detail"]?.stringValue,
                    current: verdict["current"], retryAfterSeconds: seconds))
        }
        return verdicts
    }

    /// Foundation's own reading takes a third of the whole.
    private static func uuid(_ text: String) -> UUID? {
        let bytes = text.utf8.span.bytes
        guard bytes.byteCount == 36 else { return nil }
        return LineText.uuid(bytes, at: 0, acceptUppercase: true).map { UUID(integer: $0) }
    }
}
