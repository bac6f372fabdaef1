// A JSON value as a tree: for comparing contents and for data whose shape only the app knows.

import LogFormat

/// A JSON value. Two values are equal if they mean the same: members in any order, numbers by
/// value, strings after escapes.
public enum JSONValue: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number, kept as exact as it was written.
    case number(JSONNumber)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object; of two members with one name the later counts.
    case object([String: JSONValue])

    /// Parses a text that is exactly one value.
    ///
    /// - Throws: `JSONError` for anything else, and for nesting deeper than 64.
    package init(_ text: RawSpan) throws(JSONError) {
        var scanner = JSONScanner()
        self = try Self.parse(&scanner, text, depth: 0)
        try scanner.expectEnd(text)
    }

    private static func parse(
        _ scanner: inout JSONScanner, _ text: RawSpan, depth: Int
    ) throws(JSONError) -> JSONValue {
        guard depth <= JSONScanner.depthMax else { throw scanner.fault("it is nested too deeply") }
        switch scanner.peek(text) {
        case UInt8(ascii: "{"):
            var members: [String: JSONValue] = [:]
            try scanner.members(text) { (scanner, name) throws(JSONError) in
                members[JSONText.string(text, name)] = try parse(&scanner, text, depth: depth + 1)
            }
            return .object(members)
        case UInt8(ascii: "["):
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
    /// The value as JSON text, members sorted by name, numbers as they were written. O(bytes).
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

/// A number of a JSON text: its decimal digits and exponent, so that no precision is lost.
public struct JSONNumber: Hashable, Sendable {
    /// The number as it was written.
    public let text: String
    private let isNegative: Bool
    private let digits: [UInt8]
    private let exponent: Int

    /// The number at a range of checked text.
    package init(_ bytes: RawSpan, _ range: Range<Int>) {
        let content = bytes.extracting(range)
        text = content.text
        var digits: [UInt8] = []
        var exponent = 0
        var isFraction = false
        var negative = false
        var written = 0
        var writtenNegative = false
        var inExponent = false
        for index in 0..<content.byteCount {
            let byte = content.byte(at: index)
            switch byte {
            case UInt8(ascii: "-"):
                if inExponent { writtenNegative = true } else { negative = true }
            case UInt8(ascii: "+"): break
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): inExponent = true
            default:
                if inExponent {
                    // Beyond this, two exponents are as good as equal: both are unusable.
                    written = min(written * 10 + Int(byte - 0x30), 1_000_000_000)
                } else {
                    digits.append(byte - 0x30)
                    if isFraction { exponent -= 1 }
                }
            }
        }
        exponent += writtenNegative ? -written : written
        let leading = digits.prefix { $0 == 0 }.count
        digits.removeFirst(leading)
        while digits.last == 0 {
            digits.removeLast()
            exponent += 1
        }
        self.digits = digits
        self.exponent = digits.isEmpty ? 0 : exponent
        self.isNegative = negative && !digits.isEmpty
    }

    /// Sign, digits and exponent: the same for all spellings of one value.
    package var canonicalText: [UInt8] {
        (isNegative ? [UInt8(ascii: "-")] : []) + digits.map { $0 + UInt8(ascii: "0") }
            + Array("e\(exponent)".utf8)
    }

    /// The nearest double.
    public var doubleValue: Double { Double(text) ?? .nan }

    /// The number as an integer if it is one that fits.
    public var integerValue: Int? {
        guard exponent >= 0, exponent + digits.count <= 19 else { return nil }
        var value = 0
        for digit in digits + Array(repeating: 0, count: exponent) {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.subtractingReportingOverflow(Int(digit))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        guard !isNegative else { return value }
        return value == .min ? nil : -value
    }

    /// Numbers are equal if their values are.
    public static func == (lhs: JSONNumber, rhs: JSONNumber) -> Bool {
        lhs.isNegative == rhs.isNegative && lhs.digits == rhs.digits && lhs.exponent == rhs.exponent
    }

    /// Hashes the value.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(isNegative)
        hasher.combine(digits)
        hasher.combine(exponent)
    }
}
