// The name of a database, and its restores from a backup. Cursors name the last one, so that a reader that has read
// what the database has lost is recognised. Spec/protocol/sync-protocol.md, SYNC-38 and SYNC-50.

import EventSourcing

/// The restores of a database, in their order.
package struct Restores: Hashable, Sendable {
    /// A restore that the operator has recorded.
    package struct Restore: Hashable, Sendable {
        /// A random name, which the cursors since then carry.
        package var generation: String
        /// The time of the state that was restored.
        package var restoredTo: Timestamp

        package init(generation: String, restoredTo: Timestamp) {
            self.generation = generation
            self.restoredTo = restoredTo
        }

        /// A restore that is recorded now.
        package init(to time: Timestamp) {
            let digits = String(UInt32.random(in: .min ... .max), radix: 16)
            generation = String(repeating: "0", count: 8 - digits.count) + digits
            restoredTo = time
        }
    }

    /// A cursor that a client has sent.
    package enum Reading: Hashable, Sendable {
        case cursor(EventCursor)
        /// It was given out before a restore: the reader may have read, and shipped, what was lost. The restore is
        /// the last one, with the earliest time of those since then.
        case outdated(Restore)
        case malformed
    }

    private let all: [Restore]
    /// The random name that the database got when it was made; nil for none.
    private let database: String?

    package init(_ all: [Restore] = [], database: String? = nil) {
        self.all = all
        self.database = database
    }

    /// The name that replies give the server: that of its database, after a restore with the generation.
    package var server: String? {
        database.map { $0 + (all.last.map { ".\($0.generation)" } ?? "") }
    }

    /// The cursor as the text that clients get: after a restore with its generation.
    package func text(of cursor: EventCursor) -> String {
        cursor.text + (all.last.map { ".\($0.generation)" } ?? "")
    }

    /// Reads a cursor that a client sends back.
    package func read(_ text: String) -> Reading {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let cursor = EventCursor(String(parts[0])) else { return .malformed }
        let generation = parts.count > 1 ? String(parts[1]) : nil
        guard generation != all.last?.generation else { return .cursor(cursor) }
        // A generation that is not known was lost in a restore itself.
        let index = all.firstIndex { $0.generation == generation }
        let later = index.map { all[($0 + 1)...] } ?? all[...]
        guard var restore = later.last, let earliest = later.map(\.restoredTo).min() else {
            return .malformed
        }
        restore.restoredTo = earliest
        return .outdated(restore)
    }
}
