// A point between two disk operations at which the power may fail, and every state that the failure may
// leave. SimulatedFileSystem records them; CrashSearch and tests enumerate their states.

/// The state of the disk before one operation.
public struct CrashPoint: Sendable {
    /// The number of the next operation.
    public let operation: Int
    /// A description of the next operation.
    public let next: String
    let disk: SimulatedDisk

    /// The limits of a search through the states of a crash point.
    public struct Scope: Sendable {
        /// The highest number of combinations that are all tried.
        public var combinationsMax: Int
        /// The number of combinations that are drawn at random where there are more.
        public var samples: Int

        /// Creates a scope. Twelve sectors have 4,096 combinations.
        public init(combinationsMax: Int = 4_096, samples: Int = 64) {
            self.combinationsMax = combinationsMax
            self.samples = samples
        }
    }

    /// Calls `body` with each state that a power cut may leave here:
    ///
    /// - every combination of old and new sizes, sectors after each of their writes, and names;
    /// - each sector damaged alone (torn at two offsets in both directions, zeroed, filled with garbage),
    ///   with everything else old, and with everything else new.
    ///
    /// If there are more combinations than the scope allows, the states are: all old, all new, and
    /// `Scope.samples` drawn at random, some with damage.
    ///
    /// - Parameters:
    ///   - scope: the limits of the search.
    ///   - seed: the seed of the states that are drawn at random.
    ///   - body: receives the file system after the power cut, and the decision that `state(_:)` accepts.
    /// - Returns: true if all combinations were tried.
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
                        // Damage is allowed for one sector in four.
                        let count = doubt.versions + (random.next() % 4 == 0 ? doubt.damages : 0)
                        return Int(random.next() % UInt64(count))
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

    /// The state of a decision that `forEachState` passed to its body.
    public func state(_ decision: [Int]) -> SimulatedFileSystem {
        SimulatedFileSystem(disk.resolved(disk.doubts(), decision))
    }

    /// The file system after the process was killed here.
    public func afterKill() -> SimulatedFileSystem { SimulatedFileSystem(disk) }

    /// A state drawn at random: see `SimulatedFileSystem.afterPowerCut(_:)`.
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

    /// Replaces a decision by the next one.
    ///
    /// - Returns: false if it was the last.
    private static func advance(_ decision: inout [Int], _ versions: [Int]) -> Bool {
        for index in decision.indices {
            decision[index] += 1
            if decision[index] < versions[index] { return true }
            decision[index] = 0
        }
        return false
    }
}
