// Reads the files of an untrusted folder. Every component of a path is checked before it is used.
// Spec/model/content.md, CONT-34.

import Daybook

/// A folder whose files are read by their relative paths.
struct LayoutSource: Sendable {
    private let folder: String
    private let fileSystem: any FileSystem

    init(_ folder: String, _ fileSystem: any FileSystem) {
        self.folder = folder
        self.fileSystem = fileSystem
    }

    enum Kind { case nothing, file, folder, link }

    /// The kind of the entry at a path that is read.
    ///
    /// - Throws: `EventError` (`invalidData`) for a symbolic link.
    private func readableKind(_ path: String) throws -> Kind {
        let kind = try kind(path)
        guard kind != .link else {
            throw EventError(
                .invalidData, "\(path) is a symbolic link, which an import never follows")
        }
        return kind
    }

    /// The kind of the entry at a path, found by opening it: the open fails for a link and for a folder.
    func kind(_ path: String) throws(FileError) -> Kind {
        do throws(FileError) {
            _ = try fileSystem.open("\(folder)/\(path)", .read)
            return .file
        } catch {
            switch error.code {
            case .notFound: return .nothing
            case .wrongKind: return .folder
            case .symbolicLink: return .link
            case .exists, .noSpace, .readOnly, .io: throw error
            }
        }
    }

    /// The names of all entries of a folder.
    func names(_ path: String) throws(FileError) -> [String] {
        try fileSystem.list(path.isEmpty ? folder : "\(folder)/\(path)")
    }

    /// The names of the folders in a folder, sorted; empty if the folder does not exist. A symbolic link, or
    /// an entry that the system cannot read, is noted.
    func folders(_ path: String, _ notes: inout [String]) throws -> [String] {
        guard try Self.noting(&notes, { try readableKind(path) }) == .folder else { return [] }
        var folders: [String] = []
        let names = try Self.noting(&notes) { try self.names(path).sorted() } ?? []
        for name in names where !name.hasPrefix(".") {
            let kind = try Self.noting(&notes) { try readableKind("\(path)/\(name)") }
            if kind == .folder { folders.append(name) }
        }
        return folders
    }

    /// The folder of the cities in a folder: the folder `v1`, `v2`, … in it with the highest number if it has
    /// cities, as in folders since 2020, else the folder itself.
    ///
    /// - Parameter isCity: true for a folder that may be a city's. Its second argument receives notes.
    func cityRoot(
        _ folder: String, isCity: (String, inout [String]) throws -> Bool
    ) throws -> String {
        var ignored: [String] = []
        var newest: (number: Int, path: String)?
        for name in try folders(folder, &ignored) {
            let path = "\(folder)/\(name)"
            guard name.hasPrefix("v"), let number = Int(name.dropFirst()),
                number > newest?.number ?? -1,
                try folders(path, &ignored).contains(where: {
                    try isCity("\(path)/\($0)", &ignored)
                })
            else { continue }
            newest = (number, path)
        }
        return newest?.path ?? folder
    }

    /// The result of `body`; nil for a fault of the folder, which is noted: one file that the system cannot
    /// read must not keep all others out.
    ///
    /// - Throws: what `body` throws, except `EventError` and `FileError`.
    static func noting<Result>(
        _ notes: inout [String], _ body: () throws -> Result?
    ) throws -> Result? {
        do { return try body() } catch let error as EventError {
            notes.append(error.detail)
        } catch let error as FileError { notes.append(error.description) }
        return nil
    }

    /// The bytes of a file whose folder was checked; nil if the file does not exist.
    ///
    /// - Throws: `EventError` (`tooLarge`); `FileError`.
    func read(_ path: String, _ bytesMax: Int) throws -> [UInt8]? {
        guard try readableKind(path) != .nothing else { return nil }
        let file = try fileSystem.open("\(folder)/\(path)", .read)
        return try file.read(at: 0, count: try size(of: file, path, bytesMax))
    }

    /// Opens a file whose folder was checked, and checks its size.
    ///
    /// - Throws: as `read(_:_:)`.
    func checkSize(_ path: String, _ bytesMax: Int) throws {
        _ = try size(of: fileSystem.open("\(folder)/\(path)", .read), path, bytesMax)
    }

    private func size(of file: any File, _ path: String, _ bytesMax: Int) throws -> Int {
        let size = try file.size()
        guard size <= bytesMax else {
            throw EventError(.tooLarge, "\(path) has \(size) bytes; at most \(bytesMax) are read")
        }
        return size
    }

    /// The file in a city's folder with the last two components of a path, or with the last one; nil if
    /// there is none.
    func file(
        tailOf filePath: String, in city: String, _ names: inout FolderNames
    ) throws -> String? {
        let parts = filePath.split(separator: "/").map(String.init)
        guard let name = parts.last else { return nil }
        let files = "\(city)/\(ContentLayout.files)"
        guard try readableKind(files) == .folder else { return nil }
        if let page = parts.dropLast().last,
            let folder = try names.entry(page, in: files, self),
            try readableKind(folder) == .folder,
            let file = try names.entry(name, in: folder, self), try readableKind(file) == .file
        {
            return file
        }
        guard let file = try names.entry(name, in: files, self) else { return nil }
        return try readableKind(file) == .file ? file : nil
    }

    // MARK: JSON

