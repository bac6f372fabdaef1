// Properties that are hard to shrink. From several seeds, the shrinker must find the simplest input that
// fails.

import DaybookTestKit
import Testing

@Suite struct ShrinkerTests {
    private struct Broken: Error {}

    /// The shrunk input of a property. It must be the same from five seeds, so that the result is not chance.
    private func shrunk<T: Equatable>(
        runs: Int = 2_000, _ draw: (inout Choices) -> T, fails: (T) -> Bool
    ) throws -> T {
        var found: [T] = []
        for seed: UInt64 in 1...5 {
            let failure = try #require(throws: PropertyFailure.self) {
                try Property.check("a property", runs: runs, seed: seed) { choices in
                    if fails(draw(&choices)) { throw Broken() }
                }
            }
            #expect(failure.shrinkingRuns < Property.shrinkingRunsMax)
            var choices = Choices(replaying: failure.choices)
            found.append(draw(&choices))
        }
        #expect(found.allSatisfy { $0 == found[0] }, "\(found)")
        return found[0]
    }

    @Test func `an element that is too large loses its large neighbours`() throws {
        let row = try shrunk({ $0.array(0...30) { $0.array(0...9) { $0.int(in: 0...900) } } }) {
            $0.contains { $0.contains { $0 >= 700 } }
        }
        #expect(row == [[700]])
    }

    @Test func `an element is removed from a list whose length was chosen before`() throws {
        let row = try shrunk({ choices in
            (0..<choices.int(in: 0...8)).map { _ in choices.int(in: 0...1_000) }
        }) { $0.contains { $0 >= 500 } }
        #expect(row == [500])
    }

    @Test func `the first element is removed from a list that must not be empty`() throws {
        let row = try shrunk({ $0.array(2...20) { [$0.int(in: 0...9), $0.int(in: 0...99)] } }) {
            $0.contains { $0[1] > 50 }
        }
        #expect(row == [[0, 0], [0, 51]])
    }

    @Test func `two numbers that must be equal shrink together`() throws {
        let row = try shrunk({ choices in
            let row = choices.array(0...12) { $0.int(in: 0...300) }
            return row + (choices.bool() ? row : [])
        }) { row in row.contains { number in number >= 40 && row.count { $0 == number } > 1 } }
        #expect(row == [40, 40])
    }

    @Test func `a sum is gathered in one number`() throws {
        let row = try shrunk({ $0.array(0...12) { $0.int(in: 0...1_000) } }) {
            $0.reduce(0, +) > 1_500
        }
        #expect(row == [501, 1_000])
    }

    @Test func `an unsorted list shrinks to two elements`() throws {
        let row = try shrunk({ $0.array(0...20) { $0.int(in: 0...1_000) } }) { $0 != $0.sorted() }
        #expect(row == [1, 0])
    }

    @Test func `different numbers end up in order`() throws {
        let row = try shrunk({ $0.array(0...20) { $0.int(in: 0...100) } }) { Set($0).count >= 4 }
        #expect(row == [0, 1, 2, 3])
    }

    @Test func `nested lists lose irrelevant elements at any depth`() throws {
        let row = try shrunk({ choices in
            choices.array(0...8) { choices in
                choices.group { choices in
                    [choices.int(in: 0...99), choices.int(in: 0...99)]
                        + choices.array(0...5) { $0.int(in: 0...99) }
                }
            }
        }) { $0.contains { $0.count >= 4 && $0[3] >= 10 } }
        #expect(row == [[0, 0, 0, 10]])
    }

    @Test func `a difference stays while both numbers shrink`() throws {
        let pair = try shrunk({ [$0.int(in: 0...1_000), $0.int(in: 0...1_000)] }) {
            $0[0] > 0 && $0[1] - $0[0] > 90
        }
        #expect(pair == [1, 92])
    }

    @Test func `bytes shrink to zeros, and their number to the lowest`() throws {
        let bytes = try shrunk({ $0.bytes(count: $0.int(in: 0...100_000)) }) { $0.count > 4_096 }
        #expect(bytes == [UInt8](repeating: 0, count: 4_097))
    }
}
