// UTC in milliseconds: the only time in a line. Spec/format/line.md, LINE-5.

import Foundation
import LogFormat

/// A point in time, in whole milliseconds since 1970 in UTC.
public struct Timestamp: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public let milliseconds: Int64

    /// The years a line can express: 0 to 9999.
    public static let range: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

    /// Creates a time; clamped to the years 0 to 9999.
    public init(milliseconds: Int64) {
        self.milliseconds = min(max(milliseconds, Self.range.lowerBound), Self.range.upperBound)
    }

    /// The time of a date, rounded down to the millisecond, clamped to the years 0 to 9999.
    /// `Timestamp(timestamp.date)` is `timestamp` again. A date that is not a number is the end of the year 9999,
    /// which a store refuses as the time of a new event.
    public init(_ date: Date) {
        let value = Self.milliseconds(of: date)
        self.init(
            milliseconds: abs(value) < 1e15 ? Int64(value) : (value < 0 ? .min : .max))
    }

    /// The time of a date, rounded down to the millisecond; nil for a date that is not a number, or outside the
    /// years 0 to 9999.
    public init?(exactly date: Date) {
        let value = Self.milliseconds(of: date)
        guard abs(value) < 1e15, Self.range.contains(Int64(value)) else { return nil }
        milliseconds = Int64(value)
    }

    private static func milliseconds(of date: Date) -> Double {
        // A `Date` is a `Double` of seconds, in which a whole millisecond can be slightly below itself. So a date
        // less than a microsecond (before 1000 and after 3000: a few) below a millisecond counts as that.
        let seconds = date.timeIntervalSince1970
        return ((seconds + max(1e-6, 2 * seconds.ulp)) * 1_000).rounded(.down)
    }

    /// The same point in time as a date.
    public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Orders by time.
    public static func < (lhs: Timestamp, rhs: Timestamp) -> Bool {
        lhs.milliseconds < rhs.milliseconds
    }

    /// `2026-02-22T10:30:14.425Z`.
    public var description: String {
        var bytes: [UInt8] = []
        LineText.append(time: milliseconds, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Parses RFC 3339: any offset, any number of fraction digits (truncated to milliseconds). A leap second
    /// is read as the second before it.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        let span = bytes.span.bytes
        if bytes.count == 24, let value = LineText.time(span, at: 0) {
            milliseconds = value
            return
        }
        func at(_ offset: Int, _ allowed: String) -> Bool {
            offset < bytes.count && allowed.utf8.contains(bytes[offset])
        }
        guard let year = LineText.decimal(span, 0, 4), at(4, "-"),
            let month = LineText.decimal(span, 5, 2), at(7, "-"),
            let day = LineText.decimal(span, 8, 2), at(10, "Tt "),
            let hour = LineText.decimal(span, 11, 2), at(13, ":"),
            let minute = LineText.decimal(span, 14, 2), at(16, ":"),
            let second = LineText.decimal(span, 17, 2),
            let days = Calendar.day(year: year, month: month, day: day),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        var offset = 19
        var fraction = 0
        if at(offset, ".") {
            offset += 1
            var digits = 0
            while offset < bytes.count, bytes[offset] &- 0x30 <= 9 {
                if digits < 3 { fraction = fraction * 10 + Int(bytes[offset] - 0x30) }
                digits += 1
                offset += 1
            }
            guard digits > 0 else { return nil }
            for _ in min(digits, 3)..<3 { fraction *= 10 }
        }
        var shift = 0
        if at(offset, "Zz") {
            offset += 1
        } else {
            guard at(offset, "+-"), let hours = LineText.decimal(span, offset + 1, 2),
                at(offset + 3, ":"), let minutes = LineText.decimal(span, offset + 4, 2),
                hours < 24, minutes < 60
            else { return nil }
            shift = (hours * 60 + minutes) * (bytes[offset] == UInt8(ascii: "-") ? -1 : 1)
            offset += 6
        }
        let inDay = hour * 3_600 + (minute - shift) * 60 + min(second, 59)
        let value = days * 86_400_000 + Int64(inDay) * 1_000 + Int64(fraction)
        guard offset == bytes.count, Self.range.contains(value) else { return nil }
        milliseconds = value
    }
}
