// What will happen to a connection's requests, one after the other. Pure: it follows from the seed
// and the number of the connection. Part of HostileProxy.

import Foundation

/// The faults of one connection.
struct ProxyPlan: Sendable {
    /// What happens to one request.
    struct Deed: Hashable, Sendable {
        var fault: ProxyFault
        /// Where in a message, as a part of its length from 0 up to but not including 1.
        var place: Double
        /// How long something takes, where it takes its time.
        var delayMilliseconds: Int
        /// Whether a connection is reset; otherwise it ends in good order.
        var isReset: Bool
    }

    /// Whether the connection is refused, and for how long nobody listens.
    private(set) var refusal: Deed?
    private let options: HostileProxy.Options
    private let faults: [ProxyFault]
    private var random: SeededRandom

    init(seed: UInt64, connection: Int, options: HostileProxy.Options) {
        self.options = options
        faults = options.faults.filter { $0 != .connectionRefused }
        random = SeededRandom(seed: SeededRandom.seed(ofRun: connection, from: seed))
        if options.faults.contains(.connectionRefused), isDrawn(options.refusedOneIn) {
            refusal = deed(.connectionRefused)
        }
    }

    /// What happens to the next request; nil: it goes well.
    mutating func next() -> Deed? {
        // As many numbers are drawn for a request that goes well as for one that does not.
        let goesWrong = isDrawn(options.oneIn)
        let index = random.next()
        guard !faults.isEmpty else { return nil }
        let deed = deed(faults[Int(index % UInt64(faults.count))])
        return goesWrong ? deed : nil
    }

    private mutating func deed(_ fault: ProxyFault) -> Deed {
        Deed(
            fault: fault, place: Double(random.next() >> 11) / 0x1p53,
            delayMilliseconds: Int(random.next() % UInt64(max(1, options.delayMilliseconds))),
            isReset: random.next() % 2 == 0)
    }

    private mutating func isDrawn(_ oneIn: Int) -> Bool {
        random.next() % UInt64(max(1, oneIn)) == 0
    }
}
