// The folder layout in which content is exported and imported: its names, and the checks that keep paths
// inside the folder. Written by ContentLayoutWriter, read by ContentLayoutReader.
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
    /// The temporary file with the pages in the order of the log.
    static let spool = ".pages"

    /// The maximum bytes of one JSON file.
    static let jsonBytesMax = 256 * 1_048_576
    /// The maximum bytes of the name of a file or folder, the limit of common file systems.
    private static let maxNameBytes = 255

    /// The file with the pages of a kind.
    static func file(of kind: PageKind) -> String {
        switch kind {
        case .category: "categories.json"
        case .event: "events.json"
        case .poi: "pois.json"
        }
    }

    /// The folder name of a city or a language: letters, digits, `-` and `_` as they are, every other
    /// byte as `%` and two hexadecimal digits. So no name leads out of the folder, and each name belongs
    /// to one code.
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
            guard bytes.count <= maxNameBytes else {
                throw EventError(
                    .tooLarge, "the code \(code.prefix(40))… is too long for the name of a folder")
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The code of a folder name. A name without `%` is the code itself, because other apps write such
    /// folders.
    ///
    /// - Throws: `EventError` (`invalidData`) for a name that `name(of:)` does not return.
    static func code(of name: String) throws(EventError) -> String {
        guard name.utf8.contains(UInt8(ascii: "%")) else { return name }
        var bytes: [UInt8] = []
        var remaining = Array(name.utf8)[...]
        while let byte = remaining.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = remaining.popFirst().flatMap(Hexadecimal.value),
                let low = remaining.popFirst().flatMap(Hexadecimal.value)
            else { break }
            bytes.append(high << 4 | low)
        }
        guard let code = String(validating: bytes, as: UTF8.self) else { throw invalidName(name) }
        guard !code.utf8.contains(0), try self.name(of: code) == name else {
            throw invalidName(name)
        }
        return code
    }

    private static func invalidName(_ name: String) -> EventError {
        EventError(.invalidData, "\(name) is not the name of a city or a language")
    }

    /// Whether a name denotes an entry of its folder.
    static func isInside(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && name.utf8.count <= maxNameBytes
            && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
    }
}