    /// The elements of a file that is an array of objects; nil if the file does not exist or cannot be read,
    /// which is noted. An invalid element is left out and noted.
    ///
    /// - Parameter unread: receives the codes of invalid elements, empty for those whose codes cannot be read.
    func array<Element>(
        _ path: String, _ notes: inout [String], unread: inout [String],
        _ element: (JSONFields) throws -> Element
    ) throws -> [Element]? {
        guard let text = try value(path, &notes) else { return nil }
        let isArray = text.first { !LenientJSON.isSpace($0) } == UInt8(ascii: "[")
        let found = isArray ? JSONScanner.elements(of: text) ?? LenientJSON.parts(of: text) : nil
        guard let ranges = found else {
            notes.append("\(path) is not an array")
            return nil
        }
        var elements: [Element] = []
        for (number, range) in ranges.enumerated() {
            let fields = try Self.noting(&notes) {
                try JSONFields(
                    Array(text[range]), path: "\(path)[\(number)]", nullIsMissing: true)
            }
            if let fields, let found = try Self.noting(&notes, { try element(fields) }) {
                elements.append(found)
            } else {
                let code = (try? fields?.identifier("code")) ?? (try? fields?.identifier("_code"))
                unread.append(code ?? "")
            }
        }
        return elements
    }

    /// A member of an object that maps cities, languages, paths or URLs.
    struct Member {
        let name: String
        /// The path of the value, for notes.
        let path: String
        /// The value.
        let text: [UInt8]

        /// The members of the value.
        func fields() throws(EventError) -> JSONFields {
            try JSONFields(text, path: path, nullIsMissing: true)
        }
    }

    /// The members of a file that is an object; nil if the file does not exist or cannot be read, which is
    /// noted.
    func members(_ path: String, _ notes: inout [String]) throws -> [Member]? {
        try value(path, &notes).flatMap { Self.members(of: $0, path, &notes) }
    }

    /// The members of an object; nil for another value, which is noted. A name that occurs again or is no
    /// identifier is left out and noted. O(bytes).
    static func members(
        of text: [UInt8], _ path: String, _ notes: inout [String]
    ) -> [Member]? {
        guard let ranges = memberRanges(of: text, path, &notes) else {
            notes.append("\(path) is not a JSON object")
            return nil
        }
        var members: [Member] = []
        var names: Set<EntityID> = []
        for range in ranges {
            // An object with this name alone, which resolves its escapes.
            let object =
                [UInt8(ascii: "{")] + text[range.name] + Array(":null}".utf8)
            guard let name = (try? JSONFields(object))?.names.first, !name.isEmpty,
                !name.utf8.contains(0)
            else {
                notes.append("\(path) has a member whose name is not an identifier")
                continue
            }
            guard names.insert(EntityID(name)).inserted else {
                notes.append("\(path).\(name) occurs twice")
                continue
            }
            members.append(
                Member(name: name, path: "\(path).\(name)", text: Array(text[range.value])))
        }
        return members
    }

    /// The names, with their quotation marks, and the values of an object's members; nil for another value. A
    /// value may be no JSON; a member that does not begin with a name is noted.
    private static func memberRanges(
        of text: [UInt8], _ path: String, _ notes: inout [String]
    ) -> [(name: Range<Int>, value: Range<Int>)]? {
        let slice = text[...]
        let span = slice.span.bytes
        var ranges: [(name: Range<Int>, value: Range<Int>)] = []
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.members(span) { (scanner, name) throws(JSONError) in
                let value = try scanner.value(span, depth: 1)
                ranges.append((name.lowerBound - 1..<name.upperBound + 1, value))
            }
            return ranges
        } catch {
            guard text.first(where: { !LenientJSON.isSpace($0) }) == UInt8(ascii: "{"),
                let parts = LenientJSON.parts(of: text)
            else { return nil }
            ranges = parts.compactMap { LenientJSON.member($0, of: text) }
            if ranges.count < parts.count { notes.append("\(path) has a member without a name") }
            return ranges
        }
    }

    /// The text of a file that contains JSON, without a byte order mark; nil if the file does not exist or cannot
    /// be read, which is noted. If one element is invalid, it is the text of the whole file nevertheless. Bytes that
    /// are not UTF-8 are replaced and noted; control characters in strings become escapes.
    private func value(_ path: String, _ notes: inout [String]) throws -> [UInt8]? {
        let bytes = try Self.noting(&notes) { try read(path, ContentLayout.jsonBytesMax) }
        guard var text = bytes else { return nil }
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if text.starts(with: byteOrderMark) { text.removeFirst(byteOrderMark.count) }
        let isUTF8 = String(validating: text, as: UTF8.self) != nil
        if !isUTF8 { text = Array(String(decoding: text, as: UTF8.self).utf8) }
        if let fault = Self.fault(of: text) {
            let escaped = LenientJSON.escapingControlCharacters(text)
            guard Self.fault(of: escaped) == nil || LenientJSON.parts(of: escaped) != nil else {
                let line =
                    text[..<min(fault.offset, text.count)].count { $0 == UInt8(ascii: "\n") } + 1
                notes.append(
                    "\(path), line \(line), byte \(fault.offset): invalid JSON: \(fault.detail)")
                return nil
            }
            text = escaped
        }
        if !isUTF8 { notes.append("\(path) is not UTF-8: the invalid bytes are read as U+FFFD") }
        return text
    }

    /// The reason why a text is not one JSON value; nil if it is.
    private static func fault(of text: [UInt8]) -> JSONError? {
        let slice = text[...]
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.value(slice.span.bytes)
            try scanner.expectEnd(slice.span.bytes)
            return nil
        } catch { return error }
    }
}
