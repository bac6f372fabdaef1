// One canonical form for all JSON texts with the same meaning: members sorted, numbers by value, strings
// without needless escapes. Two contents are equal if their canonical texts are equal, byte by byte. Swift's
// string comparison would take two compositions of one accent for equal and lose one of them.

import Foundation
import LogFormat

/// The canonical form of JSON texts, for comparison.
package enum JSONCanonical {
    /// The canonical form of a text that is exactly one value. O(n log n), without an allocation for each
    /// value: a server compares contents while it holds the database's lock.
    ///
    /// - Throws: `JSONError`.
    package static func text(_ text: RawSpan) throws(JSONError) -> [UInt8] {
        var scanner = JSONScanner()
        var result: [UInt8] = []
        try append(&scanner, text, depth: 0, to: &result)
        try scanner.expectEnd(text)
        return result
    }

    /// A member of an object, by its offsets in the result. It ends where the next one starts.
    private struct Member {
        let start: Int
        let nameEnd: Int
        let end: Int
    }

    private static func append(
        _ scanner: inout JSONScanner, _ text: RawSpan, depth: Int, to result: inout [UInt8]
    ) throws(JSONError) {
        switch scanner.peek(text) {
        case UInt8(ascii: "{"):
            try scanner.checkNesting(depth)
            result.append(UInt8(ascii: "{"))
            var members: [Member] = []
            try scanner.members(text) { (scanner, range) throws(JSONError) in
                let start = result.count
                append(string: text, range, to: &result)
                let nameEnd = result.count
                result.append(UInt8(ascii: ":"))
                try append(&scanner, text, depth: depth + 1, to: &result)
                result.append(UInt8(ascii: ","))
                members.append(Member(start: start, nameEnd: nameEnd, end: result.count))
            }
            sort(members, in: &result)
            result.append(UInt8(ascii: "}"))
        case UInt8(ascii: "["):
            try scanner.checkNesting(depth)
            result.append(UInt8(ascii: "["))
            try scanner.elements(text) { (scanner) throws(JSONError) in
                try append(&scanner, text, depth: depth + 1, to: &result)
                result.append(UInt8(ascii: ","))
            }
            result.append(UInt8(ascii: "]"))
        case UInt8(ascii: "\""):
            append(string: text, try scanner.string(text), to: &result)
        default:
            let range = try scanner.value(text, depth: depth)
            let first = text.byte(at: range.lowerBound)
            if first == UInt8(ascii: "-") || first &- UInt8(ascii: "0") <= 9 {
                JSONNumber.appendCanonicalText(of: text, range, to: &result)
            } else {
                for offset in range { result.append(text.byte(at: offset)) }
            }
        }
    }

    /// Sorts members, which are the last bytes of the result, by name. Of two members with one name, only the
    /// later is kept.
    private static func sort(_ members: [Member], in result: inout [UInt8]) {
        guard let first = members.first?.start else { return }
        let sorted = result.withUnsafeBytes { bytes -> [UInt8]? in
            guard let base = bytes.baseAddress else { return nil }
            /// Below 0 if the first name precedes the second, 0 if they are equal.
            func order(_ one: Member, _ other: Member) -> Int {
                let (a, b) = (one.nameEnd - one.start, other.nameEnd - other.start)
                let order = memcmp(base + one.start, base + other.start, min(a, b))
                return order == 0 ? a - b : Int(order)
            }
            let isSorted = zip(members, members.dropFirst()).allSatisfy { order($0, $1) < 0 }
            if isSorted { return nil }
            let members = members.sorted {
                let order = order($0, $1)
                return order == 0 ? $0.start < $1.start : order < 0
            }
            var sorted: [UInt8] = []
            sorted.reserveCapacity(bytes.count - first)
            for (index, member) in members.enumerated() {
                if index + 1 < members.count, order(member, members[index + 1]) == 0 { continue }
                sorted.append(contentsOf: bytes[member.start..<member.end])
            }
            return sorted
        }
        guard let sorted else { return }
        result.removeSubrange(first...)
        result += sorted
    }

    private static func append(string text: RawSpan, _ range: Range<Int>, to result: inout [UInt8])
    {
        let start = result.count
        result.append(UInt8(ascii: "\""))
        for offset in range {
            let byte = text.byte(at: offset)
            guard byte < 0x80, byte != UInt8(ascii: "\\") else {
                result.removeSubrange(start...)
                return JSONText.append(JSONText.string(text, range), to: &result)
            }
            result.append(byte)
        }
        result.append(UInt8(ascii: "\""))
    }
}
