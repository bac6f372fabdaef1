// logtool backup: copies a log into a new folder, also while a writer has it open.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copies a log into a new folder that can be opened as a log.",
        discussion: """
            Reads without the log's lock, so a writer may continue: the backup has every event that \
            was recorded before the command began, and perhaps later ones. It has the segments, \
            the stored states of views and the folder files; not lock, quarantine, reserve and \
            files that are no part of the log. A writer that opens the backup writes under \
            another incarnation.

            The folder appears under its name when it is whole and on the disk, and only its \
            owner may read it. Where the file system can, files that no longer change are cloned \
            or linked and take no space.

            To restore a backup, move the log's folder away and copy the backup to its place.

            Example: logtool backup ./log /media/backups/log-2026-03-01
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Argument(
        help: "The folder of the backup, which must not exist; its parent must.",
        completion: .directory)
    var destination: String
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard !destination.isEmpty else { throw ValidationError("The folder needs a name.") }
    }

    func run() async throws {
        try await Exit.mapping {
            do {
                try await Interruption.result { try await work() }.get()
            } catch is CancellationError {
                Message.error("interrupted; nothing was written")
                throw Exit.interrupted
            }
        }
    }

    private func work() async throws {
        let total = LogReader(directory).bytesToRead()
        let progress = Progress("copied", unit: nil, of: .bytes(total))
        defer { progress.finish() }
        let summary = try await LogBackup.run(
            of: directory, to: destination, LogEnvironment()
        ) { part in progress.update(0, bytes: Int(part * Double(total))) }
        progress.finish()
        Stdout.note(effect: "the backup is complete")
        var row = ViewRow()
        row.appendField("events", summary.events)
        row.appendField("last", Int(clamping: summary.last.rawValue))
        row.appendField("segments", summary.segments)
        row.appendField("files", summary.files)
        row.appendField("bytes", summary.bytes)
        row.appendField("bytesCopied", summary.bytesCopied)
        RowWriter.writeSummary(row, output.format)
    }
}
