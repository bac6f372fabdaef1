// Runs the fuzzer's checks on the seeds and on the inputs that once failed. Spec/testing/fuzzing.md.

import Foundation
import FuzzTargets
import Testing

@Suite struct FuzzInputTests {
    private static let project = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test(arguments: FuzzTarget.allCases)
    func `the seeds of every target pass`(target: FuzzTarget) throws {
        let seeds = try FuzzSeeds(project: Self.project.path).inputs(of: target)
        #expect(seeds.count >= 5)
        for (number, seed) in seeds.enumerated() {
            #expect(throws: Never.self, "seed \(number)") { try target.check(seed) }
        }
    }

    @Test(arguments: FuzzTarget.allCases)
    func `inputs that once failed pass`(target: FuzzTarget) throws {
        let folder = Self.project.appending(path: "Tests/FuzzTests/Inputs/\(target.rawValue)")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names.sorted() {
            let input = Array(try Data(contentsOf: folder.appending(path: name)))
            #expect(throws: Never.self, "\(name)") { try target.check(input) }
        }
    }
}
