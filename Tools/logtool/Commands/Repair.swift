// logtool repair: puts a damaged log in order again, after saying what it would do.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Repair: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Puts a damaged log in order again; without --yes it only says how.",
        discussion: """
            Prints one step a row: rewrite (a segment is written anew with everything that is \
            intact), create (an empty segment for positions that are lost), quarantine (a file \
            that is of no use is taken out). Nothing is deleted: every file that is changed is \
            first copied to quarantine/ in the log's folder. Lines keep their positions; lost ones \
            are never given to other lines.

            Without --yes: 1 if there is something to repair, 0 if the log is sound. No writer may \
            have the log open.

            Example: logtool repair ./log --yes
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Flag(help: "Do it.")
    var yes = false
    @Option(help: "Whose log it is; only used if no segment says so any more.")
    var account: String?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard account != "" else { throw ValidationError("--account takes a name.") }
    }

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        let total = LogReader(directory).bytesToRead(verifying: true)
        let progress = Progress("examined", unit: nil, of: .bytes(total))
        defer { progress.finish() }
        // What cannot be verified at all is judged by its files alone.
        let found = try? Verification(of: directory, POSIXFileSystem()) { _ in }
        let repair = LogRepair(
            directory, account: account, keptStates: LogRepair.statesOfStores,
            wrongCheckpoints: found?.wrongCheckpoints ?? [:],
            environment: LogEnvironment(fileSystem: CountingFileSystem(progress)))
        let report = yes ? try repair.repair() : try repair.plan()
        progress.finish()
        var writer = RowWriter(output.format)
        for action in report.actions { writer.write(Self.row(action)) }
        writer.finish()
        guard !report.actions.isEmpty else {
            return Message.note("the log is sound; there is nothing to repair")
        }
        Message.note(Self.loss(report.actions))
        guard yes else {
            Message.note("nothing was changed; add --yes to do it")
            throw Exit.findings
        }
        Message.note(
            "the log is in order again; what was replaced is kept in \(directory)/quarantine")
    }

    private static func row(_ action: RepairAction) -> ViewRow {
        var row = ViewRow()
        row.add("segment", action.name)
        row.add("action", action.verb.rawValue)
        row.add("from", raw: action.positions.map { Array("\($0.lowerBound)".utf8) })
        row.add("to", raw: action.positions.map { Array("\($0.upperBound)".utf8) })
        let lost = action.lost.reduce(0) { $0 + $1.lowerBound.distance(to: $1.upperBound) + 1 }
        row.add("lost", raw: action.endIsKnown ? Array("\(lost)".utf8) : nil)
        row.add("bytes", raw: action.bytes.map { Array("\($0)".utf8) })
        row.add("quarantinedAs", action.quarantinedAs)
        row.add("reason", action.reason)
        return row
    }

    private static func loss(_ actions: [RepairAction]) -> String {
        var ranges: [String] = []
        for action in actions {
            ranges += action.lost.map {
                $0.lowerBound == $0.upperBound
                    ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)"
            }
            if !action.endIsKnown, !action.lost.isEmpty {
                ranges.append(ranges.removeLast() + " at most")
            }
        }
        return ranges.isEmpty
            ? "no position is lost"
            : "positions lost to damage, not to compaction: \(ranges.joined(separator: ", "))"
    }
}
