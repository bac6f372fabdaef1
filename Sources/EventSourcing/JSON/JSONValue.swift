// A JSON value as a tree, for comparing contents and for data of an unknown structure.

import LogFormat

/// A JSON value. Two values are equal if they have the same meaning: members in any order, numbers by value,
/// strings unescaped.
public enum JSONValue: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number, with its exact value and text.
    case number(JSONNumber)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object. Of two members with one name, the later is kept.
    case object([String: JSONValue])

    /// Parses a text that is exactly one value.
    ///
    /// - Throws: `JSONError` for anything else, and for nesting deeper than 64.
    public init(_ text: RawSpan) throws(JSONError) {
        var scanner = JSONScanner()
        self = try Self.parse(&scanner, text, depth: 0)
        try scanner.expectEnd(text)
    }

    private static func parse(
        _ scanner: inout JSONScanner, _ text: RawSpan, depth: Int
    ) throws(JSONError) -> JSONValue {
        switch scanner.peek(text) {
        case UInt8(ascii: "{"):
            try scanner.checkNesting(depth)
            var members: [String: JSONValue] = [:]
            try scanner.members(text) { (scanner, name) throws(JSONError) in
                members[JSONText.string(text, name)] = try parse(&scanner, text, depth: depth + 1)
            }
            return .object(members)
        case UInt8(ascii: "["):
            try scanner.checkNesting(depth)
            var elements: [JSONValue] = []
            try scanner.elements(text) { (scanner) throws(JSONError) in
                elements.append(try parse(&scanner, text, depth: depth + 1))
            }
            return .array(elements)
        case UInt8(ascii: "\""):
            return .string(JSONText.string(text, try scanner.string(text)))
        default:
            let range = try scanner.value(text, depth: depth)
            switch text.byte(at: range.lowerBound) {
            case UInt8(ascii: "t"): return .bool(true)
            case UInt8(ascii: "f"): return .bool(false)
            case UInt8(ascii: "n"): return .null
            default: return .number(JSONNumber(text, range))
            }
        }
    }
}

extension JSONValue {
    /// The value as JSON text, with members sorted by name and numbers as they were written. O(bytes).
    package var json: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += Array("null".utf8)
        case .bool(let value): bytes += Array((value ? "true" : "false").utf8)
        case .number(let number): bytes += Array(number.text.utf8)
        case .string(let text): JSONText.append(text, to: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, name) in members.keys.sorted().enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONText.append(name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                members[name]?.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}

/// A number of a JSON text, with its exact value.
public struct JSONNumber: Hashable, Sendable {
    /// The number as it was written.
    public let text: String
    /// Sign, digits and exponent: the same for all notations of one value.
    package let canonicalText: [UInt8]

    /// The number at a range of checked text.
    package init(_ bytes: RawSpan, _ range: Range<Int>) {
        text = bytes.extracting(range).text
        var canonicalText: [UInt8] = []
        Self.appendCanonicalText(of: bytes, range, to: &canonicalText)
        self.canonicalText = canonicalText
    }

    /// Appends the `canonicalText` of the number at a range of checked text; without allocations if the
    /// exponent is short.
    static func appendCanonicalText(
        of text: RawSpan, _ range: Range<Int>, to result: inout [UInt8]
    ) {
        let start = result.count
        var (offset, exponent) = (range.lowerBound, 0)
        if text.byte(at: offset) == UInt8(ascii: "-") {
            result.append(UInt8(ascii: "-"))
            offset += 1
        }
        let digitsStart = result.count
        var isFraction = false
        while offset < range.upperBound {
            let byte = text.byte(at: offset)
            if byte | 0x20 == UInt8(ascii: "e") { break }
            offset += 1
            if byte == UInt8(ascii: ".") {
                isFraction = true
                continue
            }
            if isFraction { exponent -= 1 }
            if byte != UInt8(ascii: "0") || result.count > digitsStart { result.append(byte) }
        }
        while result.count > digitsStart, result.last == UInt8(ascii: "0") {
            result.removeLast()
            exponent += 1
        }
        if result.count == digitsStart {
            // Zero has no sign and no exponent.
            result.removeSubrange(start...)
            result.append("e0")
            return
        }
        result.append(UInt8(ascii: "e"))
        guard offset < range.upperBound else { return append(integer: exponent, to: &result) }
        offset += 1
        let sign = text.byte(at: offset)
        let isNegative = sign == UInt8(ascii: "-")
        if isNegative || sign == UInt8(ascii: "+") { offset += 1 }
        while offset < range.upperBound, text.byte(at: offset) == UInt8(ascii: "0") { offset += 1 }
        let written = text.extracting(offset..<range.upperBound)
        // 18 digits and the shift never overflow.
        guard written.byteCount <= 18 else {
            return append(
                longExponent: written.array, isNegative: isNegative, exponent, to: &result)
        }
        var value = 0
        for index in 0..<written.byteCount {
            value = value * 10 + Int(written.byte(at: index) - UInt8(ascii: "0"))
        }
        append(integer: exponent + (isNegative ? -value : value), to: &result)
    }

    /// Appends the sum of a written exponent of more than 18 digits and the shift by the decimal point. Exact: with
    /// a saturated sum, numbers with different values would be equal, and one of two events would be taken for a
    /// duplicate.
    ///
    /// - Parameters:
    ///   - written: the exponent's digits without leading zeros.
    ///   - shift: at most the length of the number's text.
    private static func append(
        longExponent written: [UInt8], isNegative: Bool, _ shift: Int, to result: inout [UInt8]
    ) {
        var digits = written
        var carry = isNegative ? -shift : shift
        for index in digits.indices.reversed() where carry != 0 {
            let digit = Int(digits[index] - UInt8(ascii: "0")) + carry
            carry = digit >= 0 ? digit / 10 : (digit - 9) / 10
            digits[index] = UInt8(digit - carry * 10) + UInt8(ascii: "0")
        }
        if isNegative { result.append(UInt8(ascii: "-")) }
        if carry != 0 { append(integer: carry, to: &result) }
        result += digits.drop { carry == 0 && $0 == UInt8(ascii: "0") }
    }

    private static func append(integer: Int, to result: inout [UInt8]) {
        if integer < 0 { result.append(UInt8(ascii: "-")) }
        var remaining = integer.magnitude
        let start = result.count
        repeat {
            result.append(UInt8(ascii: "0") + UInt8(remaining % 10))
            remaining /= 10
        } while remaining > 0
        result[start...].reverse()
    }

    /// The nearest double.
    public var doubleValue: Double { Double(text) ?? .nan }

    /// The number as an `Int`; nil if it is not a whole number or does not fit.
    public var integerValue: Int? {
        let parts = canonicalText.split(
            separator: UInt8(ascii: "e"), omittingEmptySubsequences: false)
        guard let exponent = Int(String(decoding: parts[1], as: UTF8.self)),
            (0...18).contains(exponent)
        else { return nil }
        // Zero has no digits.
        return Int(
            String(decoding: parts[0], as: UTF8.self) + (parts[0].isEmpty ? "0" : "")
                + String(repeating: "0", count: exponent))
    }

    /// True if the values are equal.
    public static func == (lhs: JSONNumber, rhs: JSONNumber) -> Bool {
        lhs.canonicalText == rhs.canonicalText
    }

    /// Hashes the value.
    public func hash(into hasher: inout Hasher) { hasher.combine(canonicalText) }
}

extension JSONValue {
    /// The string, if it is one.
    package var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }
}
