// The error for a refused event. Storage failures are LogErrors; this one is about an event's content.

/// A refused event or command.
public struct EventError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of refusal. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The text is not a JSON object.
        case notJSON = "not-json"
        /// An attribute of the envelope is missing or has a wrong value.
        case badAttribute = "bad-attribute"
        /// The data violate a rule of their type.
        case invalidData = "invalid-data"
        /// An event or a batch has too many bytes.
        case tooLarge = "too-large"
        /// The log has an event with the same id and different content.
        case idReused = "id-reused"
        /// A command, a rule, a view or a setting is not allowed.
        case refused
        /// A command names an entity that no view knows.
        case unknownReference = "unknown-reference"
    }

    /// The kind of refusal.
    public var code: Code
    /// The description of the error.
    public var detail: String

    /// Creates an error.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The detail text.
    public var description: String { detail }
}

extension EventError {
    /// The error with the event's number, counted from 1, if there are several events.
    func ofEvent(_ index: Int, in count: Int) -> EventError {
        count > 1 ? EventError(code, "event \(index + 1) of \(count): \(detail)") : self
    }

    /// The error with the type of its event.
    func ofType(_ type: String) -> EventError { EventError(code, "\(type): \(detail)") }
}
