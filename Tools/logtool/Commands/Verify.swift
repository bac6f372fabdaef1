// logtool verify: reads everything and says what is not right.

import ArgumentParser
import Daybook
import Foundation
import LogFormat
import LogStorage

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reads everything and prints what is not right.",
        discussion: """
            Prints one finding a row, with segment, byte offset and positions; exit 1 if there is \
            any. An unfinished write at the very end is no finding: the next writer sets it aside.

            Example: logtool verify ./log
            """)

    @Argument(help: "The log's folder.")
    var directory: String
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        let progress = Progress(
            "verified", of: .bytes(CountingFileSystem.bytes(of: directory, verifying: true)))
        var count = 0
        var checkpoints = CheckpointVerifier(
            directory, catalogue: OfflineModel.catalogue, views: OfflineModel.views + [Outbox.self],
            compactedThrough: (try? LogReader(directory).compactedThrough()) ?? .zero)
        let summary = try LogVerifier(
            directory, fileSystem: CountingFileSystem(progress)
        ).verify { prefix, line in
            count += 1
            progress.update(count)
            do throws(EventError) {
                checkpoints.fold(try LineDecoder.event(line, prefix, OfflineModel.catalogue))
                return nil
            } catch { return "the line is not an event: \(error.detail)" }
        }
        checkpoints.finish(at: summary.last)
        progress.finish()
        var writer = RowWriter(output.format)
        let findings = summary.findings + checkpoints.findings
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
