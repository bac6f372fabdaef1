// The faults of a connection's requests, in order. They follow from the seed and the number of the
// connection.

import Foundation

/// The faults of one connection.
struct ProxyPlan: Sendable {
    /// A fault of one request, with its parameters.
    struct PlannedFault: Hashable, Sendable {
        var kind: ProxyFault
        /// The location in a message, as a fraction of its length: at least 0, below 1.
        var fraction: Double
        /// The delay, for faults that have one.
        var delayMilliseconds: Int
        /// Whether a broken connection is reset instead of closed.
        var isReset: Bool
    }

    /// The refusal of the connection; its delay is the time for which later ones are refused. Nil if the
    /// connection is accepted.
    private(set) var refusal: PlannedFault?
    private let options: HostileProxy.Options
    private let faults: [ProxyFault]
    private var random: SeededRandom

    init(seed: UInt64, connection: Int, options: HostileProxy.Options) {
        self.options = options
        faults = options.faults.filter { $0 != .connectionRefused }
        random = SeededRandom(seed: SeededRandom.seed(ofRun: connection, from: seed))
        if options.faults.contains(.connectionRefused), drawOne(in: options.refusedOneIn) {
            refusal = drawFault(.connectionRefused)
        }
    }

    /// Draws the fault of the next request; nil for none.
    mutating func next() -> PlannedFault? {
        // Every request draws the same number of random numbers, with a fault or without.
        let hasFault = drawOne(in: options.oneIn)
        let index = random.next()
        guard !faults.isEmpty else { return nil }
        let fault = drawFault(faults[Int(index % UInt64(faults.count))])
        return hasFault ? fault : nil
    }

    private mutating func drawFault(_ kind: ProxyFault) -> PlannedFault {
        PlannedFault(
            kind: kind, fraction: Double(random.next() >> 11) / 0x1p53,
            delayMilliseconds: Int(random.next() % UInt64(max(1, options.delayMilliseconds))),
            isReset: random.next() % 2 == 0)
    }

    private mutating func drawOne(in count: Int) -> Bool {
        random.next() % UInt64(max(1, count)) == 0
    }
}
