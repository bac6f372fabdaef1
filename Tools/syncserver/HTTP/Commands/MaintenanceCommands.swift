// The commands that look after a database: `migrate`, `erase`, `prune`. All of them may be used
// while a server is at work on the same database. Spec/operations/operating.md.

import ArgumentParser
import Foundation
import SyncServerStorage

/// `syncserver migrate`.
struct Migrate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Bring a database up to date, and end.",
        discussion: """
            A server does the same when it starts. There is no way back: take a backup before.
            """)

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
            Take the account's tokens out of the token file first, or its devices begin anew. \
            Backups keep what they hold. An SQLite file is rewritten: it needs room for a copy, and \
            a server that uses it cannot store events meanwhile. Exit code 0 says that nothing is \
            left in the files; anything else says what is.
            """)

    @OptionGroup var storage: StorageOptions

    @Option(help: "The account.")
    var account: String

    @Flag(help: "Really erase. Without it, the command only counts.")
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
        abstract: "Erase the accounts that no device has used for a time.",
        discussion: """
            Accounts are erased whole: a device that is new gets everything or nothing. An account \
            is used when a device sends to it or reads from it.
            """)

    @OptionGroup var storage: StorageOptions

    @Option(help: ArgumentHelp("How long, in days: 400d.", valueName: "days"))
    var unusedFor: Days

    @Flag(help: "Really erase. Without it, the command only names the accounts.")
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
                // It may have come back since it was listed: what it was told would be untrue.
                if yes {
                    guard try await opened.erase(account: account, unusedSince: limit)
                    else { continue }
                    isAnyErased = true
                }
                try SyncServer.print(account)
            }
        } catch { failures.append(SyncServer.failure(error)) }
        do {
            // Once for all accounts, also for those that were erased before one failed. Does nothing
            // if no erasure has left traces, this one or an earlier one.
            if yes, isAnyErased || failures.isEmpty { try await opened.removeTraces() }
            try opened.close()
        } catch { failures.append(SyncServer.failure(error)) }
        if let failure = failures.first { throw failure }
        if !yes, !accounts.isEmpty {
            throw SyncServer.failure("nothing was erased: give --yes to do it", .refused)
        }
    }
}

/// How long to wait for a server.
struct LockOptions: ParsableArguments {
    @Option(help: "Seconds to wait for a server that keeps an SQLite file busy.")
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
