// Model-based tests: random commands, each checked against a model. A run is a sequence of steps. Each step
// is a group of choices, so that shrinking removes single steps.

/// A system under test together with its model.
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
///     mutating func run(_ command: Command) async throws { … }  // throws if the two differ
/// }
///
/// try await Property.check("the counter counts") { choices in
///     var machine = Counter()
///     try await choices.run(&machine, steps: 0...50)
/// }
/// ```
public protocol StateMachine {
    /// A command of the system.
    associatedtype Command

    /// Draws a command that makes sense in the current state, as far as the model can tell.
    mutating func next(_ choices: inout Choices) -> Command
    /// Whether a command can be run in the current state. Called before every command, since shrinking may
    /// have removed the steps that prepared for it. A command that is not allowed is skipped.
    func allows(_ command: Command) -> Bool
    /// Runs a command on the system and on the model; throws if they differ.
    nonisolated(nonsending) mutating func run(_ command: Command) async throws
    /// Compares the system with the model after each command; throws if they differ.
    nonisolated(nonsending) mutating func check() async throws
}

/// A state machine without asynchronous commands, for synchronous properties.
public protocol SynchronousStateMachine: StateMachine {
    /// As `StateMachine.run(_:)`.
    mutating func run(_ command: Command) throws
    /// As `StateMachine.check()`.
    mutating func check() throws
}

extension StateMachine {
    /// Allows every command.
    public func allows(_ command: Command) -> Bool { true }
    /// Compares nothing.
    public nonisolated(nonsending) mutating func check() async throws {}
}

extension SynchronousStateMachine {
    /// Compares nothing.
    public mutating func check() throws {}
}

extension Choices {
    /// Runs a state machine for a number of steps. Each command is noted for the failure report. A command
    /// that is not allowed is skipped and counted as `not allowed`.
    nonisolated(nonsending) public mutating func run<Machine: StateMachine>(
        _ machine: inout Machine, steps: ClosedRange<Int>
    ) async throws {
        for step in 0..<steps.upperBound {
            let start = beginGroup()
            defer { endGroup(start) }
            guard drawsAnother(steps, after: step) else { break }
            guard let command = drawCommand(of: &machine) else { continue }
            try await machine.run(command)
            try await machine.check()
        }
    }

    /// Runs a synchronous state machine; otherwise the same as the asynchronous form.
    public mutating func run<Machine: SynchronousStateMachine>(
        _ machine: inout Machine, steps: ClosedRange<Int>
    ) throws {
        for step in 0..<steps.upperBound {
            let start = beginGroup()
            defer { endGroup(start) }
            guard drawsAnother(steps, after: step) else { break }
            guard let command = drawCommand(of: &machine) else { continue }
            try machine.run(command)
            try machine.check()
        }
    }

    private mutating func drawCommand<Machine: StateMachine>(
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
