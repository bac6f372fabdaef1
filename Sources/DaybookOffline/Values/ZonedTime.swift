// A time from a server or a file whose text is preserved. Spec/model/content.md,
// CONT-3.

import Daybook

/// A moment with its original text, including the offset: `2023-11-20T14:06:57.863+01:00`.
public struct ZonedTime: Hashable, Sendable, CustomStringConvertible {
    /// The moment, in whole milliseconds.
    public let moment: Timestamp
    /// The original text; nil if it equals the moment's text in UTC, as most do, which saves memory.
    private let original: String?

    /// The text, RFC 3339.
    public var text: String { original ?? moment.description }

    /// Parses a time; nil if the text is not RFC 3339.
    public init?(_ text: String) {
        guard let moment = Timestamp(text) else { return nil }
        self.moment = moment
        original = text == moment.description ? nil : text
    }

    /// Creates a time in UTC.
    public init(_ moment: Timestamp) {
        self.moment = moment
        original = nil
    }

    /// True if the text is that of the moment in UTC, as lines write times.
    var isInUTC: Bool { original == nil }

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

    /// 1970-01-01T00:00:00Z.
    static var epoch: ZonedTime { ZonedTime(Timestamp(milliseconds: 0)) }
    /// The initial value for reading.
    static var example: ZonedTime { epoch }
}

extension JSONFields {
    /// Reads a required member that is a time.
    func time(_ name: StaticString) throws(EventError) -> ZonedTime {
        let text = try string(name)
        guard let time = ZonedTime(text) else {
            throw EventError(.invalidData, "\(path).\(name) is not a time as of RFC 3339")
        }
        return time
    }
}

extension Timestamp {
    /// The time by which two clocks may differ, in milliseconds.
    private static let clockDifference: Int64 = 86_400_000

    /// Whether the time is more than a day after `now`, so that the clock that gave it was ahead.
    func isAhead(of now: Timestamp) -> Bool {
        let (age, overflow) = milliseconds.subtractingReportingOverflow(now.milliseconds)
        return overflow ? milliseconds > 0 : age > Self.clockDifference
    }

    /// The time, or nil if it is ahead of `now` and the time that it is compared with is not. If both are, it may be
    /// `now` that is wrong.
    func believed(at now: Timestamp, beside other: Timestamp?) -> Timestamp? {
        isAhead(of: now) && !(other?.isAhead(of: now) ?? false) ? nil : self
    }
}
