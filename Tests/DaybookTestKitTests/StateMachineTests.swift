// State machines, swarms and saved failures: the parts of the property engine for histories. The machine
// under test is a bounded queue with a mistake.

import DaybookTestKit
import Foundation
import Testing

private struct Broken: Error {}

/// A ring buffer of four elements that does not wrap a second time, with an array as its model.
private struct RingMachine: SynchronousStateMachine {
    enum Command: Equatable { case push(Int), pop, clear }
    enum Operation { case push, pop, clear }

    var ring: [Int?] = [nil, nil, nil, nil]
    var head = 0
    var expected: [Int] = []
    var swarm: Swarm<Operation>
    var ran: [Command] = []

    init(_ choices: inout Choices) { swarm = Swarm([.push, .pop, .clear], &choices) }

    func next(_ choices: inout Choices) -> Command {
        switch swarm.next(&choices) {
        case .push: .push(choices.int(in: 0...99))
        case .pop: .pop
        case .clear: .clear
        }
    }

    func allows(_ command: Command) -> Bool {
        switch command {
        case .push: expected.count < 4
        case .pop, .clear: !expected.isEmpty
        }
    }

    mutating func run(_ command: Command) throws {
        ran.append(command)
        switch command {
        case .push(let number):
            // The mistake: the seventh and later pushes without a clear store nothing.
            if head + expected.count < 6 { ring[(head + expected.count) % 4] = number }
            expected.append(number)
        case .pop:
            guard let first = expected.first, ring[head % 4] == first else { throw Broken() }
            expected.removeFirst()
            ring[head % 4] = nil
            head += 1
        case .clear:
            expected = []
            ring = [nil, nil, nil, nil]
            head = 0
        }
    }

    func check() throws {
        for (offset, number) in expected.enumerated()
        where ring[(head + offset) % 4] != number { throw Broken() }
    }
}

@Suite struct StateMachineTests {
    @Test func `a history shrinks to the steps that matter, and none breaks a precondition`() throws
    {
        for seed: UInt64 in 1...5 {
            let failure = try #require(throws: PropertyFailure.self) {
                try Property.check("the ring holds", runs: 2_000, seed: seed) { choices in
                    var machine = RingMachine(&choices)
                    try choices.run(&machine, steps: 0...40)
                }
            }
            // Each pop before the first lost push must follow a push.
            var machine = try machine(failure)
            #expect(machine.ran.count { $0 == .pop } >= 3)
            #expect(machine.ran.count { if case .push = $0 { true } else { false } } == 7)
            #expect(machine.ran.allSatisfy { $0 == .pop || $0 == .push(0) })
            #expect(failure.notes == machine.ran.map { "\($0)" })
            machine.ran = []
        }
    }

    /// The machine after the commands of a failure.
    private func machine(_ failure: PropertyFailure) throws -> RingMachine {
        var choices = Choices(replaying: failure.choices)
        var machine = RingMachine(&choices)
        #expect(throws: Broken.self) { try choices.run(&machine, steps: 0...40) }
        return machine
    }

    @Test func `a command that is not allowed is counted and not run`() throws {
        struct Picky: SynchronousStateMachine {
            var ran = 0
            func next(_ choices: inout Choices) -> Int { choices.int(in: 0...9) }
            func allows(_ command: Int) -> Bool { command < 5 }
            mutating func run(_ command: Int) throws {
                try #require(command < 5)
                ran += 1
            }
        }
        let report = try Property.check("picky", covering: ["not allowed"]) { choices in
            var machine = Picky()
            try choices.run(&machine, steps: 20...20)
            try #require(machine.ran + (choices.counts["not allowed"] ?? 0) == 20)
        }
        #expect((report.counts["not allowed"] ?? 0) > 500)
    }

    @Test func `an asynchronous machine is checked after every step`() async throws {
        struct Slow: StateMachine {
            var sum = 0
            var checks = 0
            func next(_ choices: inout Choices) -> Int { choices.int(in: 0...9) }
            mutating func run(_ command: Int) async throws {
                await Task.yield()
                sum += command
            }
            mutating func check() async throws {
                checks += 1
                if sum > 30 { throw Broken() }
            }
        }
        let failure = try await #require(throws: PropertyFailure.self) {
            try await Property.check("slow") { choices in
                var machine = Slow()
                try await choices.run(&machine, steps: 0...30)
            }
        }
        #expect(failure.notes == ["4", "9", "9", "9"])
    }

    @Test func `a swarm omits about half, never all, and nothing with the simplest choices`() throws
    {
        let all = Array(0..<10)
        var simplest = Choices(replaying: [])
        let whole = Swarm(all, &simplest)
        #expect(all.allSatisfy { whole.contains($0) })
        let report = try Property.check("swarms", runs: 500, covering: ["all", "one"]) { choices in
            let swarm = Swarm(all, always: [3], &choices)
            let count = all.count { swarm.contains($0) }
            try #require(swarm.contains(3))
            choices.count("operations", by: count)
            choices.count(count == all.count ? "all" : count == 1 ? "one" : "some")
            for _ in 0..<20 { try #require(swarm.contains(swarm.next(&choices))) }
        }
        #expect((2_500...3_500).contains(try #require(report.counts["operations"])))
    }

    @Test func `steps keep their operations when a swarm gets omitted ones back`() throws {
        var choices = Choices(seed: 5)
        let swarm = Swarm([0, 1, 2, 3, 4, 5], &choices)
        #expect(!(0...5).allSatisfy { swarm.contains($0) })
        let drawn = (0..<50).map { _ in swarm.next(&choices) }
        var again = Choices(replaying: [0] + choices.recorded[1...])
        let whole = Swarm([0, 1, 2, 3, 4, 5], &again)
        #expect((0..<50).map { _ in whole.next(&again) } == drawn)
    }

    @Test func `a known failure is tried first`() throws {
        var seen: [Int] = []
        func body(_ choices: inout Choices) throws {
            let number = choices.int(in: 0...1_000_000)
            seen.append(number)
            if number == 4_711 { throw Broken() }
        }
        try Property.check("a number", runs: 20, body)
        #expect(!seen.contains(4_711))
        seen = []
        let failure = try #require(throws: PropertyFailure.self) {
            try Property.check("a number", runs: 20, regressions: [[3], [4_711]], body)
        }
        #expect(seen.prefix(2) == [3, 4_711])
        #expect(failure.choices == [4_711])
        #expect(failure.seed == nil)
        #expect(failure.run == 0)
        #expect(failure.description.contains("a known failure"))
    }
}
