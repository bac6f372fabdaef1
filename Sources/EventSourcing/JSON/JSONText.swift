// Converts strings between JSON text and Swift. RFC 8259, section 7.

import LogFormat

/// Reads and writes JSON strings.
package enum JSONText {
    /// The string whose content (without quotation marks) is at a range of checked text. A lone surrogate
    /// escape becomes U+FFFD.
    package static func string(_ text: RawSpan, _ range: Range<Int>) -> String {
        let content = text.extracting(range)
        guard content.offset(of: UInt8(ascii: "\\")) != nil else {
            return content.text
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(content.byteCount)
        var offset = 0
        while offset < content.byteCount {
            let byte = content.byte(at: offset)
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                offset += 1
                continue
            }
            let kind = content.byte(at: offset + 1)
            offset += 2
            switch kind {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "u"):
                let scalar = scalar(content, &offset)
                bytes.append(contentsOf: Array(String(Character(scalar)).utf8))
            default: bytes.append(kind)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The scalar of a `\u` escape whose digits begin at the offset. Reads both halves of a surrogate pair.
    private static func scalar(_ text: RawSpan, _ offset: inout Int) -> Unicode.Scalar {
        let replacement: Unicode.Scalar = "\u{FFFD}"
        guard let unit = hex(text, at: offset) else { return replacement }
        offset += 4
        guard (0xD800..<0xDC00).contains(unit) else {
            return Unicode.Scalar(unit) ?? replacement
        }
        guard offset + 6 <= text.byteCount, text.byte(at: offset) == UInt8(ascii: "\\"),
            text.byte(at: offset + 1) == UInt8(ascii: "u"),
            let low = hex(text, at: offset + 2), (0xDC00..<0xE000).contains(low)
        else { return replacement }
        offset += 6
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)) ?? replacement
    }

    /// The value of four hexadecimal digits; nil for other characters.
    package static func hex(_ text: RawSpan, at offset: Int) -> UInt32? {
        guard offset + 4 <= text.byteCount else { return nil }
        var value: UInt32 = 0
        for index in offset..<offset + 4 {
            guard let digit = hexadecimalDigit(text.byte(at: index)) else { return nil }
            value = value << 4 | digit
        }
        return value
    }

    /// The value of a hexadecimal digit in either case.
    @inline(__always)
    package static func hexadecimalDigit(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }

    /// Appends a string with its quotation marks. Escapes only the characters that require it.
    package static func append(_ string: String, to bytes: inout [UInt8]) {
        var string = string
        bytes.append(UInt8(ascii: "\""))
        string.withUTF8 { text in
            var scanner = JSONScanner()
            scanner.stepOverPlainText(text.span.bytes)
            bytes.append(contentsOf: text.span.bytes.extracting(0..<scanner.offset))
            for byte in text[scanner.offset...] { append(escaping: byte, to: &bytes) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func append(escaping byte: UInt8, to bytes: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(byte)
        case 0x08: bytes.append("\\b")
        case 0x0C: bytes.append("\\f")
        case 0x0A: bytes.append("\\n")
        case 0x0D: bytes.append("\\r")
        case 0x09: bytes.append("\\t")
        case 0..<0x20:
            bytes.append(byte < 0x10 ? "\\u000" : "\\u001")
            let digit = byte & 15
            bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        default: bytes.append(byte)
        }
    }

    /// True if the string whose content is at a range equals `other`.
    package static func isEqual(
        _ text: RawSpan, _ range: Range<Int>, to other: StaticString
    ) -> Bool {
        let content = text.extracting(range)
        if content.byteCount == other.utf8CodeUnitCount, content.matches(other, at: 0) {
            return true
        }
        // Only a string with an escape can be equal and have other bytes.
        guard content.offset(of: UInt8(ascii: "\\")) != nil else { return false }
        return string(text, range).utf8.elementsEqual(other.description.utf8)
    }

    /// True if a text contains line breaks.
    package static func hasLineBreaks(_ text: RawSpan) -> Bool {
        text.offset(of: 0x0A) != nil || text.offset(of: 0x0D) != nil
    }

    /// The text without the line breaks between its tokens. Strings contain none.
    package static func withoutLineBreaks(_ text: RawSpan) -> [UInt8] {
        hasLineBreaks(text) ? text.array.filter { $0 != 0x0A && $0 != 0x0D } : text.array
    }
}

extension Sequence<UInt8> {
    /// The bytes as lower-case hexadecimal digits, two for each.
    package var hexadecimalDigits: String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
