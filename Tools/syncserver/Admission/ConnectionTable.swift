// The open connections, their phases, and the choice of the one to close when there are too many. A
// value without clock, sockets or threads; Connections carries its decisions out.
// Spec/operations/operating.md, OPS-6.

import EventSourcing
import Foundation

/// The client that a connection is counted for.
package enum ConnectionHolder: Hashable, Sendable {
    /// The account of the last request.
    case account(EntityID)
    /// The client's address, until a request has authenticated as an account.
    case address(String)

    /// The holder of a connection from an IP address. The addresses of one IPv6 network of 64 bits
    /// count as one, since one client can have them all.
    package init(ipAddress: String?) {
        let text = ipAddress ?? ""
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, text, &v6) == 1 else {
            self = .address(text)
            return
        }
        let bytes = withUnsafeBytes(of: v6) { Array($0) }
        let isMappedIPv4 = bytes[..<12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        let network = isMappedIPv4 ? bytes[12...] : bytes[..<8]
        self = .address(network.map { String($0) }.joined(separator: isMappedIPv4 ? "." : ":"))
    }
}

/// Open connections.
package struct ConnectionTable<Key: Hashable & Sendable>: Sendable {
    /// The phase of a connection.
    package enum Phase: Hashable, Sendable {
        /// No request is under way.
        case idle
        /// The reply is a stream of events. Its client resumes after the last one.
        case following
        /// A request is incomplete.
        case receiving
        /// A request is complete, and its reply is not ready yet.
        case answering
        /// A reply is ready, and the client has not read it yet.
        case sending

        /// The order in which a holder's connections are closed; nil for one that is not closed,
        /// because the server works on its reply.
        fileprivate var victimRank: Int? {
            switch self {
            case .idle: 0
            case .following: 1
            case .receiving: 2
            case .sending: 3
            case .answering: nil
            }
        }
    }

    private struct Entry {
        var holder: ConnectionHolder
        var phase = Phase.idle
        /// The number of the entry's last change, counted over all connections.
        var changed: Int
    }

    private let countMax: Int
    private var entries: [Key: Entry] = [:]
    private var changes = 0

    package init(countMax: Int) { self.countMax = countMax }

    /// The number of open connections.
    package var count: Int { entries.count }

    /// Inserts a new connection.
    ///
    /// - Returns: the connection to close; nil if fewer than the limit are open; the new one, which is
    ///   not inserted, if the server works on a reply for each of the others.
    package mutating func open(_ key: Key, holder: ConnectionHolder) -> Key? {
        var victim: Key?
        if entries.count >= countMax {
            guard let candidate = self.victim else { return key }
            victim = candidate
            entries[candidate] = nil
        }
        changes += 1
        entries[key] = Entry(holder: holder, changed: changes)
        return victim
    }

    /// Sets the phase of a connection.
    package mutating func set(_ key: Key, _ phase: Phase) {
        guard entries[key] != nil, entries[key]?.phase != phase else { return }
        changes += 1
        entries[key]?.phase = phase
        entries[key]?.changed = changes
    }

    /// Sets the account that a connection is counted for.
    package mutating func set(_ key: Key, account: String) {
        entries[key]?.holder = .account(EntityID(account))
    }

    /// True if a reply is being sent on a connection.
    package func isReplying(_ key: Key) -> Bool {
        [.following, .sending].contains(entries[key]?.phase)
    }

    /// Removes a closed connection.
    package mutating func close(_ key: Key) { entries[key] = nil }

    /// The connection to close. Among the connections of the holder with the most that wait for their
    /// client: the one idle for the longest time, else the oldest stream, else the one whose request has been
    /// incomplete the longest, else the one whose reply has been unread the longest.
    private var victim: Key? {
        var counts: [ConnectionHolder: Int] = [:]
        var candidates: [ConnectionHolder: (key: Key, order: (rank: Int, changed: Int))] = [:]
        for (key, entry) in entries {
            guard let rank = entry.phase.victimRank else { continue }
            counts[entry.holder, default: 0] += 1
            let order = (rank: rank, changed: entry.changed)
            if let other = candidates[entry.holder]?.order, other < order { continue }
            candidates[entry.holder] = (key, order)
        }
        return candidates.max { first, second in
            // Between two holders with equal counts, the connection that changed longer ago.
            (counts[first.key] ?? 0, -first.value.order.changed)
                < (counts[second.key] ?? 0, -second.value.order.changed)
        }?.value.key
    }
}
