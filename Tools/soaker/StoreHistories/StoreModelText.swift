// The texts of the model: compared byte by byte, and written as JSON in several ways without the library's
// JSON code.

import DaybookTestKit
import Foundation

/// A text as its UTF-8 bytes. Swift compares strings by canonical equivalence, a store compares their bytes.
package struct Text: Hashable, Comparable, CustomStringConvertible, Sendable {
    package let bytes: [UInt8]

    package init(_ string: String) { bytes = Array(string.utf8) }

    package var string: String { String(decoding: bytes, as: UTF8.self) }

    package static func < (lhs: Text, rhs: Text) -> Bool {
        lhs.bytes.lexicographicallyPrecedes(rhs.bytes)
    }

    package var description: String {
        bytes.count <= 40 ? string.debugDescription : "\(bytes.count) bytes"
    }
}

/// A text and one way to write it as a JSON string.
package struct SpelledText: Sendable {
    package var text: Text
    package var json: String
}

/// Encodings of a text as a JSON string.
enum Spelling {
    /// The encoding with as few escapes as possible, as in a line's envelope (Spec/format/line.md, LINE-1).
    static func minimallyEscaped(_ text: Text) -> String {
        var result = "\""
        for scalar in text.string.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\u{8}": result += "\\b"
            case "\u{C}": result += "\\f"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{0}"..<"\u{20}": result += "\\u00" + hex(scalar.value, 2, uppercase: false)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// The encoding with an escape for every UTF-16 unit.
    static func fullyEscaped(_ text: Text) -> String {
        "\""
            + text.string.utf16.map { "\\u" + hex(UInt32($0), 4, uppercase: $0 % 2 == 0) }
            .joined() + "\""
    }

    private static func hex(_ value: UInt32, _ digits: Int, uppercase: Bool) -> String {
        let text = String(value, radix: 16, uppercase: uppercase)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}

extension Choices {
    /// Identifiers that look alike, need escapes, or are unusual.
    private static let identifiers = [
        "a", "b", "caf\u{E9}", "cafe\u{301}", "\u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}", "\0",
        "a\u{1}\"\\\u{8}\u{C}\n\r\t/\u{7F}", "\u{2028}", "\u{FEFF}a", "\u{FFFD}", "\u{10FFFF}", " ",
        "null", "a:b", "\u{E000}", String(repeating: "\u{E9}", count: 3_000),
    ]

    /// Draws an identifier; half of the time the first.
    mutating func identifier() -> Text {
        Text(bool() ? element(of: Self.identifiers) : "a")
    }

    /// Draws a text of any length; most are short.
    mutating func content() -> Text {
        switch int(in: 0...15) {
        case 0...4: return Text("")
        case 5...9: return Text(element(of: Self.identifiers))
        case 10...13: return noise(element(of: [1, 100, 300, 1_000]))
        case 14: return noise(element(of: [5_000, 20_000]))
        // More than a block, and more than the stock lz4 tool accepts.
        default: return noise(element(of: [61_000, 66_000, 130_000, 200_000]))
        }
    }

    /// Draws a text that does not compress.
    private mutating func noise(_ count: Int) -> Text {
        let alphabet = Array(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)
        let bytes = bytes(count: count).map { alphabet[Int($0 & 63)] }
        return Text(String(decoding: bytes, as: UTF8.self))
    }

    /// Draws one way to write a text; seldom with a lone surrogate at its end, which is read as U+FFFD.
    mutating func spelled(_ text: Text) -> SpelledText {
        switch int(in: 0...9) {
        case 8: return SpelledText(text: text, json: Spelling.fullyEscaped(text))
        case 9:
            count("lone surrogate")
            let lone = element(of: ["\\ud800", "\\uDFFF"])
            return SpelledText(
                text: Text(text.string + "\u{FFFD}"),
                json: String(Spelling.minimallyEscaped(text).dropLast()) + lone + "\"")
        default: return SpelledText(text: text, json: Spelling.minimallyEscaped(text))
        }
    }
}
