// Scans JSON text (RFC 8259) and checks its grammar without building values. All readers of lines and
// payloads use it. Spec/format/line.md.

import LogFormat

/// The error for a text that is not JSON.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The byte at which the error was found, counted from 0.
    public var offset: Int
    /// The description of the error.
    public var detail: String

    /// The detail and the byte, counted from 1 as editors do.
    public var description: String { "\(detail), at byte \(offset + 1)" }
}

/// A cursor in JSON text. The text itself is passed to every call.
public struct JSONScanner {
    /// The offset of the next byte.
    public var offset: Int
    /// True if a string with an escape was scanned.
    private(set) var hasEscapes = false
    /// True if a line break between tokens was scanned.
    private(set) var hasLineBreaks = false

    /// The most nested arrays and objects, including the outermost; a text with more is refused.
    public static let levelsMax = 64
    private let levelsMax: Int

    /// Creates a scanner.
    ///
    /// - Parameters:
    ///   - offset: the offset of the first byte to scan.
    ///   - levelsMax: the most nested arrays and objects: a line of the log may have one more.
    public init(at offset: Int = 0, levelsMax: Int = levelsMax) {
        self.offset = offset
        self.levelsMax = levelsMax
    }

    /// The next byte after white space, or nil at the end.
    package mutating func peek(_ text: RawSpan) -> UInt8? {
        while offset < text.byteCount {
            let byte = text.byte(at: offset)
            switch byte {
            case 0x20, 0x09: offset += 1
            case 0x0A, 0x0D:
                hasLineBreaks = true
                offset += 1
            default: return byte
            }
        }
        return nil
    }

    /// Scans white space and then `byte`, which must follow.
    package mutating func expect(_ byte: UInt8, _ text: RawSpan) throws(JSONError) {
        guard peek(text) == byte else {
            throw fault("\"\(Character(Unicode.Scalar(byte)))\" is missing")
        }
        offset += 1
    }

    /// Checks that only white space follows.
    public mutating func expectEnd(_ text: RawSpan) throws(JSONError) {
        guard peek(text) == nil else { throw fault("there is text after the value") }
    }

    /// Scans a string.
    ///
    /// - Returns: the range between its quotation marks.
    public mutating func string(_ text: RawSpan) throws(JSONError) -> Range<Int> {
        try expect(UInt8(ascii: "\""), text)
        let start = offset
        while true {
            stepOverPlainText(text)
            guard offset < text.byteCount else { throw fault("a string is not terminated") }
            switch text.byte(at: offset) {
            case UInt8(ascii: "\""):
                offset += 1
                return start..<offset - 1
            case UInt8(ascii: "\\"): try escape(text)
            default: throw fault("a string contains a control character")
            }
        }
    }

