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
    /// - Returns: the seconds and the number of events.
    func perform(on peer: some Peer, _ file: String) throws -> (seconds: Double, events: Int) {
        guard self != .scan else { return try scan(peer) }
        let events = try PeerEvent.all(of: file)
        switch self {
        case .single:
            let costs = try events.indices.map { index in
                try Self.seconds { try peer.append(events[index...index]) }
            }.sorted()
            guard !costs.isEmpty else { throw PeerFailure("\(file) has no lines") }
            return (costs[costs.count / 2], events.count)
        case .concurrent:
            return (try Self.seconds { try appendConcurrently(events, peer) }, events.count)
        case .bulk, .load, .scan:
            let seconds = try Self.seconds {
                for start in stride(from: 0, to: events.count, by: Self.batch) {
                    try peer.append(events[start..<min(start + Self.batch, events.count)])
                }
            }
            if self == .load { try peer.compact() }
            return (seconds, events.count)
        }
    }

    private static func seconds(_ body: () throws -> Void) rethrows -> Double {
        let begun = ContinuousClock.now
        try body()
        return (ContinuousClock.now - begun) / .seconds(1)
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

    private func scan(_ peer: some Peer) throws -> (seconds: Double, events: Int) {
        var events = 0
        let seconds = try Self.seconds {
            try peer.forEachLine { line in
                // The work of a reader that splits lines.
                if let base = line.baseAddress, memchr(base, 0x0A, line.count) == nil {
                    events += 1
                }
            }
        }
        return (seconds, events)
    }
}

/// The failure of a thread.
private final class Outcome: Sendable {
    let failure = Mutex<PeerFailure?>(nil)
}
