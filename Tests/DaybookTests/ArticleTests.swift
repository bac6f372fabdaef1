// The articles show code that is compiled and run: each of their code blocks equals, line by line, a block
// between two marks in Tests/Outside, or, if it needs a trait, in Tests/TelemetryTests or
// Tests/DaybookSQLTests.

import Foundation
import Testing

@Suite struct ArticleTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The articles of the engine, of the model, and of rows in SQL.
    private static let catalogues = [
        "Sources/Daybook/Daybook.docc", "Sources/DaybookOffline/DaybookOffline.docc",
        "Sources/DaybookSQL/DaybookSQL.docc",
    ]

    private static func files(_ folder: String, _ suffix: String) throws -> [URL] {
        let folder = root.appending(path: folder)
        return try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(suffix) && !$0.contains(".build") }.sorted()
            .map { folder.appending(path: $0) }
    }

    /// The blocks of a text that begin after a line and end before another, without their margin.
    private static func blocks(
        _ text: String, from begins: (Substring) -> Bool, to ends: (Substring) -> Bool
    ) -> [String] {
        var blocks: [String] = []
        var block: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if begins(line) {
                block = []
            } else if ends(line), let lines = block {
                let margin =
                    lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
                blocks.append(lines.map { String($0.dropFirst(margin)) }.joined(separator: "\n"))
                block = nil
            } else {
                block?.append(line)
            }
        }
        return blocks
    }

    @Test func `every block of Swift in an article is compiled, and every compiled one is shown`()
        throws
    {
        let shown = try Self.catalogues.flatMap { try Self.files($0, ".md") }.flatMap { file in
            Self.blocks(
                try String(contentsOf: file, encoding: .utf8),
                from: { $0 == "```swift" }, to: { $0 == "```" })
        }
        let tests = ["Tests/Outside", "Tests/TelemetryTests", "Tests/DaybookSQLTests"]
        let compiled = try tests.flatMap { try Self.files($0, ".swift") }.flatMap { file in
            Self.blocks(
                try String(contentsOf: file, encoding: .utf8),
                from: { $0.hasSuffix(" begins") && $0.contains("// ") },
                to: { $0.hasSuffix(" ends") && $0.contains("// ") })
        }
        #expect(shown.count > 20)
        for block in shown where !compiled.contains(block) {
            Issue.record("shown and not compiled:\n\(block)")
        }
        for block in compiled where !shown.contains(block) {
            Issue.record("compiled and not shown:\n\(block)")
        }
    }
}
