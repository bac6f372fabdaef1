// Why an event was refused. Storage failures come as LogError; this is about what an event says.

/// A refused event or command.
public struct EventError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of refusal. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The text is not a JSON object.
        case notJSON = "not-json"
        /// An attribute of the envelope is missing or has a wrong value.
        case badAttribute = "bad-attribute"
        /// The data break a rule of their type.
        case invalidData = "invalid-data"
        /// More bytes than an event or a batch may have.
        case tooLarge = "too-large"
        /// The id is known with another content.
        case idReused = "id-reused"
        /// A command names something that does not exist, or asks for what is not allowed.
        case refused
        /// A command names an entity that no view knows.
        case unknownReference = "unknown-reference"
    }

    /// The kind of refusal.
    public var code: Code
    /// What was wrong, in words.
    public var detail: String

    /// Creates an error.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The detail text.
    public var description: String { detail }
}
