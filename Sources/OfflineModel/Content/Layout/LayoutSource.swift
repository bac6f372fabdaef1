// The files of a folder that may come from anywhere. Every step of a path is looked at before it is
// taken. Spec/content.md, CONT-34.

import EventSourcing
import LogFormat
import LogStorage

/// Reads files of a folder by their path in it.
struct LayoutSource: Sendable {
    private let folder: String
    private let fileSystem: any FileSystem

    init(_ folder: String, _ fileSystem: any FileSystem) {
        self.folder = folder
        self.fileSystem = fileSystem
    }

    private enum Kind { case nothing, file, folder }

    /// What stands at a path. Opening tells: a link is refused, a folder is no file.
    private func kind(_ path: String) throws -> Kind {
        do throws(FileError) {
            _ = try fileSystem.open("\(folder)/\(path)", .read)
            return .file
        } catch {
            switch error.code {
            case .notFound: return .nothing
            case .wrongKind: return .folder
            case .symbolicLink:
                throw EventError(
                    .invalidData, "\(path) is a symbolic link, which an import never follows")
            case .exists, .noSpace, .readOnly, .io: throw error
            }
        }
    }

    /// The names of the folders in a folder, sorted; none if it is not there. Other files are of no
    /// concern.
    func folders(_ path: String) throws -> [String] {
        guard try kind(path) == .folder else { return [] }
        return try fileSystem.list("\(folder)/\(path)").sorted()
            .filter { !$0.hasPrefix(".") }
            .filter { try kind("\(path)/\($0)") == .folder }
    }

    /// The bytes of a file whose folder has been looked at; nil if it is not there.
    ///
    /// - Throws: `EventError` (`tooLarge`); `FileError`.
    func read(_ path: String, _ bytesMax: Int) throws -> [UInt8]? {
        guard try kind(path) != .nothing else { return nil }
        let file = try fileSystem.open("\(folder)/\(path)", .read)
        let size = try file.size()
        guard size <= bytesMax else {
            throw EventError(.tooLarge, "\(path) has \(size) bytes; at most \(bytesMax) are read")
        }
        return try file.read(at: 0, count: size)
    }

    /// The file in a city's folder that the last parts of a path name; nil if there is none.
    func file(tailOf filePath: String, in city: String) throws -> String? {
        let parts = filePath.split(separator: "/").map(String.init)
        guard let name = parts.last, ContentLayout.isInside(name) else { return nil }
        let files = "\(city)/\(ContentLayout.files)"
        guard try kind(files) == .folder else { return nil }
        if let page = parts.dropLast().last, ContentLayout.isInside(page),
            try kind("\(files)/\(page)") == .folder, try kind("\(files)/\(page)/\(name)") == .file
        {
            return "\(files)/\(page)/\(name)"
        }
        return try kind("\(files)/\(name)") == .file ? "\(files)/\(name)" : nil
    }

    // MARK: JSON

    /// The elements of a file that is an array of objects; nil if it is not there.
    func array(_ path: String) throws -> [JSONFields]? {
        try value(path)?.objects(path)
    }

    /// The members of a file that is an object of objects; nil if it is not there.
    func objects(_ path: String) throws -> [(name: String, value: JSONFields)]? {
        guard let value = try value(path) else { return nil }
        return try JSONFields(value.text, place: path).allObjects()
    }

    /// A JSON text that was checked.
    private struct Value {
        let text: [UInt8]

        func objects(_ path: String) throws -> [JSONFields] {
            let span = text.span.bytes
            var ranges: [Range<Int>] = []
            do throws(JSONError) {
                var scanner = JSONScanner()
                try scanner.elements(span) { (scanner) throws(JSONError) in
                    ranges.append(try scanner.value(span))
                }
            } catch { throw EventError(.invalidData, "\(path) is not an array") }
            return try ranges.enumerated().map { number, range in
                try JSONFields(Array(text[range]), place: "\(path)[\(number)]")
            }
        }
    }

    private func value(_ path: String) throws -> Value? {
        guard let text = try read(path, ContentLayout.jsonBytesMax) else { return nil }
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.value(text.span.bytes)
            try scanner.expectEnd(text.span.bytes)
        } catch {
            let line = text[..<min(error.offset, text.count)].count { $0 == UInt8(ascii: "\n") } + 1
            throw EventError(
                .invalidData,
                "\(path), line \(line), byte \(error.offset): it is not JSON: \(error.detail)")
        }
        guard (try? UTF8Span(validating: text.span)) != nil else {
            throw EventError(.invalidData, "\(path) is not UTF-8")
        }
        return Value(text: text)
    }
}
