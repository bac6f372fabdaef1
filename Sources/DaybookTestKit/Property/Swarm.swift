// Swarm testing: each run omits some operations. Runs with all operations seldom reach states that need many
// of one kind in a row: a buffer fills only if nothing empties it. A swarm is drawn at the start of a run;
// the state machine draws each step from it.

/// The operations that one run uses (Groce et al., "Swarm testing", 2012).
///
/// ```swift
/// let swarm = Swarm([.push, .push, .pop, .clear], &choices)  // push is twice as likely
/// let operation = swarm.next(&choices)
/// ```
///
/// The simplest swarm omits nothing, and a step keeps its operation when omitted ones are added again, so
/// that a failure shrinks to the steps that matter.
public struct Swarm<Operation: Hashable & Sendable>: Sendable {
    private let all: [Operation]
    private let indexes: [UInt64]

    /// Draws the operations of a run: one run in eight has all, the others about half.
    ///
    /// - Parameters:
    ///   - all: the operations; not empty. One that occurs more often is drawn more often.
    ///   - always: the operations that are never omitted.
    ///   - choices: the source of the choices.
    public init(
        _ all: [Operation], always: Set<Operation> = [], _ choices: inout Choices
    ) {
        precondition(!all.isEmpty)
        self.all = all
        var omitted: Set<Operation> = []
        let isComplete = choices.int(in: 0...7) == 0
        var decided = always
        // Drawn in any case, so that later choices keep their index when shrinking makes the swarm complete.
        for operation in all where decided.insert(operation).inserted {
            if choices.bool(), !isComplete { omitted.insert(operation) }
        }
        let indexes = all.indices.filter { !omitted.contains(all[$0]) }
        self.indexes = (indexes.isEmpty ? Array(all.indices) : indexes).map(UInt64.init)
    }

    /// Whether the run uses an operation.
    public func contains(_ operation: Operation) -> Bool {
        indexes.contains { all[Int($0)] == operation }
    }

    /// Draws one of the run's operations; shrinks towards the first of all.
    public func next(_ choices: inout Choices) -> Operation {
        all[Int(choices.next(below: UInt64(all.count), among: indexes))]
    }
}
