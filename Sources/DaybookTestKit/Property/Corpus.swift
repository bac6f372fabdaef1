// Failures kept in a folder, one file a property, and replayed before anything else is tried. Written
// and read by PropertyPlan where the environment names a folder.

import Foundation

/// The rows of choices with which a property has failed.
package struct Corpus {
    private let file: URL

    /// - Parameters:
    ///   - folder: where the files are; made when something is kept.
    ///   - fileID: the file of the test.
    ///   - name: the property.
    package init(folder: String, fileID: String, name: String) {
        let plain = "\(fileID) \(name)".replacing(".swift", with: "").lowercased()
            .split { !$0.isASCII || !($0.isLetter || $0.isNumber) }.joined(separator: "-")
        // Names that differ only in what is left out get different files all the same.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in "\(fileID) \(name)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        file = URL(filePath: folder).appending(
            path: "\(plain.prefix(100))-\(String(hash, radix: 16)).choices")
    }

    /// The rows, one a line, the oldest first; lines that begin with `#` are for readers.
    ///
    /// - Throws: `CorpusError` for a line that is no row: what is kept must not be left out unseen.
    package func rows() throws -> [[UInt64]] {
        guard FileManager.default.fileExists(atPath: file.path) else { return [] }
        let lines = try String(contentsOf: file, encoding: .utf8).split(whereSeparator: \.isNewline)
        return try lines.filter { !$0.hasPrefix("#") }.map { line in
            try line.split(separator: " ").map { number in
                guard let number = UInt64(number) else {
                    throw CorpusError(file: file.path, line: String(line))
                }
                return number
            }
        }
    }

    /// Keeps a row, unless it is there.
    package func keep(_ row: [UInt64], of name: String, cause: any Error) throws {
        // A row without choices cannot be told from an empty line, and fails by itself.
        guard !row.isEmpty, try !rows().contains(row) else { return }
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        let words = "\(name): \(cause)".split(whereSeparator: \.isNewline).joined(separator: " ")
        let old = (try? Data(contentsOf: file)) ?? Data()
        let line = row.map(String.init).joined(separator: " ")
        try (old + Data("# \(words)\n\(line)\n".utf8)).write(to: file, options: .atomic)
    }
}

/// A file of kept failures that cannot be read.
public struct CorpusError: Error, CustomStringConvertible {
    /// The file.
    public let file: String
    /// What is no row of numbers.
    public let line: String

    /// What is wrong and where.
    public var description: String { "\(file): not a row of choices: \(line)" }
}
