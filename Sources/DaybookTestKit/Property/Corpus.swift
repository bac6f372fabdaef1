// Failures that are saved in a folder, one file for each property, and replayed before new runs. PropertyPlan
// uses it if the environment names a folder.

import Foundation

/// The rows of choices with which a property failed.
package struct Corpus {
    private let file: URL

    /// - Parameters:
    ///   - folder: the folder of the files; created when the first row is saved.
    ///   - fileID: the file of the test.
    ///   - name: the property.
    package init(folder: String, fileID: String, name: String) {
        let plain = "\(fileID) \(name)".replacing(".swift", with: "").lowercased()
            .split { !$0.isASCII || !($0.isLetter || $0.isNumber) }.joined(separator: "-")
        // The hash distinguishes names that differ only in the characters that `plain` omits.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in "\(fileID) \(name)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        file = URL(filePath: folder).appending(
            path: "\(plain.prefix(100))-\(String(hash, radix: 16)).choices")
    }

    /// Reads the rows, one a line, the oldest first. Lines that begin with `#` are comments.
    ///
    /// - Throws: `CorpusError` for a line that is not a row, so that no saved failure is skipped silently.
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

    /// Saves a row unless it is saved already.
    package func save(_ row: [UInt64], of name: String, cause: any Error) throws {
        // An empty row would be an empty line. Such a failure does not depend on choices.
        guard !row.isEmpty, try !rows().contains(row) else { return }
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        let comment = "\(name): \(cause)".split(whereSeparator: \.isNewline).joined(separator: " ")
        let old = (try? Data(contentsOf: file)) ?? Data()
        let line = row.map(String.init).joined(separator: " ")
        try (old + Data("# \(comment)\n\(line)\n".utf8)).write(to: file, options: .atomic)
    }
}

/// The error of a file of saved failures that cannot be parsed.
public struct CorpusError: Error, CustomStringConvertible {
    /// The file.
    public let file: String
    /// The line that is not a row of numbers.
    public let line: String

    /// The message, with the file and the line.
    public var description: String { "\(file): not a row of choices: \(line)" }
}
