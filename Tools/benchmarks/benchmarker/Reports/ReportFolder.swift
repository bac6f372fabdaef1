// The folder for reports, and the part of the README that is generated from them.

import Foundation

/// The folder of `--write`.
struct ReportFolder {
    let url: URL

    init(_ path: String) throws {
        url = URL(filePath: path)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    /// Writes a report.
    ///
    /// - Parameter mark: the begin of the part of the file that another tool writes, which is kept.
    func write(_ text: String, _ name: String, before mark: String? = nil) throws {
        let file = url.appending(path: name)
        var text = text
        if let mark, let old = try? String(contentsOf: file, encoding: .utf8),
            let part = old.range(of: mark)
        {
            text += "\n" + old[part.lowerBound...]
        }
        try Data(text.utf8).write(to: file)
    }

    func write(_ value: some Encodable, _ name: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        try (encoder.encode(value) + [UInt8(ascii: "\n")]).write(to: url.appending(path: name))
    }

    private static let begin = "<!-- Written by Tools/benchmark: begin -->\n"
    private static let end = "<!-- Written by Tools/benchmark: end -->"

    /// Replaces the text between the two markers of the README. Does nothing unless this is the folder of
    /// the project's own results.
    func refreshReadme(_ text: String) throws {
        let readme = url.appending(path: "../../README.md").standardizedFileURL
        guard let page = try? String(contentsOf: readme, encoding: .utf8),
            let begin = page.range(of: Self.begin), let end = page.range(of: Self.end),
            begin.upperBound <= end.lowerBound
        else { return }
        let new = page[..<begin.upperBound] + text + page[end.lowerBound...]
        try Data(new.utf8).write(to: readme)
    }
}
