// logtool companions: lists the spools of companions beside a log, and absorbs them.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct Companions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists what companions have recorded beside a log, or absorbs it.",
        discussion: """
            Widgets, extensions and other processes that are not the log's owner record events in \
            spools, small logs in LOG/companions. Lists the spools, also while the owner has the log \
            open; exit 1 if one of them is never absorbed by itself: it belongs to another log \
            or account, was set aside, or cannot be read.

            --absorb records their events in the log, with the log's lock, and deletes each spool \
            whose events are all recorded. A spool is a log: verify and export read it.

            Example: logtool companions ./log --absorb
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Flag(help: "Record the events of the spools in the log.")
    var absorb = false
    @OptionGroup var ask: AskOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await Exit.mapping {
            guard absorb else { return try list() }
            try await ask.opening(directory) { try await absorbAll() }
        }
    }

    private func list() throws {
        let spools = try CompanionSpool.all(of: directory)
        var writer = RowWriter(output.format)
        for spool in spools {
            var row = ViewRow()
            row.appendField("spool", spool.name)
            row.appendField("companion", spool.companion)
            row.appendField("events", spool.backlog?.events ?? 0)
            row.appendField("bytes", spool.backlog?.bytes ?? 0)
            row.appendField("state", spool.state.name)
            row.appendField("reason", spool.state.reason)
            writer.write(row)
        }
        writer.finish()
        guard spools.allSatisfy({ $0.state == .waiting }) else { throw Exit.findings }
    }

    private func absorbAll() async throws {
        let store = try await ToolStore.open(directory)
        let report = try await ToolStore.closing(store) { try await $0.absorbCompanions() }
        Stdout.note(effect: "the events are recorded")
        var row = ViewRow()
        row.appendField("absorbed", report.absorbed)
        row.appendField("known", report.known)
        row.appendField("deleted", report.deleted)
        row.appendField("quarantined", report.quarantined)
        row.appendField("busy", report.busy.count)
        row.appendField("left", report.left.count)
        RowWriter.writeSummary(row, output.format)
        for refused in report.refused { Message.note("the log refuses the event \(refused)") }
        guard report.left.isEmpty, report.quarantined == 0 else { throw Exit.findings }
        guard report.busy.isEmpty else { throw Exit.unavailable }
    }
}
