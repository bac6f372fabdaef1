// The error of every decoder in this module. LogStorage adds the file and the offset.

/// A reason why bytes are not valid format 1.
public struct FormatError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of damage or mismatch. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The bytes end before the structure does.
        case truncated
        /// A field has a value that no writer produces.
        case malformed
        /// A checksum or digest does not match the bytes it covers.
        case checksum
        /// A block is not valid LZ4 data.
        case undecodable
        /// A line is not terminated, too long, or does not begin as every stored line does.
        case badLine = "bad-line"
        /// A line's position does not follow the position of the line before.
        case badPosition = "bad-position"
        /// The file is not a Daybook segment.
        case foreign
        /// The file was written by a newer format version.
        case newerVersion = "newer-version"
        /// The file needs a feature that this version does not support.
        case unknownFeature = "unknown-feature"
    }

    /// The kind of fault.
    public let code: Code
    /// The description of the fault, without file and offset.
    public let detail: String

    /// Creates an error.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The detail text.
    public var description: String { detail }
}
