// A time that comes from a server or a file and must go out again as it came in. Spec/model/content.md,
// CONT-3.

import Daybook

/// A moment as it was written, offset included: `2023-11-20T14:06:57.863+01:00`.
public struct ZonedTime: Hashable, Sendable, CustomStringConvertible {
    /// The moment that it names, in whole milliseconds.
    public let moment: Timestamp
    /// The text where it is not the one of the moment in UTC: most are, and need no text of their
    /// own.
    private let written: String?

    /// The text, RFC 3339.
    public var text: String { written ?? moment.description }

    /// Reads a time; nil for what is not RFC 3339.
    public init?(_ text: String) {
        guard let moment = Timestamp(text) else { return nil }
        self.moment = moment
        written = text == moment.description ? nil : text
    }

    /// A moment, written in UTC.
    public init(_ moment: Timestamp) {
        self.moment = moment
        written = nil
    }

    /// Whether it is written as the moment in UTC, as a line writes times.
    var isInUTC: Bool { written == nil }

    /// The text.
    public var description: String { text }
}

extension ZonedTime: MemberText {
    public static var memberDescription: String { "a time as of RFC 3339" }

    public static var memberSamples: [String] {
        [
            "2023-11-20T14:06:57.863+01:00", "2019-08-12T00:03:19.457Z", "2020-03-01T00:00:00Z",
            "2011-02-04t23:59:60.5-11:30", "0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z",
        ]
    }

    /// The beginning of 1970.
    static var epoch: ZonedTime { ZonedTime(Timestamp(milliseconds: 0)) }
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
