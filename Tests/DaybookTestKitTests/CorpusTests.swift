// Failures that are saved in a folder, and tried before new runs.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct CorpusTests {
    private struct Broken: Error, CustomStringConvertible { let description = "broken\nin two" }

    /// Calls `body` with the path of a folder that does not exist, and removes the folder afterwards.
    private func inFolder(_ body: (String) throws -> Void) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try body(folder.appending("corpus").path)
    }

    @Test func `saved rows are read in order, once each, for their property only`() throws {
        try inFolder { folder in
            let corpus = Corpus(folder: folder, fileID: "A/B.swift", name: "it's \"so\"/..")
            #expect(try corpus.rows() == [])
            for row: [UInt64] in [[3, .max], [0], [3, .max], []] {
                try corpus.save(row, of: "it", cause: Broken())
            }
            #expect(try corpus.rows() == [[3, .max], [0]])
            // The name differs only in punctuation.
            let other = Corpus(folder: folder, fileID: "A/B.swift", name: "it's so")
            #expect(try other.rows() == [])
            let files = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(files.count == 1)
            #expect(files.first?.hasPrefix("a-b-it-s-so-") == true, "\(files)")
        }
    }

    @Test func `a line that is not a row of numbers is an error, and nothing is skipped`() throws {
        try inFolder { folder in
            let corpus = Corpus(folder: folder, fileID: "A/B.swift", name: "it")
            try corpus.save([7], of: "it", cause: Broken())
            let file = try #require(FileManager.default.contentsOfDirectory(atPath: folder).first)
            let path = URL(filePath: folder).appending(path: file)
            let text = try String(contentsOf: path, encoding: .utf8)
            #expect(text == "# it: broken in two\n7\n")
            try Data((text + "8 x\n").utf8).write(to: path)
            let error = #expect(throws: CorpusError.self) { try corpus.rows() }
            #expect(error?.line == "8 x")
            #expect(error?.localizedDescription == error?.description)
        }
    }

    @Test func `earlier failures are tried first, unless a seed asks for a single run`() throws {
        try inFolder { folder in
            try Corpus(folder: folder, fileID: "A/B.swift", name: "it")
                .save([7], of: "it", cause: Broken())
            func starts(_ settings: [String: String]) throws -> [PropertyPlan.Start] {
                Array(
                    try PropertyPlan("it", 2, 1, [[1]], "A/B.swift") { settings[$0] }.starts)
            }
            let without = try starts([:])
            #expect(without.count == 3)
            #expect(without.first == .regression([1]))
            let with = try starts(["DAYBOOK_CORPUS": folder])
            #expect(with == [.regression([1]), .saved([7])] + without.dropFirst())
            let single = try starts(["DAYBOOK_CORPUS": folder, "DAYBOOK_SEED": "0x1f"])
            #expect(single == [.seed(31, run: 1)])
        }
    }
}
