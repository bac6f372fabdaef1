// Tests of things with a state: commands at random, each checked against a model. A run is a row of
// steps; each step is a group of choices, so shrinking leaves out single steps. Uses Choices; run
// from the body of a property.

/// A system under test together with the model of what it should do.
///
/// ```swift
/// struct Counter: StateMachine {
///     var counter = RealCounter()
///     var expected = 0
///     enum Command { case add(Int), reset }
///
///     func next(_ choices: inout Choices) -> Command {
///         choices.bool(oneIn: 5) ? .reset : .add(choices.int(in: 1...9))
///     }
///     func allows(_ command: Command) -> Bool {
///         if case .reset = command { expected > 0 } else { true }
///     }
///     mutating func run(_ command: Command) async throws { … }  // throws where the two differ
/// }
///
/// try await Property.check("the counter counts") { choices in
///     var machine = Counter()
///     try await choices.run(&machine, steps: 0...50)
/// }
/// ```
public protocol StateMachine {
    /// Something to do.
    associatedtype Command

    /// Draws a command that makes sense in the present state, as far as that is known here.
    mutating func next(_ choices: inout Choices) -> Command
    /// Whether a command may be carried out in the present state. Asked for every command before it
    /// is run, also while shrinking, where the steps that prepared for it may be gone: one that is
    /// not allowed is left out.
    func allows(_ command: Command) -> Bool
    /// Carries out a command on the system and on the model; throws where they differ.
    nonisolated(nonsending) mutating func run(_ command: Command) async throws
    /// Compares the system with the model after each command; throws where they differ.
    nonisolated(nonsending) mutating func check() async throws
}

/// A state machine that never waits; for properties that do not.
public protocol SynchronousStateMachine: StateMachine {
    /// As `StateMachine.run(_:)`.
    mutating func run(_ command: Command) throws
    /// As `StateMachine.check()`.
    mutating func check() throws
}

extension StateMachine {
    /// Every command.
    public func allows(_ command: Command) -> Bool { true }
    /// Compares nothing.
    public nonisolated(nonsending) mutating func check() async throws {}
}

extension SynchronousStateMachine {
    /// Compares nothing.
    public mutating func check() throws {}
}

extension Choices {
    /// Runs a state machine for a number of steps. Each command is noted for the failure report, as
    /// the machine describes it; one that is not allowed is not run and counted as `not allowed`.
    nonisolated(nonsending) public mutating func run<Machine: StateMachine>(
        _ machine: inout Machine, steps: ClosedRange<Int>
    ) async throws {
        for step in 0..<steps.upperBound {
            let start = beginGroup()
            defer { endGroup(start) }
            guard another(steps, after: step) else { break }
            guard let command = command(of: &machine) else { continue }
            try await machine.run(command)
            try await machine.check()
        }
    }

    /// Runs a state machine that never waits; otherwise as the form above.
    public mutating func run<Machine: SynchronousStateMachine>(
        _ machine: inout Machine, steps: ClosedRange<Int>
    ) throws {
        for step in 0..<steps.upperBound {
            let start = beginGroup()
            defer { endGroup(start) }
            guard another(steps, after: step) else { break }
            guard let command = command(of: &machine) else { continue }
            try machine.run(command)
            try machine.check()
        }
    }

    private mutating func command<Machine: StateMachine>(
        of machine: inout Machine
    ) -> Machine.Command? {
        let command = machine.next(&self)
        guard machine.allows(command) else {
            count("not allowed")
            return nil
        }
        note("\(command)")
        return command
    }
}
