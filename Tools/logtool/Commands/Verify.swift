// logtool verify: verifies all data of a log and prints the findings.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Verifies all data of a log and prints the findings.",
        discussion: """
            Prints one finding a row, with segment, byte offset and positions; exit 1 if there is \
            any. Findings that only follow from others come last and name the damaged file as \
            their cause. An unfinished write at the very end is no finding: the next writer sets \
            it aside.

            Example: logtool verify ./log
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        let progress = Progress(
            "verified", of: .bytes(LogReader(directory).bytesToRead(verifying: true)))
        let verification = try Verification(of: directory, CountingFileSystem(progress)) {
            progress.update($0)
        }
        let (summary, checkpoints) = (verification.summary, verification.checkpoints)
        let findings = verification.findings
        progress.finish()
        var writer = RowWriter(output.format)
        for finding in findings {
            var row = ViewRow()
            row.appendField("segment", finding.segment)
            row.appendField("offset", raw: finding.offset.map { Array("\($0)".utf8) })
            row.appendField("from", raw: finding.positions.map { Array("\($0.lowerBound)".utf8) })
            row.appendField("to", raw: finding.positions.map { Array("\($0.upperBound)".utf8) })
            row.appendField("code", finding.code)
            row.appendField("detail", finding.detail)
            row.appendField("cause", finding.cause)
            writer.write(row)
        }
        writer.finish()
        if let tail = summary.tornTail { Message.note(Message.text(for: tail)) }
        if let missing = summary.missing { Message.note(Message.text(forMissing: missing)) }
        for note in checkpoints.notes { Message.note("note: \(note)") }
        Message.note(
            "\(summary.events) events in \(summary.segments) segments"
                + (checkpoints.compared == 0
                    ? "" : ", \(checkpoints.compared) stored states compared with a rebuild")
                + ", " + Self.count(findings))
        guard !findings.isEmpty else { return }
        if let forecast = try? LogRepair(directory).forecast(), !forecast.actions.isEmpty {
            Message.note("after a repair: " + Message.text(for: forecast))
        }
        Message.note(Message.repairHint)
        throw Exit.findings
    }

    private static func count(_ findings: [Finding]) -> String {
        guard !findings.isEmpty else { return "no findings" }
        let consequences = findings.count { $0.cause != nil }
        return findings.count.counted("finding")
            + (consequences == 0 ? "" : ", \(consequences) of which follow from the others")
    }
}
