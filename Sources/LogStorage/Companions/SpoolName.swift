// The names of companions and of their spools' folders. Spec/format/companions.md, COMP-1.

/// The name of a spool's folder: `<companion>-<counter, 10 digits>-<tag, 16 hexadecimal digits>`.
///
/// The counter orders the spools of a companion. The tag is random, so that no folder gets the name of a deleted
/// one.
package struct SpoolName: Hashable, Comparable, Sendable {
    /// The name of the companion.
    package let companion: String
    /// The number of the spool.
    package let counter: UInt64
    private let tag: UInt64

    /// The greatest counter that a name can have.
    package static let counterMax: UInt64 = 9_999_999_999
    private static let counterDigits = 10
    private static let tagDigits = 16
    /// The most characters of a companion's name.
    private static let companionCharactersMax = 64

    package init(_ companion: String, _ counter: UInt64, tag: UInt64) {
        self.companion = companion
        self.counter = counter
        self.tag = tag
    }

    /// Parses a folder's name; nil if it is not a spool's.
    package init?(folder: String) {
        let parts = folder.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 3 else { return nil }
        let (digits, hex) = (parts[parts.count - 2], parts[parts.count - 1])
        let companion = parts.dropLast(2).joined(separator: "-")
        guard Self.isCompanion(companion), digits.utf8.count == Self.counterDigits,
            hex.utf8.count == Self.tagDigits, let counter = UInt64(digits),
            let tag = UInt64(hex, radix: 16)
        else { return nil }
        self.init(companion, counter, tag: tag)
        // Signs and upper case would give a folder two names.
        guard self.folder == folder else { return nil }
    }

    /// The folder's name.
    package var folder: String {
        func padded(_ text: String, _ count: Int) -> String {
            String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return companion + "-" + padded(String(counter), Self.counterDigits) + "-"
            + padded(String(tag, radix: 16), Self.tagDigits)
    }

    /// True for a name of 1 to 64 characters `[a-z0-9-]` that begins with a letter or a digit.
    package static func isCompanion(_ name: String) -> Bool {
        (1...companionCharactersMax).contains(name.utf8.count) && name.utf8.first != 0x2D
            && name.utf8.allSatisfy { character in
                character == 0x2D || (0x30...0x39).contains(character)
                    || (0x61...0x7A).contains(character)
            }
    }

    /// Orders by companion, counter and tag.
    package static func < (one: SpoolName, other: SpoolName) -> Bool {
        (one.companion, one.counter, one.tag) < (other.companion, other.counter, other.tag)
    }
}
