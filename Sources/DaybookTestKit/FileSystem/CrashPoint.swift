// One moment at which the power may fail, and every state that it may leave. Recorded by
// SimulatedFileSystem; searched through by CrashSearch and by tests.

/// The disk before one operation.
public struct CrashPoint: Sendable {
    /// The number of the operation that would come next.
    public let operation: Int
    /// The operation that would come next, in words.
    public let next: String
    let disk: SimulatedDisk

    /// How far a search through the states of a crash point goes.
    public struct Scope: Sendable {
        /// All combinations of what is in doubt are tried up to this number.
        public var combinationsMax: Int
        /// How many are drawn where there are more.
        public var samples: Int

        /// Creates a scope. 4,096 combinations are those of twelve sectors.
        public init(combinationsMax: Int = 4_096, samples: Int = 64) {
            self.combinationsMax = combinationsMax
            self.samples = samples
        }
    }

    /// Calls `body` with each state that a power cut may leave here:
    ///
    /// - every combination of old and new: sizes, sectors after each of their writes, names;
    /// - each sector damaged by itself (torn at two places in both directions, zeros, garbage), with
    ///   everything else old, and with everything else new.
    ///
    /// Where these are more combinations than the scope allows: all old, all new, and as many drawn at
    /// random as it says, damage among them.
    ///
    /// - Parameters:
    ///   - scope: how far the search goes.
    ///   - seed: for what is drawn.
    ///   - body: gets the machine after the cut, and what was decided, for `state(_:)`.
    /// - Returns: whether all combinations were tried.
    /// - Throws: what `body` throws.
    @discardableResult
    public func forEachState(
        in scope: Scope = Scope(), seed: UInt64 = 0,
        _ body: (SimulatedFileSystem, _ decision: [Int]) throws -> Void
    ) rethrows -> Bool {
        let doubts = disk.doubts()
        func visit(_ decision: [Int]) throws {
            try body(SimulatedFileSystem(disk.resolved(doubts, decision)), decision)
        }
        let versions = doubts.map(\.versions)
        let isAll = Self.product(versions, atMost: scope.combinationsMax) != nil
        if isAll {
            var decision = [Int](repeating: 0, count: doubts.count)
            repeat { try visit(decision) } while Self.advance(&decision, versions)
        } else {
            var random = SeededRandom(seed: seed)
            for _ in 0..<scope.samples {
                try visit(
                    doubts.map { doubt in
                        // One sector in four is damaged as well.
                        let all = doubt.versions + (random.next() % 4 == 0 ? doubt.damages : 0)
                        return Int(random.next() % UInt64(all))
                    })
            }
        }
        let old = [Int](repeating: 0, count: doubts.count)
        let new = versions.map { $0 - 1 }
        guard isAll else {
            try visit(old)
            try visit(new)
            return false
        }
        for (index, doubt) in doubts.enumerated() {
            for damage in 0..<doubt.damages {
                for var decision in [old, new] {
                    decision[index] = doubt.versions + damage
                    try visit(decision)
                }
            }
        }
        return true
    }

    /// The state with this decision, as `forEachState` gave it.
    public func state(_ decision: [Int]) -> SimulatedFileSystem {
        SimulatedFileSystem(disk.resolved(disk.doubts(), decision))
    }

    /// The machine after the process was killed here.
    public func afterKill() -> SimulatedFileSystem { SimulatedFileSystem(disk) }

    /// One of all states, at random: see `SimulatedFileSystem.afterPowerCut(_:)`.
    public func afterPowerCut(_ choices: inout Choices) -> SimulatedFileSystem {
        SimulatedFileSystem(disk.afterPowerCut(&choices))
    }

    private static func product(_ numbers: [Int], atMost limit: Int) -> Int? {
        var product = 1
        for number in numbers {
            product *= number
            if product > limit { return nil }
        }
        return product
    }

    /// The next decision in order; false behind the last.
    private static func advance(_ decision: inout [Int], _ versions: [Int]) -> Bool {
        for index in decision.indices {
            decision[index] += 1
            if decision[index] < versions[index] { return true }
            decision[index] = 0
        }
        return false
    }
}
