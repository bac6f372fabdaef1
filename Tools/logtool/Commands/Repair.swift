// logtool repair: repairs a damaged log; without --yes it only prints the steps.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Repair: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Repairs a damaged log; without --yes it only prints the steps.",
        discussion: """
            Prints one step a row: rewrite (a segment is rewritten with all its intact lines), \
            create (an empty segment for lost positions), quarantine (an unusable file is moved \
            away). Nothing is deleted: every file that is changed is first copied to quarantine/ \
            in the log's folder. Lines keep their positions; lost positions are never used again.

            Without --yes: 1 if there is something to repair, 0 if the log is sound. No writer may \
            have the log open.

            Example: logtool repair ./log --yes
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Flag(help: "Do the repair.")
    var yes = false
    @Option(help: "The log's account; only used if no segment names it.")
    var account: String?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard account != "" else { throw ValidationError("--account needs a name.") }
    }

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        let total = LogReader(directory).bytesToRead(verifying: true)
        let progress = Progress("examined", unit: nil, of: .bytes(total))
        defer { progress.finish() }
        // If verification fails, the plan is based on the files alone.
        let verification = try? Verification(of: directory, POSIXFileSystem()) { _ in }
        let repair = LogRepair(
            directory, account: account, keptStates: LogRepair.statesOfStores,
            wrongCheckpoints: verification?.wrongCheckpoints ?? [:],
            environment: LogEnvironment(fileSystem: CountingFileSystem(progress)))
        let report = yes ? try repair.repair() : try repair.plan()
        progress.finish()
        if yes { Stdout.note(effect: "the repair is complete") }
        var writer = RowWriter(output.format)
        for action in report.actions { writer.write(Self.row(action)) }
        writer.finish()
        for range in report.actions.flatMap(\.secondWriter) {
            Message.note(
                "two writers have written \(range.text) at the same time; the events of the second are kept in the quarantined file only"
            )
        }
        if let missing = report.missing { Message.note(Message.text(forMissing: missing)) }
        guard !report.actions.isEmpty else {
            return Message.note("the log is sound; there is nothing to repair")
        }
        Message.note(Message.text(for: report))
        guard yes else {
            Message.note("nothing was changed; add --yes to do it")
            throw Exit.findings
        }
        Message.note(
            "the log is repaired; the replaced files are kept in \(directory)/quarantine")
    }

    private static func row(_ action: RepairAction) -> ViewRow {
        var row = ViewRow()
        row.appendField("segment", action.name)
        row.appendField("action", action.verb.rawValue)
        row.appendField("from", raw: action.positions.map { Array("\($0.lowerBound)".utf8) })
        row.appendField("to", raw: action.positions.map { Array("\($0.upperBound)".utf8) })
        let lost = action.lost.reduce(0) { $0 + $1.lowerBound.distance(to: $1.upperBound) + 1 }
        row.appendField("lost", raw: action.endIsKnown ? Array("\(lost)".utf8) : nil)
        row.appendField("bytes", raw: action.bytes.map { Array("\($0)".utf8) })
        row.appendField("quarantinedAs", action.quarantinedAs)
        row.appendField("reason", action.reason)
        return row
    }
}
