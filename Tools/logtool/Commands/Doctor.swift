// logtool doctor: examines a log and prints what needs attention; writes a report for a support mail.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Examines a log: damage, permissions, space, events that are not sent.",
        discussion: """
            Prints one finding a row, with advice; exit 1 if there is any. Reads without the log's \
            lock, so a writer may continue, and changes nothing.

            With --bundle it also writes a report that can be attached to a support mail: sizes, \
            counts, times and the findings as JSON, without what the events contain. \
            Spec/operations/diagnostics.md says what each member is.

            Example: logtool doctor ./log --bundle report.json
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Option(help: "Write the report to this file; only its owner may read it.", completion: .file())
    var bundle: String?
    @Flag(help: "Replace the file of --bundle if it exists.")
    var force = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard bundle != "" else { throw ValidationError("The file of --bundle needs a name.") }
        guard bundle != nil || !force else {
            throw ValidationError("--force replaces the file of --bundle.")
        }
    }

    func run() async throws {
        try await Exit.mapping { try work() }
    }

    private func work() throws {
        // Created first: a path that cannot be used is an error before the log is read.
        let file = try bundle.map {
            try ExportFile(
                $0, force ? .allowed : .refused("replace it with --force"), log: directory)
        }
        defer { file?.discard() }
        let progress = Progress(
            "examined", unit: nil, of: .bytes(2 * LogReader(directory).bytesToRead()))
        let report = try DiagnosticReport(
            of: directory, CountingFileSystem(progress), catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self],
            now: Timestamp(Date()).milliseconds)
        progress.finish()
        var writer = RowWriter(output.format)
        for finding in report.findings {
            var row = ViewRow()
            row.appendField("code", finding.code.rawValue)
            row.appendField("detail", finding.detail)
            row.appendField("advice", finding.advice)
            writer.write(row)
        }
        writer.finish()
        if let file, let bundle {
            try file.write([UInt8](try report.json()) + [UInt8(ascii: "\n")])
            try file.finish()
            Message.note("the report is in \(bundle); it has nothing of what the events contain")
        }
        let count = report.findings.count
        Message.note(count == 0 ? "no findings" : count.counted("finding"))
        if count > 0 { throw Exit.findings }
    }
}
