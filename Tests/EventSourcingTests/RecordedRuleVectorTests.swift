// The recorded rules of the frozen logs in Spec/vectors. Spec/model/events.md, EVT-19.

import DaybookTestKit
import Foundation
import LogStorage
import TestSupport
import Testing

@testable import EventSourcing

@Suite struct RecordedRuleVectorTests {
    /// The part of `expected.json` that is about the rules.
    private struct Expected: Decodable {
        struct Rule: Decodable {
            var action: String?
            var begins: Bool?
            var newest: String?
        }
        var rules: [String: Rule]
    }

    /// A folder of Spec/vectors.
    private static func folder(_ vector: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Spec/vectors/\(vector)").standardizedFileURL
    }

    @Test(.verifies("EVT-19"), arguments: ["rules", "rules-unusual"])
    func `the rules of a vector are those that it expects`(vector: String) throws {
        let folder = Self.folder(vector)
        let expected = try JSONDecoder().decode(
            Expected.self, from: Data(contentsOf: folder.appending(path: "expected.json")))
        let recorded = RecordedRules(of: folder.path, POSIXFileSystem())
        #expect(
            recorded.rules
                == expected.rules.mapValues {
                    .init(
                        action: $0.action, beginsEntity: $0.begins ?? false, newest: $0.newest)
                })
    }

    @Test(.verifies("EVT-19"))
    func `rules are written as the vector has them`() throws {
        let folder = Self.folder("rules")
        let files = InMemoryFileSystem()
        try files.createDirectory("/log")
        try RecordedRules(of: folder.path, POSIXFileSystem()).write(to: "/log", files)
        #expect(
            try files["/log/rules"] == Array(Data(contentsOf: folder.appending(path: "rules"))))
    }
}
