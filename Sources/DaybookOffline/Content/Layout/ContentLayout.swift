// The folder in which content is handed to others and taken from them: its names, and what keeps
// them inside of it. Written by ContentLayoutWriter, read by ContentLayoutReader.
// Spec/model/content.md, CONT-30; Spec/model/mapping-content-cache.md.

import Daybook

/// The names of the folder layout.
public enum ContentLayout {
    static let meta = "cities-meta.json"
    static let cities = "cities.json"
    static let content = "content"
    static let languages = "languages.json"
    static let resources = "resource-cache"
    static let files = "files"
    static let fileList = "files.json"
    /// Where pages wait until all are there, in the order of the log.
    static let spool = ".pages"

    /// Bytes of one JSON file.
    static let jsonBytesMax = 256 * 1_048_576
    /// Bytes of a name of a file or folder, as file systems have it.
    private static let nameBytesMax = 255

    /// The file that holds the pages of a kind.
    static func file(of kind: PageKind) -> String {
        switch kind {
        case .category: "categories.json"
        case .event: "events.json"
        case .poi: "pois.json"
        }
    }

    /// The folder name of a city or a language: letters, digits, `-` and `_` as they are, every
    /// other byte as `%` and two digits. So no name leads elsewhere, and each stands for one code.
    ///
    /// - Throws: `EventError` (`tooLarge`) for a code that is too long for a name.
    static func name(of code: String) throws(EventError) -> String {
        var bytes: [UInt8] = []
        for byte in code.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                bytes.append(byte)
            default:
                bytes.append(UInt8(ascii: "%"))
                bytes += Hexadecimal.text(of: [byte]).utf8
            }
            guard bytes.count <= nameBytesMax else {
                throw EventError(
                    .tooLarge, "the code \(code.prefix(40))… is too long for the name of a folder")
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The code for which a folder name stands. A name without `%` is taken as it is, since others
    /// may write such folders, too.
    ///
    /// - Throws: `EventError` (`invalidData`) for a name that `name(of:)` does not give.
    static func code(of name: String) throws(EventError) -> String {
        guard name.utf8.contains(UInt8(ascii: "%")) else { return name }
        var bytes: [UInt8] = []
        var rest = Array(name.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hexadecimal.value),
                let low = rest.popFirst().flatMap(Hexadecimal.value)
            else { break }
            bytes.append(high << 4 | low)
        }
        guard let code = String(validating: bytes, as: UTF8.self) else { throw noName(name) }
        guard !code.utf8.contains(0), try self.name(of: code) == name else { throw noName(name) }
        return code
    }

    private static func noName(_ name: String) -> EventError {
        EventError(.invalidData, "\(name) is not the name of a city or a language")
    }

    /// Whether a name stays in its folder.
    static func isInside(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && name.utf8.count <= nameBytesMax
            && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
    }
}
