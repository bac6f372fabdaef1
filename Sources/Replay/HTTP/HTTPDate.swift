// Dates of HTTP headers: `Date`, which gives the server's clock, and `Retry-After`. Spec/protocol/replay.md,
// CLOCK-1.

import EventSourcing
import Foundation

/// Dates of HTTP headers (RFC 9110, section 5.6.7, the preferred form).
public enum HTTPDate {
    /// Parses a date. Returns milliseconds since 1970, or nil for a text in another form.
    public static func parse(_ text: String) -> Int64? {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let parts = text.split(separator: " ")
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        // The bounds come first, because `%d` truncates a number to 32 bits.
        guard parts.count == 6, let day = Int(parts[1]), 1...31 ~= day, parts[5] == "GMT",
            let month = months.firstIndex(of: String(parts[2])),
            let year = Int(parts[3]), 0...9_999 ~= year
        else { return nil }
        let time = String(format: "%04d-%02d-%02d", year, month + 1, day) + "T" + parts[4] + "Z"
        guard time.count == 20 else { return nil }
        return Timestamp(time)?.milliseconds
    }

    /// Parses `Retry-After`: seconds, or a date, whose distance from the server's `Date` is returned.
    public static func retryAfterSeconds(_ text: String, now: String?) -> Double? {
        if let seconds = Double(text), seconds.isFinite, seconds >= 0 { return seconds }
        guard let date = parse(text) else { return nil }
        guard let now = now.flatMap(parse) else { return nil }
        return max(0, Double(date - now) / 1_000)
    }
}
