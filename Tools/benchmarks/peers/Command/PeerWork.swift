// The timed works of a peer: the benchmark's rows with outside peers.

import Foundation
import Synchronization

/// A work of a peer.
enum PeerWork: String, CaseIterable {
    /// One commit for each event; the time of the median commit.
    case single
    /// The same with sixteen threads; the total time.
    case concurrent
    /// Commits of a thousand events; the total time.
    case bulk
    /// Fills the database for `scan`; the total time.
    case load
    /// Reads every byte of every line of a database that was filled before.
    case scan

    private static let writers = 16
    private static let batch = 1_000

    /// Performs the work.
    ///
    /// - Returns: the seconds, the processor time of all threads in seconds (of `single` for each event), and the
    ///   number of events.
    func perform(
        on peer: some Peer, _ file: String
    ) throws -> (seconds: Double, processor: Double, events: Int) {
        guard self != .scan else { return try scan(peer) }
        let events = try PeerEvent.all(of: file)
        switch self {
        case .single:
            var costs: [Double] = []
            let total = try Self.measured {
                for index in events.indices {
                    let begun = ContinuousClock.now
                    try peer.append(events[index...index])
                    costs.append((ContinuousClock.now - begun) / .seconds(1))
                }
            }
            guard !costs.isEmpty else { throw PeerFailure("\(file) has no lines") }
            let median = costs.sorted()[costs.count / 2]
            return (median, total.processor / Double(costs.count), events.count)
        case .concurrent:
            let cost = try Self.measured { try appendConcurrently(events, peer) }
            return (cost.seconds, cost.processor, events.count)
        case .bulk, .load, .scan:
            let cost = try Self.measured {
                for start in stride(from: 0, to: events.count, by: Self.batch) {
                    try peer.append(events[start..<min(start + Self.batch, events.count)])
                }
            }
            if self == .load { try peer.compact() }
            return (cost.seconds, cost.processor, events.count)
        }
    }

    private static func measured(
        _ body: () throws -> Void
    ) rethrows -> (seconds: Double, processor: Double) {
        let (begun, processor) = (ContinuousClock.now, processorSeconds())
        try body()
        return ((ContinuousClock.now - begun) / .seconds(1), processorSeconds() - processor)
    }

    /// The processor time of all threads of this process so far, in seconds.
    private static func processorSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Appends the events with sixteen threads, not tasks, because each blocks on the disk.
    private func appendConcurrently(_ events: [PeerEvent], _ peer: some Peer) throws {
        let (done, outcome) = (DispatchGroup(), Outcome())
        for writer in 0..<Self.writers {
            done.enter()
            Thread.detachNewThread {
                defer { done.leave() }
                do throws(PeerFailure) {
                    for index in stride(from: writer, to: events.count, by: Self.writers) {
                        try peer.append(events[index...index])
                    }
                } catch { outcome.failure.withLock { $0 = error } }
            }
        }
        done.wait()
        if let failure = outcome.failure.withLock({ $0 }) { throw failure }
    }

    private func scan(
        _ peer: some Peer
    ) throws -> (seconds: Double, processor: Double, events: Int) {
        var events = 0
        let cost = try Self.measured {
            try peer.forEachLine { line in
                // The work of a reader that splits lines.
                if let base = line.baseAddress, memchr(base, 0x0A, line.count) == nil {
                    events += 1
                }
            }
        }
        return (cost.seconds, cost.processor, events)
    }
}

/// The failure of a thread.
private final class Outcome: Sendable {
    let failure = Mutex<PeerFailure?>(nil)
}
