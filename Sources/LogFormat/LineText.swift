// The three texts of fixed width in a stored line: UUID (36), number (20), time (24). Spec/line.md.

/// Reads and writes the fixed-width texts of a line.
package enum LineText {
    private static let hex = Array("0123456789abcdef".utf8)

    package static func matches(_ bytes: RawSpan, at offset: Int, _ text: [UInt8]) -> Bool {
        guard offset <= bytes.byteCount - text.count else { return false }
        for index in text.indices where bytes.byte(at: offset + index) != text[index] {
            return false
        }
        return true
    }

    /// Appends the 36 lowercase characters of a UUID (RFC 9562).
    package static func append(uuid: UInt128, to bytes: inout [UInt8]) {
        for index in 0..<16 {
            if index == 4 || index == 6 || index == 8 || index == 10 {
                bytes.append(UInt8(ascii: "-"))
            }
            let byte = UInt8(truncatingIfNeeded: uuid >> UInt128(120 - 8 * index))
            bytes.append(hex[Int(byte >> 4)])
            bytes.append(hex[Int(byte & 15)])
        }
    }

    /// Reads 36 characters as a UUID.
    package static func uuid(
        _ bytes: RawSpan, at offset: Int, acceptUppercase: Bool
    ) -> UInt128? {
        guard offset <= bytes.byteCount - 36 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        var digits = 0
        for index in 0..<36 {
            let byte = bytes.byte(at: offset + index)
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F") where acceptUppercase:
                digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            if digits < 16 {
                high = high << 4 | UInt64(digit)
            } else {
                low = low << 4 | UInt64(digit)
            }
            digits += 1
        }
        return UInt128(high) << 64 | UInt128(low)
    }

    /// Appends 20 decimal digits.
    package static func append(number: UInt64, to bytes: inout [UInt8]) {
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 20))
        var rest = number
        var index = start + 19
        while rest > 0 {
            bytes[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
            index -= 1
        }
    }

    /// Reads 20 decimal digits.
    package static func number(_ bytes: RawSpan, at offset: Int) -> UInt64? {
        guard offset <= bytes.byteCount - 20 else { return nil }
        var value: UInt64 = 0
        for index in offset..<offset + 20 {
            let digit = bytes.byte(at: index) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        return value
    }

    /// Appends a time as `2026-02-22T10:30:14.425Z`. Years 0 to 9999.
    package static func append(time milliseconds: Int64, to bytes: inout [UInt8]) {
        let day = Calendar.floorDivide(milliseconds, 86_400_000)
        let inDay = Int(milliseconds - day * 86_400_000)
        let date = Calendar.date(ofDay: day)
        func digits(_ value: Int, _ width: Int) {
            var divisor = 1
            for _ in 1..<width { divisor *= 10 }
            var divided = divisor
            while divided > 0 {
                bytes.append(UInt8(ascii: "0") + UInt8(value / divided % 10))
                divided /= 10
            }
        }
        digits(date.year, 4)
        bytes.append(UInt8(ascii: "-"))
        digits(date.month, 2)
        bytes.append(UInt8(ascii: "-"))
        digits(date.day, 2)
        bytes.append(UInt8(ascii: "T"))
        digits(inDay / 3_600_000, 2)
        bytes.append(UInt8(ascii: ":"))
        digits(inDay / 60_000 % 60, 2)
        bytes.append(UInt8(ascii: ":"))
        digits(inDay / 1_000 % 60, 2)
        bytes.append(UInt8(ascii: "."))
        digits(inDay % 1_000, 3)
        bytes.append(UInt8(ascii: "Z"))
    }

    /// Reads the 24 characters of a stored time.
    package static func time(_ bytes: RawSpan, at offset: Int) -> Int64? {
        guard offset <= bytes.byteCount - 24,
            let year = decimal(bytes, offset, 4), bytes.byte(at: offset + 4) == UInt8(ascii: "-"),
            let month = decimal(bytes, offset + 5, 2),
            bytes.byte(at: offset + 7) == UInt8(ascii: "-"),
            let day = decimal(bytes, offset + 8, 2),
            bytes.byte(at: offset + 10) == UInt8(ascii: "T"),
            let hour = decimal(bytes, offset + 11, 2),
            bytes.byte(at: offset + 13) == UInt8(ascii: ":"),
            let minute = decimal(bytes, offset + 14, 2),
            bytes.byte(at: offset + 16) == UInt8(ascii: ":"),
            let second = decimal(bytes, offset + 17, 2),
            bytes.byte(at: offset + 19) == UInt8(ascii: "."),
            let millisecond = decimal(bytes, offset + 20, 3),
            bytes.byte(at: offset + 23) == UInt8(ascii: "Z"),
            let days = Calendar.day(year: year, month: month, day: day),
            hour < 24, minute < 60, second < 60
        else { return nil }
        return days * 86_400_000 + Int64(hour * 3_600_000 + minute * 60_000)
            + Int64(second * 1_000 + millisecond)
    }

    /// Reads `count` decimal digits.
    package static func decimal(_ bytes: RawSpan, _ offset: Int, _ count: Int) -> Int? {
        guard offset <= bytes.byteCount - count else { return nil }
        var value = 0
        for index in offset..<offset + count {
            let digit = bytes.byte(at: index) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value * 10 + Int(digit)
        }
        return value
    }
}

/// The proleptic Gregorian calendar in UTC, after Howard Hinnant's "chrono-compatible low-level
/// date algorithms".
package enum Calendar {
    /// Days since 1970-01-01, or nil for a date that does not exist.
    package static func day(year: Int, month: Int, day: Int) -> Int64? {
        guard (1...12).contains(month), day >= 1, day <= days(inMonth: month, of: year) else {
            return nil
        }
        let y = Int64(month <= 2 ? year - 1 : year)
        let era = floorDivide(y, 400)
        let yearOfEra = y - era * 400
        let shifted = Int64((month + 9) % 12)
        let dayOfYear = (153 * shifted + 2) / 5 + Int64(day) - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// The date of a day since 1970-01-01.
    package static func date(ofDay day: Int64) -> (year: Int, month: Int, day: Int) {
        let z = day + 719_468
        let era = floorDivide(z, 146_097)
        let dayOfEra = z - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = Int(shifted < 10 ? shifted + 3 : shifted - 9)
        let year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
        return (year, month, Int(dayOfYear - (153 * shifted + 2) / 5 + 1))
    }

    package static func floorDivide(_ a: Int64, _ b: Int64) -> Int64 {
        a >= 0 ? a / b : -((-a + b - 1) / b)
    }

    private static func days(inMonth month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
