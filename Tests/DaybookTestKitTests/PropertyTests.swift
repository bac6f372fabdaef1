// The property engine, on which the other tests rely.

import DaybookTestKit
import Testing

@Suite struct PropertyTests {
    private struct Broken: Error {}

    private func failure(
        _ body: (inout Choices) throws -> Void
    ) throws -> PropertyFailure {
        try #require(throws: PropertyFailure.self) {
            try Property.check("a property", runs: 200, body)
        }
    }

    @Test func `a number shrinks to the smallest that fails`() throws {
        let failure = try failure { choices in
            if choices.int(in: 0...1_000_000) >= 4_711 { throw Broken() }
        }
        #expect(failure.choices == [4_711])
    }

    @Test func `an array shrinks to the elements that matter`() throws {
        let failure = try failure { choices in
            let all = choices.array(0...50) { $0.int(in: 0...1_000) }
            if all.filter({ $0 >= 100 }).count >= 2 { throw Broken() }
        }
        var choices = Choices(replaying: failure.choices)
        let shrunk = choices.array(0...50) { $0.int(in: 0...1_000) }
        #expect(shrunk == [100, 100])
    }

    @Test func `a failing run is the same when its choices are replayed or its seed is used`()
        throws
    {
        let failure = try failure { choices in
            let first = choices.int(in: 0...9)
            choices.note("first \(first)")
            if choices.bool(oneIn: 5) { throw Broken() }
        }
        let seed = try #require(failure.seed)
        var seeded = Choices(seed: seed)
        _ = seeded.int(in: 0...9)
        let fails = seeded.bool(oneIn: 5)
        #expect(fails)
        #expect(failure.notes == ["first 0"])
        #expect(
            failure.reproduction == "DAYBOOK_SEED=0x\(String(seed, radix: 16)) swift test "
                + #"--filter '^DaybookTestKitTests\..*/PropertyTests\.swift:'"#)
        #expect(failure.description.contains(failure.reproduction))
    }

    @Test func `an asynchronous property shrinks in the same way`() async throws {
        let failure = try await #require(throws: PropertyFailure.self) {
            try await Property.check("a property") { choices in
                await Task.yield()
                if choices.int(in: 0...1_000) > 7 { throw Broken() }
            }
        }
        #expect(failure.choices == [8])
    }

    @Test func `counts are reported, and a label that was never counted is a failure`() throws {
        let report = try Property.check("a property", runs: 50, covering: ["even"]) { choices in
            choices.count(choices.int(in: 0...9) % 2 == 0 ? "even" : "odd")
        }
        #expect(report.runs == 50)
        #expect(report.counts.values.reduce(0, +) == 50)
        let failure = try #require(throws: CoverageFailure.self) {
            try Property.check("a property", covering: ["even", "never"]) { $0.count("even") }
        }
        #expect(failure.missing == ["never"])
        #expect(failure.description.contains("even: 100"))
    }

    @Test func `a check ends when its condition is false`() throws {
        let report = try Property.check("a property", runs: .max, while: { $0.runs < 7 }) { _ in }
        #expect(report.runs == 7)
    }
}
