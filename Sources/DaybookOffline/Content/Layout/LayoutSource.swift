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

    /// The names of the folders in a folder, sorted; empty if the folder does not exist.
    func folders(_ path: String) throws -> [String] {
        guard try readableKind(path) == .folder else { return [] }
        return try names(path).sorted()
            .filter { !$0.hasPrefix(".") }
            .filter { try readableKind("\(path)/\($0)") == .folder }
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
    func file(tailOf filePath: String, in city: String) throws -> String? {
        let parts = filePath.split(separator: "/").map(String.init)
        guard let name = parts.last, ContentLayout.isInside(name) else { return nil }
        let files = "\(city)/\(ContentLayout.files)"
        guard try readableKind(files) == .folder else { return nil }
        if let page = parts.dropLast().last, ContentLayout.isInside(page),
            try readableKind("\(files)/\(page)") == .folder,
            try readableKind("\(files)/\(page)/\(name)") == .file
        {
            return "\(files)/\(page)/\(name)"
        }
        return try readableKind("\(files)/\(name)") == .file ? "\(files)/\(name)" : nil
    }

    // MARK: JSON

    /// The elements of a file that is an array of objects; nil if the file does not exist. Elements after
    /// the first invalid one are not converted.
    func array<Element>(
        _ path: String, _ element: (JSONFields) throws -> Element
    ) throws -> [Element]? {
        guard let text = try value(path) else { return nil }
        let slice = text[...]
        let span = slice.span.bytes
        var elements: [Element] = []
        var failure: (any Error)?
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.elements(span) { (scanner) throws(JSONError) in
                let range = try scanner.value(span)
                guard failure == nil else { return }
                do {
                    elements.append(
                        try element(
                            JSONFields(
                                Array(text[range]), path: "\(path)[\(elements.count)]",
                                nullIsMissing: true)))
                } catch { failure = error }
            }
        } catch { throw EventError(.invalidData, "\(path) is not an array") }
        if let failure { throw failure }
        return elements
    }

    /// The members of a file that is an object of objects; nil if the file does not exist.
    func objects(_ path: String) throws -> [(name: String, value: JSONFields)]? {
        guard let value = try value(path) else { return nil }
        return try JSONFields(value, path: path, nullIsMissing: true).allObjects()
    }

    /// The text of a file that contains JSON; nil if the file does not exist.
    private func value(_ path: String) throws -> [UInt8]? {
        guard let text = try read(path, ContentLayout.jsonBytesMax) else { return nil }
        let slice = text[...]
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.value(slice.span.bytes)
            try scanner.expectEnd(slice.span.bytes)
        } catch {
            let line = text[..<min(error.offset, text.count)].count { $0 == UInt8(ascii: "\n") } + 1
            throw EventError(
                .invalidData,
                "\(path), line \(line), byte \(error.offset): invalid JSON: \(error.detail)")
        }
        guard String(validating: text, as: UTF8.self) != nil else {
            throw EventError(.invalidData, "\(path) is not UTF-8")
        }
        return text
    }
}
