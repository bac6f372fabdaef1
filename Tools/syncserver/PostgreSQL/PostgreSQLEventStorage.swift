// The storage at scale: a PostgreSQL database that any number of servers share. The SQL function
// append_batch decides the verdicts. Spec/operations/postgresql.md.

import EventSourcing
import Foundation
import SyncServerStorage
import Synchronization

/// Events of accounts in a PostgreSQL database.
package final class PostgreSQLEventStorage: EventStorage {
    package let signals = AccountSignals()
    package let restores: Restores
    let location: PostgreSQLLocation
    let pool: PostgreSQLPool
    private let announcements: PostgreSQLAnnouncements
    private let catalogue: EventCatalogue
    private let uses = AccessLog()
    /// The time when a batch last failed because the disk was full.
    private let lastNoSpace = Mutex<ContinuousClock.Instant?>(nil)

    /// Opens a database.
    ///
    /// - Parameters:
    ///   - catalogue: the rules by which batches are read, for comparing contents.
    ///   - migrates: whether missing migrations are run; if false, an outdated schema is refused.
    /// - Throws: `StorageError`.
    package init(
        _ location: PostgreSQLLocation, catalogue: EventCatalogue, migrates: Bool = true
    ) async throws {
        self.catalogue = catalogue
        self.location = location
        pool = PostgreSQLPool(location)
        announcements = PostgreSQLAnnouncements(pool)
        restores = try await pool.withConnection { connection in
            if migrates {
                try await PostgreSQLSchema.migrate(connection)
            } else {
                let version = try await PostgreSQLSchema.version(connection)
                guard version == PostgreSQLSchema.newest else {
                    throw StorageError(
                        .wrongDatabase,
                        "the schema is at step \(version), and this server needs step "
                            + "\(PostgreSQLSchema.newest): run syncserver migrate")
                }
            }
            let rows = try await connection.run(
                "SELECT generation, restored_to FROM daybook.restore ORDER BY number")
            let names = try await connection.run("SELECT name FROM daybook.server")
            return Restores(
                rows.compactMap { row in
                    guard let generation = row[0], let time = row[1].flatMap({ Int64($0) })
                    else { return nil }
                    return Restores.Restore(
                        generation: generation, restoredTo: Timestamp(milliseconds: time))
                }, database: names.first?[0])
        }
    }

    /// Runs the missing migrations of a database.
    ///
    /// - Returns: the numbers of the migrations that were run.
    /// - Throws: `StorageError`.
    package static func migrate(_ location: PostgreSQLLocation) async throws -> [Int] {
        try await PostgreSQLPool(location).withConnection {
            try await PostgreSQLSchema.migrate($0)
        }
    }

    package func append(
        _ events: [ReceivedEvent], account: String, check: @escaping @Sendable () throws -> Void
    ) async throws -> [EventVerdict] {
        let account = try Self.checked(account)
        await recordUse(of: account)
        let batch = PostgreSQLBatch(events)
        let arguments = batch.arguments
        let rows: [[String?]]
        do {
            rows = try await pool.withConnection {
                try check()
                return try await $0.run(PostgreSQLBatch.call, [account], arrays: arguments)
            }
        } catch let error as StorageError where error.code == .noSpace {
            lastNoSpace.withLock { $0 = .now }
            throw error
        }
        lastNoSpace.withLock { $0 = nil }
        var verdicts = try batch.verdicts(rows)
        if verdicts.contains(where: { $0.status == .applied }) {
            let digest = AccountSignals.Digest(account: account)
            signals.signal(digest)
            // The reply does not wait for it.
            Task { [announcements] in await announcements.announce(digest) }
        }
        for (index, event) in events.enumerated() where verdicts[index].code == .idReused {
            guard let content = event.content,
                let duplicate = try await duplicate(content, account)
            else { continue }
            verdicts[index] = duplicate
        }
        return verdicts
    }

    /// Compares an event with the stored one in Swift, after SQL has found them different: jsonb cannot
    /// represent U+0000, unpaired surrogates and numbers outside of numeric.
    ///
    /// - Returns: the verdict `duplicate`; nil if the contents differ.
    private func duplicate(
        _ content: ReceivedEvent.Content, _ account: String
    ) async throws -> EventVerdict? {
        let id = content.draft.id
        let rows = try await pool.withConnection {
            try await $0.run(
                """
                SELECT v.line, EXISTS (
                    SELECT FROM daybook.event t WHERE t.account = $1
                        AND t.source = $3::uuid AND t.sequence = $4::bigint AND t.id <> v.id)
                FROM daybook.event v WHERE v.account = $1 AND v.id = $2::uuid
                """, [account, id.text, content.source.text, "\(content.sequence)"])
        }
        guard let row = rows.first, let line = row[0],
            content.isSame(asLine: Array(line.utf8), catalogue)
        else { return nil }
        return EventVerdict(id, .duplicate, isForked: row[1] == "t")
    }

    package func page(
        account: String, source: UUID?, after cursor: EventCursor?, limit: Int
    ) async throws -> ServedPage {
        let account = try Self.checked(account)
        let cursor = cursor ?? .start(bySource: source != nil)
        precondition(cursor.isBySource == (source != nil), "a cursor belongs to its order")
        await recordUse(of: account)
        let sequence: Int64
        let serial: Int64
        switch cursor {
        case .serial(let number): (sequence, serial) = (0, number)
        case .sequence(let number, let second): (sequence, serial) = (number, second)
        }
        let rows = try await pool.withConnection {
            try await $0.run(
                """
                SELECT line, serial, sequence,
                    (SELECT last_serial FROM daybook.account WHERE account = $1)
                FROM daybook.read_events($1, $2::uuid, $3::bigint, $4::bigint, $5::integer)
                """,
                [account, source?.text, "\(sequence)", "\(serial)", "\(limit)"])
        }
        var page = ServedPage(after: cursor)
        for row in rows {
            guard row.count == 4, let line = row[0], let serial = row[1].flatMap({ Int64($0) }),
                let sequence = row[2].flatMap({ Int64($0) })
            else {
                throw StorageError(
                    .failed, "PostgreSQL: read_events has not returned what Spec/sql specifies")
            }
            page.append(
                Array(line.utf8),
                source == nil ? .serial(serial) : .sequence(sequence, serial: serial))
        }
        page.setRemaining(until: rows.first?[3].flatMap { Int64($0) } ?? 0)
        return page
    }

    package func checkReadiness() async throws {
        let rows = try await pool.withConnection {
            try await $0.run(
                "SELECT current_setting('transaction_read_only') FROM daybook.serial_floor")
        }
        guard rows.first?[0] == "off" else {
            throw StorageError(.failed, "PostgreSQL: the database is read-only")
        }
        // A full disk shows only when events are stored. Without requests no later batch would clear
        // the failure, so it counts for a limited time.
        let isFull = lastNoSpace.withLock { last in
            last.map { ContinuousClock.now - $0 < Self.noSpaceInterval } ?? false
        }
        if isFull { throw StorageError(.noSpace, "PostgreSQL: no space was left for a batch") }
    }

    /// How long readiness fails after a batch has failed on a full disk.
    private static let noSpaceInterval = Duration.seconds(10)

    package func close() throws { pool.close() }

    /// Records that an account is used today. Ignores failures: the next day's first request tries
    /// again.
    private func recordUse(of account: String) async {
        guard uses.isDue(account) else { return }
        _ = try? await pool.withConnection {
            try await $0.run(
                """
                UPDATE daybook.account SET last_used = current_date
                WHERE account = $1 AND last_used < current_date
                """, [account])
        }
    }

    /// Refuses U+0000 in an account's name. C strings end there, so two accounts would become one.
    static func checked(_ account: String) throws -> String {
        guard !account.utf8.contains(0) else {
            throw StorageError(.failed, "PostgreSQL: an account's name cannot contain U+0000")
        }
        return account
    }
}
