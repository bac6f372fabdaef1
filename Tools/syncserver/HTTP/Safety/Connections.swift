// The connections that are open. Each has a ConnectionGuard that tells what it does; when there are
// too many, the one that has been idle the longest makes room, so that a flood of connections that
// say nothing keeps nobody out. Spec/operating.md, OPS-6.

import NIOCore
import Synchronization

/// The open connections of a server.
final class Connections: Sendable {
    private struct Entry {
        let channel: any Channel
        /// Nil while a request waits for its reply.
        var idleSince: NIODeadline?
    }

    private let countMax: Int
    private let metrics: ServerMetrics
    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    init(atMost countMax: Int, metrics: ServerMetrics) {
        self.countMax = countMax
        self.metrics = metrics
    }

    /// Connections that are open.
    var count: Int { entries.withLock { $0.count } }

    /// Enters a new connection. Closes the one that has been idle the longest if there are too
    /// many: the new one if no other is idle.
    func open(_ channel: any Channel) {
        let victim = entries.withLock { entries -> (any Channel)? in
            var victim: (key: ObjectIdentifier, entry: Entry)?
            if entries.count >= countMax {
                for (key, entry) in entries {
                    guard let since = entry.idleSince else { continue }
                    if let oldest = victim?.entry.idleSince, oldest <= since { continue }
                    victim = (key, entry)
                }
                guard let victim else { return channel }
                entries[victim.key] = nil
            }
            entries[ObjectIdentifier(channel)] = Entry(channel: channel, idleSince: .now())
            return victim?.entry.channel
        }
        metrics.countConnection()
        if let victim {
            metrics.countCut(.tooMany)
            victim.close(promise: nil)
        }
    }

    /// Notes whether a connection waits for a reply.
    func set(_ channel: any Channel, isIdle: Bool) {
        entries.withLock { $0[ObjectIdentifier(channel)]?.idleSince = isIdle ? .now() : nil }
    }

    /// Forgets a connection that is closed.
    func close(_ channel: any Channel) {
        entries.withLock { $0[ObjectIdentifier(channel)] = nil }
    }
}
