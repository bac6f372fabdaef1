// The maintenance commands: `migrate`, `erase`, `prune`. They may run while a server uses the same
// database. Spec/operations/operating.md.

import ArgumentParser
import EventSourcing
import Foundation
import SyncServerStorage

/// `syncserver migrate`.
struct Migrate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Migrate a database to the newest schema, and exit.",
        discussion:
            "A server does the same when it starts. There is no downgrade: take a backup before.")

    @OptionGroup var storage: StorageOptions

    func run() async throws {
        do {
            let storage = try await storage.openForMaintenance(creating: true)
            let version = try await storage.schemaVersion()
            try storage.close()
            try SyncServer.print("up to date: \(version)")
        } catch { throw SyncServer.failure(error) }
    }
}

/// `syncserver erase`.
struct Erase: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Erase all events of one account.",
        discussion: """
            Remove the account's tokens from the token file first; otherwise its devices create the \
            account again. Backups are not changed. An SQLite file is rewritten: this needs disk \
            space for a copy, and a server that uses the file cannot store events meanwhile. Exit \
            code 0 means that no traces are left in the files; otherwise a message says what is left.
            """)

    @OptionGroup var storage: StorageOptions

    @Option(help: "The account.")
    var account: String

    @Flag(help: "Erase the events. Without this flag, the command only counts them.")
    var yes = false

    @OptionGroup var locks: LockOptions

    func run() async throws {
        let opened: any StorageMaintenance
        let count: Int
        do {
            opened = try await storage.openForMaintenance(
                creating: false, lockSeconds: locks.wait)
            count = try await opened.eventCount(account: account)
        } catch { throw SyncServer.failure(error, "nothing was erased: ") }
        do {
            if yes {
                try await opened.erase(account: account, unusedSince: nil)
                try await opened.removeTraces()
            }
            try opened.close()
            try SyncServer.print("\(yes ? "erased" : "would erase") \(count) events")
            if !yes {
                throw SyncServer.failure("nothing was erased: give --yes to do it", .refused)
            }
        } catch { throw SyncServer.failure(error) }
    }
}

/// `syncserver prune`.
struct Prune: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Erase the accounts that no device has used for a number of days.",
        discussion: """
            Accounts are erased as a whole, so that a new device gets all events or none. An account \
            is used when a device sends events to it or reads from it.
            """)

    @OptionGroup var storage: StorageOptions

    @Option(help: ArgumentHelp("The number of days, for example 400d.", valueName: "days"))
    var unusedFor: Days

    @Flag(help: "Erase the accounts. Without this flag, the command only lists them.")
    var yes = false

    @OptionGroup var locks: LockOptions

    func run() async throws {
        let limit = Date(timeIntervalSinceNow: -Double(unusedFor.count) * 86_400)
        let opened: any StorageMaintenance
        let accounts: [String]
        do {
            opened = try await storage.openForMaintenance(
                creating: false, lockSeconds: locks.wait)
            accounts = try await opened.accounts(unusedSince: limit)
        } catch { throw SyncServer.failure(error, "nothing was erased: ") }
        var failures: [any Error] = []
        var isAnyErased = false
        do {
            for account in accounts {
                // The account may have been used since it was listed: then it is kept.
                if yes {
                    guard try await opened.erase(account: account, unusedSince: limit)
                    else { continue }
                    isAnyErased = true
                }
                try SyncServer.print(account)
            }
        } catch { failures.append(SyncServer.failure(error)) }
        do {
            // Once for all accounts, also for those that were erased before a failure. Does nothing if
            // no erasure, also no earlier one, has left traces.
            if yes, isAnyErased || failures.isEmpty { try await opened.removeTraces() }
            try opened.close()
        } catch { failures.append(SyncServer.failure(error)) }
        if let failure = failures.first { throw failure }
        if !yes, !accounts.isEmpty {
            throw SyncServer.failure("nothing was erased: give --yes to do it", .refused)
        }
    }
}

/// `syncserver restored`.
struct Restored: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Record that the database was restored from a backup, before servers use it.",
        discussion: """
            Devices that are ahead of the database then ship again what it has lost, when they next \
            read. A server takes it into account when it starts. Without it, events that were lost \
            stay on the devices, and readers may miss new events.
            """)

    @OptionGroup var storage: StorageOptions

    @Option(
        help: ArgumentHelp(
            "The time of the restored state, for example 2026-03-01T08:30:00Z; an earlier one is "
                + "safe.", valueName: "time"))
    var to: RestoreTime

    @OptionGroup var locks: LockOptions

    func run() async throws {
        do {
            let storage = try await storage.openForMaintenance(
                creating: false, lockSeconds: locks.wait)
            let restore = Restores.Restore(to: to.time)
            try await storage.record(restore)
            try storage.close()
            try SyncServer.print("restored to \(to.time), generation \(restore.generation)")
        } catch { throw SyncServer.failure(error) }
    }
}

/// A time in the past, as RFC 3339.
struct RestoreTime: ExpressibleByArgument {
    let time: Timestamp

    init?(argument: String) {
        guard let time = Timestamp(argument), time <= Timestamp(Date()) else { return nil }
        self.time = time
    }
}

/// The option for the longest wait for a server's lock.
struct LockOptions: ParsableArguments {
    @Option(help: "Seconds to wait for a server that keeps an SQLite file locked.")
    var wait = 60

    func validate() throws {
        guard (1...3_600).contains(wait) else { throw ValidationError("--wait is 1 to 3,600") }
    }
}

/// A number of days, `400d`.
struct Days: ExpressibleByArgument {
    let count: Int

    init?(argument: String) {
        guard argument.hasSuffix("d"), let count = Int(digits: argument.dropLast()),
            (1...36_500).contains(count)
        else { return nil }
        self.count = count
    }
}
