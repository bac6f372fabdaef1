// Kills a real process that appends events and follows them with rows, on real files. After each kill the log has
// every acknowledged event, and the rows are those of the positions that the database records; when the rows have
// reached the end, they are those of the log. Spec/model/sql.md, SQL-2.

import Daybook
import DaybookSQL
import DaybookTestKit
import EventSourcing
import Foundation
import GRDB
import LogStorage

/// A process that is killed a number of times, and the checks after each kill.
package struct RowKills: Sendable {
    private let command: URL
    private let arguments: [String]
    private let kills: Int
    private let seed: UInt64
    private let progress: @Sendable (String) -> Void

    /// The number of kills after which the log and the database begin anew: the checks read all events.
    private static let killsOfFolder = 20

    /// - Parameters:
    ///   - command: the executable that runs a `RowChild`.
    ///   - arguments: the first arguments of the command. The folder, `pool` or `queue`, the version, the number of
    ///     pages (or `-`) and the seed follow.
    ///   - kills: the number of kills.
    ///   - seed: the seed of events, moments and disturbances.
    ///   - progress: called with messages of progress.
    package init(
        _ command: URL, _ arguments: [String], kills: Int, seed: UInt64,
        progress: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.command = command
        self.arguments = arguments
        self.kills = kills
        self.seed = seed
        self.progress = progress
    }

    /// Runs the processes.
    ///
    /// - Returns: the counts by label.
    /// - Throws: `RowHistoryFailure`.
    package func run() async throws -> [String: Int] {
        var choices = Choices(seed: seed)
        var done = 0
        while done < kills {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let count = min(Self.killsOfFolder, kills - done)
            for _ in 0..<count {
                done += 1
                do {
                    try await killOnce(folder.path, done, &choices)
                } catch {
                    throw RowHistoryFailure("kill \(done) (seed \(seed)): \(error)")
                }
                if done.isMultiple(of: 50) { progress("killed \(done) times") }
            }
        }
        return choices.counts
    }

    private func killOnce(
        _ folder: String, _ number: Int, _ choices: inout Choices
    ) async throws {
        let usesPool = number.isMultiple(of: 2)
        let version = choices.int(in: 1...2)
        let isLimited = choices.bool(oneIn: 8)
        let morePages = isLimited ? choices.int(in: 0...4) : nil
        let milliseconds = choices.int(in: 0...60)
        // Some die while they open or recover.
        let waitsForFirst = !choices.bool(oneIn: 4)
        let child =
            arguments + [
                folder, usesPool ? "pool" : "queue", "\(version)",
                morePages.map(String.init) ?? "-", "\(choices.next(below: 1 << 40))",
            ]
        let acknowledged = try await BlockingWork.run { [self] in
            try runChild(child, milliseconds, waitsForFirst: waitsForFirst, mayExit: isLimited)
        }
        choices.count("kills")
        choices.count(usesPool ? "kills with a pool" : "kills with a queue")
        if isLimited { choices.count("kills on a full database") }
        if let acknowledged, acknowledged > 0 {
            choices.count("kills after an acknowledged append")
        }
        let side = try FileManager.default.contentsOfDirectory(atPath: folder)
            .contains { $0.hasPrefix("rows.sqlite-daybook-") }
        if choices.bool(oneIn: 6) { try keep(folder) }
        if side { choices.count("kills while rows are computed anew") }
        try await check(folder, acknowledged ?? 0, version: choices.int(in: 1...2), usesPool)
        try disturb(folder, &choices)
    }

    /// Runs a process, and kills it.
    ///
    /// - Parameter mayExit: true if a full database may end the process before.
    /// - Returns: the last acknowledged position; nil if the process has not begun to append.
    private func runChild(
        _ arguments: [String], _ milliseconds: Int, waitsForFirst: Bool, mayExit: Bool
    ) throws -> UInt64? {
        let process = Process()
        process.executableURL = command
        process.arguments = arguments
        let (pipe, messages) = (Pipe(), Pipe())
        process.standardOutput = pipe
        process.standardError = messages
        try process.run()
        var output = Data()
        if waitsForFirst { output = pipe.fileHandleForReading.availableData }
        usleep(UInt32(milliseconds) * 1_000)
        let wasRunning = process.isRunning
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        if !wasRunning {
            let status = process.terminationStatus
            let message = String(
                decoding: try messages.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            guard mayExit, status == 1, message.contains("database or disk is full") else {
                throw RowHistoryFailure("the process exited with \(status): \(message)")
            }
        }
        output += try pipe.fileHandleForReading.readToEnd() ?? Data()
        // A line that the kill has truncated is none.
        let lines = String(decoding: output, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false
        ).dropLast()
        return lines.last.flatMap { UInt64($0) }
    }

    private func check(
        _ folder: String, _ acknowledged: UInt64, version: Int, _ usesPool: Bool
    ) async throws {
        let store = try await RowFiles.openLog(folder)
        let end = await store.lastDurable
        guard end.rawValue >= acknowledged else {
            throw RowHistoryFailure(
                "the log ends at \(end), but \(acknowledged) was acknowledged")
        }
        let database = try RowFiles.openDatabase(folder, usesPool: usesPool)
        try await HistoryRows.checkRecorded(
            database, RowFiles.log(folder), POSIXFileSystem())
        let rows = try await store.project(into: database, historyProjections(version))
        try await HistoryRows.reach(end, rows)
        try await HistoryRows.checkAll(database, of: store)
        try await store.close()
        await rows.close()
        try database.close()
        let remaining = try FileManager.default.contentsOfDirectory(atPath: folder)
            .filter { $0.hasPrefix("rows.sqlite-daybook-") }
        guard remaining.isEmpty else {
            throw RowHistoryFailure("\(folder) still contains \(remaining)")
        }
    }

    /// Copies the database as a kill has left it, with its journals.
    private func keep(_ folder: String) throws {
        try copyDatabase(from: folder, to: folder + "/kept")
    }

    private func copyDatabase(from source: String, to target: String) throws {
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        for name in try FileManager.default.contentsOfDirectory(atPath: target)
        where name.hasPrefix("rows.sqlite") {
            try FileManager.default.removeItem(atPath: "\(target)/\(name)")
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: source)
        where name.hasPrefix("rows.sqlite") && !name.hasSuffix("-shm") {
            try FileManager.default.copyItem(
                atPath: "\(source)/\(name)", toPath: "\(target)/\(name)")
        }
    }

    /// Deletes the database, or replaces it by the copy that `keep` has made.
    private func disturb(_ folder: String, _ choices: inout Choices) throws {
        let manager = FileManager.default
        let kept = folder + "/kept"
        switch choices.int(in: 0...11) {
        case 0:
            choices.count("database deleted")
            for name in try manager.contentsOfDirectory(atPath: folder)
            where name.hasPrefix("rows.sqlite") {
                try manager.removeItem(atPath: "\(folder)/\(name)")
            }
        case 1, 2:
            guard manager.fileExists(atPath: kept + "/rows.sqlite") else { return }
            choices.count("older database")
            try copyDatabase(from: kept, to: folder)
        default: break
        }
    }
}
