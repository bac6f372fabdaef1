// logtool verify: reads everything and says what is not right.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reads everything and prints what is not right.",
        discussion: """
            Prints one finding a row, with segment, byte offset and positions; exit 1 if there is \
            any. An unfinished write at the very end is no finding: the next writer sets it aside.

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
        let found = try Verification(of: directory, CountingFileSystem(progress)) {
            progress.update($0)
        }
        let (summary, checkpoints, findings) = (found.summary, found.checkpoints, found.findings)
        progress.finish()
        var writer = RowWriter(output.format)
        for finding in findings {
            var row = ViewRow()
            row.add("segment", finding.segment)
            row.add("offset", raw: finding.offset.map { Array("\($0)".utf8) })
            row.add("from", raw: finding.positions.map { Array("\($0.lowerBound)".utf8) })
            row.add("to", raw: finding.positions.map { Array("\($0.upperBound)".utf8) })
            row.add("code", finding.code)
            row.add("detail", finding.detail)
            writer.write(row)
        }
        writer.finish()
        if let tail = summary.tornTail { Message.note(Inspect.words(tail)) }
        for note in checkpoints.notes { Message.note("note: \(note)") }
        Message.note(
            "\(summary.events) events in \(summary.segments) segments"
                + (checkpoints.compared == 0
                    ? "" : ", \(checkpoints.compared) stored states compared with a rebuild")
                + ", " + (findings.isEmpty ? "all in order" : "\(findings.count) findings"))
        guard !findings.isEmpty else { return }
        Message.note(Message.repairHint)
        throw Exit.findings
    }
}
