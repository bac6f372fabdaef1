// Separates the elements of JSON text of which one is invalid, so that its fault does not cost the others.
// LayoutSource uses it for a file that JSONScanner refuses. Spec/model/content.md, CONT-34.

import Daybook

/// Reads around the faults of JSON text.
enum LenientJSON {
    /// The text with its control characters in strings as escapes. O(bytes).
    static func escapingControlCharacters(_ text: [UInt8]) -> [UInt8] {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(text.count)
        var isInString = false
        var isEscape = false
        for byte in text {
            if isInString, byte < 0x20 {
                // After a backslash the character is invalid in any case.
                let digits = Hexadecimal.text(of: [byte])
                escaped += (isEscape ? "u00\(digits)" : "\\u00\(digits)").utf8
                isEscape = false
                continue
            }
            escaped.append(byte)
            if isEscape {
                isEscape = false
            } else if isInString, byte == UInt8(ascii: "\\") {
                isEscape = true
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            }
        }
        return escaped
    }

    /// The most elements of a damaged file: each costs memory, and may have a note.
    private static let partsMax = 100_000

    /// The texts between the commas of an array or an object, without checks of their content; nil if the
    /// brackets and quotation marks do not show where it ends, or if there are too many. O(bytes), at any depth.
    static func parts(of text: [UInt8]) -> [Range<Int>]? {
        guard var offset = text.firstIndex(where: { !isSpace($0) }),
            let close = closing(text[offset])
        else { return nil }
        offset += 1
        var parts: [Range<Int>] = []
        var start = offset
        var depth = 1
        var isInString = false
        while depth > 0 {
            guard offset < text.count else { return nil }
            let byte = text[offset]
            switch byte {
            case UInt8(ascii: "\\") where isInString: offset += 1
            case UInt8(ascii: "\""): isInString.toggle()
            case _ where isInString: break
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                if depth == 0 { parts.append(start..<offset) }
            case UInt8(ascii: ",") where depth == 1:
                guard parts.count < partsMax else { return nil }
                parts.append(start..<offset)
                start = offset + 1
            default: break
            }
            offset += 1
        }
        guard text[offset - 1] == close, text[offset...].allSatisfy(isSpace) else { return nil }
        return parts.count == 1 && text[parts[0]].allSatisfy(isSpace) ? [] : parts
    }

    /// The ranges of the name, with its quotation marks, and of the value of a member; nil if it begins with no
    /// name and colon.
    static func member(
        _ part: Range<Int>, of text: [UInt8]
    ) -> (name: Range<Int>, value: Range<Int>)? {
        let slice = text[..<part.upperBound]
        var scanner = JSONScanner(at: part.lowerBound)
        guard let name = try? scanner.string(slice.span.bytes) else { return nil }
        let rest = trimmed(scanner.offset..<part.upperBound, of: text)
        guard let first = rest.first, text[first] == UInt8(ascii: ":") else { return nil }
        return (
            name.lowerBound - 1..<name.upperBound + 1,
            trimmed(first + 1..<rest.upperBound, of: text)
        )
    }

    /// A range without white space at its ends.
    private static func trimmed(_ range: Range<Int>, of text: [UInt8]) -> Range<Int> {
        guard let first = range.first(where: { !isSpace(text[$0]) }),
            let last = range.last(where: { !isSpace(text[$0]) })
        else { return range.lowerBound..<range.lowerBound }
        return first..<last + 1
    }

    private static func closing(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "["): UInt8(ascii: "]")
        case UInt8(ascii: "{"): UInt8(ascii: "}")
        default: nil
        }
    }

    /// Whether a byte is white space between tokens.
    static func isSpace(_ byte: UInt8) -> Bool {
        [0x20, 0x09, 0x0A, 0x0D].contains(byte)
    }
}
