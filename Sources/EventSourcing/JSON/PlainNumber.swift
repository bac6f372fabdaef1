// The fast path for nearly all numbers, without an array of digits. JSONNumber reads every number exactly.

import LogFormat

/// A number of at most fifteen digits, possibly with a decimal point, without an exponent.
struct PlainNumber {
    private let isNegative: Bool
    /// All digits as one integer.
    private let digits: Int
    /// The number of digits after the decimal point.
    private let fraction: Int

    private static let powers: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ]

    /// Parses a number of checked JSON text. Nil for longer numbers and for exponents.
    init?(_ text: RawSpan) {
        guard (1...17).contains(text.byteCount) else { return nil }
        isNegative = text.byte(at: 0) == UInt8(ascii: "-")
        var (digits, count, fraction, isFraction) = (0, 0, 0, false)
        for offset in (isNegative ? 1 : 0)..<text.byteCount {
            let digit = text.byte(at: offset) &- UInt8(ascii: "0")
            if digit <= 9 {
                digits = digits * 10 + Int(digit)
                count += 1
                if isFraction { fraction += 1 }
            } else if text.byte(at: offset) == UInt8(ascii: ".") {
                isFraction = true
            } else {
                return nil
            }
        }
        guard count <= 15 else { return nil }
        (self.digits, self.fraction) = (digits, fraction)
    }

    /// The number if it has no decimal point.
    var whole: Int? { fraction == 0 ? (isNegative ? -digits : digits) : nil }

    /// The nearest double. Both operands of the division are exact, so the result is rounded once.
    /// W. D. Clinger, How to read floating point numbers accurately, PLDI 1990.
    var double: Double {
        let value = Double(digits) / Self.powers[fraction]
        return isNegative ? -value : value
    }
}
