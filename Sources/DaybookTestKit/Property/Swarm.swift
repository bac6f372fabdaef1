// Swarm testing: each run leaves some operations out. Runs in which everything happens now and then
// hide what takes many of one kind in a row: a buffer fills only if nothing empties it. Drawn at the
// start of a run; asked by the state machine for each step.

/// The operations that one run uses (Groce et al., "Swarm testing", 2012).
///
/// ```swift
/// let swarm = Swarm([.push, .push, .pop, .clear], &choices)  // push is twice as likely
/// let operation = swarm.next(&choices)
/// ```
///
/// The simplest swarm leaves nothing out, and a step keeps its operation when others are let in
/// again: so a failure shrinks to the steps that matter.
public struct Swarm<Operation: Hashable & Sendable>: Sendable {
    private let all: [Operation]
    private let indexes: [UInt64]

    /// Draws the operations of a run: one run in eight has all, the others about half.
    ///
    /// - Parameters:
    ///   - all: the operations; one that occurs more often is drawn more often. Not empty.
    ///   - always: what is never left out.
    ///   - choices: what decides.
    public init(
        _ all: [Operation], always: Set<Operation> = [], _ choices: inout Choices
    ) {
        precondition(!all.isEmpty)
        self.all = all
        var out: Set<Operation> = []
        let isWhole = choices.int(in: 0...7) == 0
        var seen = always
        // Drawn in any case, so that what follows keeps its place when nothing is left out any more.
        for operation in all where seen.insert(operation).inserted {
            if choices.bool(), !isWhole { out.insert(operation) }
        }
        let indexes = all.indices.filter { !out.contains(all[$0]) }
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
