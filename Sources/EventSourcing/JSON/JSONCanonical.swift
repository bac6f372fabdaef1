// JSON text in one form for everything that means the same: members sorted, numbers by value, strings
// without needless escapes. Two contents are the same if their canonical texts are, byte by byte:
// Swift's own comparison would take two spellings of one accent for equal and lose one of them.

import LogFormat

/// Brings JSON texts into a comparable form.
package enum JSONCanonical {
    /// The canonical form of a text that is exactly one value. O(n log n).
    ///
    /// - Throws: `JSONError`.
    package static func text(_ text: RawSpan) throws(JSONError) -> [UInt8] {
        var scanner = JSONScanner()
        var result: [UInt8] = []
        try append(&scanner, text, depth: 0, to: &result)
        try scanner.expectEnd(text)
        return result
    }

    private static func append(
        _ scanner: inout JSONScanner, _ text: RawSpan, depth: Int, to result: inout [UInt8]
    ) throws(JSONError) {
        switch scanner.peek(text) {
        case UInt8(ascii: "{"):
            try scanner.checkNesting(depth)
            // Of two members with one name the later counts.
            var members: [[UInt8]: [UInt8]] = [:]
            try scanner.members(text) { (scanner, range) throws(JSONError) in
                let name = JSONObjectWriter.string(JSONText.string(text, range))
                var value: [UInt8] = []
                try append(&scanner, text, depth: depth + 1, to: &value)
                members[name] = value
            }
            result.append(UInt8(ascii: "{"))
            for member in members.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
                result += member.key
                result.append(UInt8(ascii: ":"))
                result += member.value
                result.append(UInt8(ascii: ","))
            }
            result.append(UInt8(ascii: "}"))
        case UInt8(ascii: "["):
            try scanner.checkNesting(depth)
            result.append(UInt8(ascii: "["))
            var elements: [UInt8] = []
            try scanner.elements(text) { (scanner) throws(JSONError) in
                try append(&scanner, text, depth: depth + 1, to: &elements)
                elements.append(UInt8(ascii: ","))
            }
            result += elements
            result.append(UInt8(ascii: "]"))
        case UInt8(ascii: "\""):
            JSONText.append(JSONText.string(text, try scanner.string(text)), to: &result)
        default:
            let range = try scanner.value(text, depth: depth)
            let first = text.byte(at: range.lowerBound)
            if first == UInt8(ascii: "-") || first &- UInt8(ascii: "0") <= 9 {
                result += JSONNumber(text, range).canonicalText
            } else {
                result.append(contentsOf: text.extracting(range))
            }
        }
    }
}
