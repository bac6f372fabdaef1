// The header `Link` (RFC 8288), by which a page refers to the next one.
// Spec/protocol/sync-protocol.md, SYNC-32.

/// The header `Link`.
package enum LinkHeader {
    /// The header's name.
    package static let name = "Link"

    /// The header's value for the next page.
    package static func value(next target: String) -> String { "<\(target)>; rel=\"next\"" }

    /// The target of the first link with the relation `next`: nil if there is none, or if the header is
    /// malformed before it.
    ///
    /// Supports several links, parameters in any order, and commas and semicolons in quotation marks and in
    /// targets. Skips a link with `anchor`, which is about another page.
    package static func next(_ header: String) -> String? {
        var scanner = Scanner(bytes: Array(header.utf8))
        while let link = scanner.link() {
            if link.isNext { return link.target }
        }
        return nil
    }

    private struct Link {
        var target: String
        var relation: String?
        var hasAnchor = false

        var isNext: Bool {
            guard !hasAnchor, let relation else { return false }
            return relation.split(separator: " ").contains { $0.lowercased() == "next" }
        }
    }

    private struct Scanner {
        let bytes: [UInt8]
        var offset = 0

        /// Parses the next link; nil at the end, or if the header is malformed.
        mutating func link() -> Link? {
            // Empty elements of a list are allowed.
            while skipBlanks() == UInt8(ascii: ",") { offset += 1 }
            guard consume(UInt8(ascii: "<")) else { return nil }
            let start = offset
            guard let end = bytes[start...].firstIndex(of: UInt8(ascii: ">")) else { return nil }
            offset = end + 1
            var link = Link(target: text(start..<end))
            while skipBlanks() == UInt8(ascii: ";") {
                offset += 1
                guard let (name, value) = parameter() else { return nil }
                // Only the first `rel` counts (RFC 8288, 3.3).
                if name == "rel", link.relation == nil { link.relation = value }
                if name == "anchor" { link.hasAnchor = true }
            }
            guard offset == bytes.count || bytes[offset] == UInt8(ascii: ",") else { return nil }
            return link
        }

        /// Parses `name`, `name=word`, `name="text"`, or nothing between two semicolons.
        private mutating func parameter() -> (name: String, value: String)? {
            skipBlanks()
            let name = word().lowercased()
            guard skipBlanks() == UInt8(ascii: "=") else { return (name, "") }
            offset += 1
            guard skipBlanks() == UInt8(ascii: "\"") else { return (name, word()) }
            offset += 1
            var value: [UInt8] = []
            while offset < bytes.count {
                let byte = bytes[offset]
                offset += 1
                if byte == UInt8(ascii: "\"") {
                    return (name, String(decoding: value, as: UTF8.self))
                }
                if byte == UInt8(ascii: "\\"), offset < bytes.count {
                    value.append(bytes[offset])
                    offset += 1
                } else {
                    value.append(byte)
                }
            }
            return nil
        }

        private mutating func word() -> String {
            let start = offset
            let ends = Array(" \t,;=\"".utf8)
            while offset < bytes.count, !ends.contains(bytes[offset]) { offset += 1 }
            return text(start..<offset)
        }

        private mutating func consume(_ byte: UInt8) -> Bool {
            guard offset < bytes.count, bytes[offset] == byte else { return false }
            offset += 1
            return true
        }

        /// Skips blanks and returns the byte after them.
        @discardableResult
        private mutating func skipBlanks() -> UInt8? {
            while offset < bytes.count, bytes[offset] == 0x20 || bytes[offset] == 0x09 {
                offset += 1
            }
            return offset < bytes.count ? bytes[offset] : nil
        }

        private func text(_ range: Range<Int>) -> String {
            String(decoding: bytes[range], as: UTF8.self)
        }
    }
}
