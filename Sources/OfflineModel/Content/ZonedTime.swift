// A time that comes from a server or a file and must go out again as it came in. Spec/content.md,
// CONT-3.

import EventSourcing

/// A moment as it was written, offset included: `2023-11-20T14:06:57.863+01:00`.
public struct ZonedTime: Hashable, Sendable, CustomStringConvertible {
    /// The text, RFC 3339.
    public let text: String
    /// The moment that it names, in whole milliseconds.
    public let moment: Timestamp

    /// Reads a time; nil for what is not RFC 3339.
    public init?(_ text: String) {
        guard let moment = Timestamp(text) else { return nil }
        self.text = text
        self.moment = moment
    }

    /// A moment, written in UTC.
    public init(_ moment: Timestamp) {
        text = moment.description
        self.moment = moment
    }

    /// The text.
    public var description: String { text }
}

extension JSONFields {
    /// A member that must be a time.
    func time(_ name: StaticString) throws(EventError) -> ZonedTime {
        let text = try string(name)
        guard let time = ZonedTime(text) else {
            throw EventError(.invalidData, "\(place).\(name) is not a time as of RFC 3339")
        }
        return time
    }
}