    /// Scans to the next quotation mark, backslash or control character, eight bytes at a time.
    mutating func stepOverPlainText(_ text: RawSpan) {
        let (ones, highs) = (UInt64(0x0101_0101_0101_0101), UInt64(0x8080_8080_8080_8080))
        while offset <= text.byteCount - 8 {
            let word = text.integer(at: offset, as: UInt64.self)
            let quote = word ^ ones &* UInt64(UInt8(ascii: "\""))
            let backslash = word ^ ones &* UInt64(UInt8(ascii: "\\"))
            // A subtraction sets the high bit of a byte that is too small. A borrow can only affect higher
            // bytes, so the lowest set bit is right.
            let ends =
                ((quote &- ones) & ~quote | (backslash &- ones) & ~backslash
                    | (word &- ones &* 0x20) & ~word) & highs
            if ends != 0 {
                offset += ends.trailingZeroBitCount / 8
                return
            }
            offset += 8
        }
        while offset < text.byteCount {
            let byte = text.byte(at: offset)
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return }
            offset += 1
        }
    }

    private mutating func escape(_ text: RawSpan) throws(JSONError) {
        hasEscapes = true
        guard offset + 1 < text.byteCount else { throw fault("a string is not terminated") }
        switch text.byte(at: offset + 1) {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            offset += 2
        case UInt8(ascii: "u"):
            guard JSONText.hex(text, at: offset + 2) != nil else {
                throw fault("\\u is not followed by four hexadecimal digits")
            }
            offset += 6
        default: throw fault("a string has an unknown escape")
        }
    }

    /// Checks that an array or object is not nested too deeply.
    ///
    /// - Parameter depth: the number of arrays and objects around it.
    package func checkNesting(_ depth: Int) throws(JSONError) {
        guard depth < levelsMax else {
            throw fault("arrays and objects are nested deeper than \(levelsMax) levels")
        }
    }

    /// Scans any value.
    ///
    /// - Parameters:
    ///   - text: the JSON text.
    ///   - depth: the number of arrays and objects around it.
    /// - Returns: its range, without white space around it.
    @discardableResult
    public mutating func value(
        _ text: RawSpan, depth: Int = 0
    ) throws(JSONError) -> Range<Int> {
        guard let first = peek(text) else { throw fault("a value is missing") }
        let start = offset
        switch first {
        case UInt8(ascii: "\""): _ = try string(text)
        case UInt8(ascii: "{"):
            try checkNesting(depth)
            try members(text) { (scanner, _) throws(JSONError) in
                try scanner.value(text, depth: depth + 1)
            }
        case UInt8(ascii: "["):
            try checkNesting(depth)
            try elements(text) { (scanner) throws(JSONError) in
                try scanner.value(text, depth: depth + 1)
            }
        case UInt8(ascii: "t"): try word("true", text)
        case UInt8(ascii: "f"): try word("false", text)
        case UInt8(ascii: "n"): try word("null", text)
        default: try number(text)
        }
        return start..<offset
    }

    /// Scans an object; `body` gets each name's range and must scan the value.
    public mutating func members(
        _ text: RawSpan, _ body: (inout JSONScanner, Range<Int>) throws(JSONError) -> Void
    ) throws(JSONError) {
        try expect(UInt8(ascii: "{"), text)
        if peek(text) == UInt8(ascii: "}") {
            offset += 1
            return
        }
        try furtherMembers(text, body)
    }

    /// Scans an object from a member's name to its end; `body` as in `members`.
    package mutating func furtherMembers(
        _ text: RawSpan, _ body: (inout JSONScanner, Range<Int>) throws(JSONError) -> Void
    ) throws(JSONError) {
        repeat {
            let name = try string(text)
            try expect(UInt8(ascii: ":"), text)
            try body(&self, name)
        } while stepOverComma(text)
        try expect(UInt8(ascii: "}"), text)
    }

    /// Scans a comma if there is one.
    package mutating func stepOverComma(_ text: RawSpan) -> Bool {
        guard peek(text) == UInt8(ascii: ",") else { return false }
        offset += 1
        return true
    }

    /// Scans an array; `body` must scan each element.
    public mutating func elements(
        _ text: RawSpan, _ body: (inout JSONScanner) throws(JSONError) -> Void
    ) throws(JSONError) {
        try expect(UInt8(ascii: "["), text)
        if peek(text) == UInt8(ascii: "]") {
            offset += 1
            return
        }
        repeat { try body(&self) } while stepOverComma(text)
        try expect(UInt8(ascii: "]"), text)
    }

    private mutating func word(_ word: StaticString, _ text: RawSpan) throws(JSONError) {
        for index in 0..<word.utf8CodeUnitCount {
            guard offset < text.byteCount,
                text.byte(at: offset) == word.utf8Start[index]
            else { throw fault("a value is neither true, false nor null") }
            offset += 1
        }
    }

    private mutating func number(_ text: RawSpan) throws(JSONError) {
        func digits() -> Int {
            let start = offset
            while offset < text.byteCount, text.byte(at: offset) &- UInt8(ascii: "0") <= 9 {
                offset += 1
            }
            return offset - start
        }
        func at(_ byte: UInt8) -> Bool { offset < text.byteCount && text.byte(at: offset) == byte }
        if at(UInt8(ascii: "-")) { offset += 1 }
        let leadsWithZero = at(UInt8(ascii: "0"))
        let wholeDigits = digits()
        guard wholeDigits > 0, !leadsWithZero || wholeDigits == 1 else {
            throw fault("a value is malformed")
        }
        if at(UInt8(ascii: ".")) {
            offset += 1
            guard digits() > 0 else { throw fault("a number ends with its decimal point") }
        }
        if at(UInt8(ascii: "e")) || at(UInt8(ascii: "E")) {
            offset += 1
            if at(UInt8(ascii: "+")) || at(UInt8(ascii: "-")) { offset += 1 }
            guard digits() > 0 else { throw fault("a number has an empty exponent") }
        }
    }

    /// An error at the current offset.
    public func fault(_ detail: String) -> JSONError { JSONError(offset: offset, detail: detail) }
}
