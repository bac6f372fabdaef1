// Signals between the servers of one database: NOTIFY with the digest of each account that has new events, and
// LISTEN on a connection of its own. Spec/operations/postgresql.md; Spec/decisions/0053-events-are-pushed.md.

import EventSourcing
import SyncServerStorage

/// Announces accounts with new events, several with one statement.
///
/// Not within the transaction that stores the events: transactions with a NOTIFY commit one after the other,
/// across all accounts.
actor PostgreSQLAnnouncements {
    /// The channel of LISTEN and NOTIFY.
    static let channel = "daybook_events"

    private let pool: PostgreSQLPool
    private var waiting: Set<AccountSignals.Digest> = []
    private var isSending = false

    init(_ pool: PostgreSQLPool) { self.pool = pool }

    /// Announces an account. A failed announcement is lost: the other servers read the serials of their
    /// accounts now and then.
    func announce(_ account: AccountSignals.Digest) async {
        waiting.insert(account)
        guard !isSending else { return }
        isSending = true
        defer { isSending = false }
        while !waiting.isEmpty {
            let accounts = waiting
            waiting = []
            // Digests are hexadecimal digits, so they need no escapes in an array's text.
            let array = "{" + accounts.map(\.description).joined(separator: ",") + "}"
            _ = try? await pool.withConnection {
                try await $0.run(
                    "SELECT pg_notify('\(Self.channel)', a) FROM unnest($1::text[]) a", [array])
            }
        }
    }
}

extension PostgreSQLEventStorage {
    /// The longest wait for a notification, after which the task looks whether it is cancelled.
    private static let notificationWait = Duration.milliseconds(500)
    /// The time after which the listening connection is probed, and the longest wait for the answer.
    private static let probeInterval = Duration.seconds(5)
    /// The wait before a lost connection is opened again.
    private static let reconnectWait = Duration.seconds(1)

    package func forwardSignals() async {
        let connection = PostgreSQLConnection(location, name: "syncserver listener")
        /// The number of the connection's opening since which no notification is missed.
        var heard = 0
        while !Task.isCancelled {
            do {
                // Again and again: a machine that has fallen silent shows only when it does not answer.
                _ = try await connection.run(
                    "LISTEN \(PostgreSQLAnnouncements.channel)", within: Self.probeInterval)
                let opening = await connection.openings
                if opening != heard {
                    // Nothing was heard while there was no connection.
                    try await signals.signalMissed {
                        try await Self.lastSerials(of: $0, on: connection)
                    }
                    // A connection that was opened for the query does not listen.
                    guard await connection.openings == opening else { continue }
                    heard = opening
                }
                let end = ContinuousClock.now + Self.probeInterval
                while ContinuousClock.now < end, !Task.isCancelled {
                    let payloads = try await connection.notifications(
                        within: Self.notificationWait)
                    for account in payloads {
                        signals.signal(AccountSignals.Digest(received: account))
                    }
                }
            } catch {
                await connection.close()
                try? await Task.sleep(for: Self.reconnectWait)
            }
        }
        await connection.close()
    }

    package func lastSerials(of accounts: [String]) async throws -> [EntityID: Int64] {
        try await pool.withConnection { try await Self.lastSerials(of: accounts, on: $0) }
    }

    private static func lastSerials(
        of accounts: [String], on connection: PostgreSQLConnection
    ) async throws -> [EntityID: Int64] {
        // As JSON, because names may have any character. An account with U+0000 has no events here.
        var names = Array("[".utf8)
        for account in accounts where !account.utf8.contains(0) {
            if names.count > 1 { names.append(UInt8(ascii: ",")) }
            JSONText.append(account, to: &names)
        }
        names.append(UInt8(ascii: "]"))
        let json = String(decoding: names, as: UTF8.self)
        let rows = try await connection.run(
            """
            SELECT a.account, a.last_serial FROM daybook.account a
            WHERE a.account IN (SELECT jsonb_array_elements_text($1::jsonb))
            """, [json])
        var serials: [EntityID: Int64] = [:]
        for row in rows {
            guard row.count == 2, let name = row[0], let serial = row[1].flatMap({ Int64($0) })
            else { continue }
            serials[EntityID(name)] = serial
        }
        return serials
    }
}
