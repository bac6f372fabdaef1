// The property engine itself: without trust in it, the other tests say nothing.

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
        var seeded = Choices(seed: failure.seed)
        _ = seeded.int(in: 0...9)
        let fails = seeded.bool(oneIn: 5)
        #expect(fails)
        #expect(failure.notes == ["first 0"])
        #expect(failure.description.contains("DAYBOOK_SEED=0x\(String(failure.seed, radix: 16))"))
        #expect(failure.description.contains("--filter LogFormatTests.PropertyTests"))
    }

    @Test func `an asynchronous property shrinks alike`() async throws {
        let failure = try await #require(throws: PropertyFailure.self) {
            try await Property.check("a property") { choices in
                await Task.yield()
                if choices.int(in: 0...1_000) > 7 { throw Broken() }
            }
        }
        #expect(failure.choices == [8])
    }
}
