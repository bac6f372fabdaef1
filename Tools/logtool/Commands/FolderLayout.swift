// logtool export and import with --layout: the cached content of a log as a folder.
// Spec/operations/logtool.md, TOOL-30.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

/// The layouts of a content folder.
enum FolderLayout: String, ExpressibleByArgument, CaseIterable {
    case contentCache = "content-cache"

    /// Writes the content of a log into a folder.
    func export(
        _ directory: String, to destination: String, force: Bool, _ output: OutputFormat
    ) throws {
        let folder = try ExportFolder(destination, force: force, log: directory)
        let summary: ContentLayoutWriter.Summary
        let leftover: String?
        do {
            summary = try write(directory, folder)
            // The existing folder may contain the content that is missing now.
            guard try summary.leftOut.isEmpty || !folder.check() else {
                Self.reportLeftOut(summary)
                Message.error(
                    "\(destination) was left as it is: it may contain what is missing now"
                )
                throw Exit.badData
            }
            leftover = try folder.finish()
        } catch {
            folder.discard()
            throw error
        }
        Stdout.note(effect: "the export is complete")
        var row = ViewRow()
        row.appendField("cities", summary.cities)
        row.appendField("languages", summary.languages)
        row.appendField("pages", summary.pages)
        row.appendField("resources", summary.resources)
        row.appendField("bytes", summary.bytes)
        RowWriter.writeSummary(row, output)
        Self.reportLeftOut(summary)
        if let leftover { Message.error(leftover) }
        guard summary.leftOut.isEmpty else { throw Exit.badData }
        guard leftover == nil else { throw Exit.io }
    }

    private static func reportLeftOut(_ summary: ContentLayoutWriter.Summary) {
        for text in summary.leftOut { Message.error("left out: \(text)") }
    }

    private func write(
        _ directory: String, _ folder: ExportFolder
    ) throws -> ContentLayoutWriter.Summary {
        // Repeated if compaction removes an event between the two passes.
        for _ in 1...3 {
            let progress = Progress(
                "exported", of: .bytes(2 * LogReader(directory).bytesToRead()))
            defer { progress.finish() }
            let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
            let catalogue = OfflineModel.catalogue
            let ((pages, content), outcome) = try reader.fold(
                catalogue: catalogue, from: { (PagesView(), ContentView()) }
            ) { state, event in
                try Task.checkCancellation()
                let event = catalogue.newestForm(of: event)
                state.0.fold(event)
                state.1.fold(event)
                progress.update(Int(clamping: event.position.rawValue))
            }
            if let tail = outcome.tornTail { Message.note(Message.text(for: tail)) }
            let fileSystem = POSIXFileSystem()
            let writer = ContentLayoutWriter(pages, content, to: folder.temporary, fileSystem)
            let summary = try writer.write { body in
                try reader.forEachEvent(catalogue: catalogue) { event in
                    try body(catalogue.newestForm(of: event))
                    return true
                }
            } file: {
                try ContentLayout.content(of: $0, in: directory, fileSystem)
            }
            if let summary { return summary }
            folder.discard()
        }
        throw LogError(
            .io, path: directory, "the log was compacted during each of three reads; try again")
    }

    /// Records the content of a folder that a log does not have yet.
    func `import`(
        _ directory: String, from source: String, account: String?, _ output: OutputFormat
    ) async throws {
        // Before the log is opened: an unreadable folder must not create a new log.
        let folder = try ContentLayoutReader(source, POSIXFileSystem())
        let result = try await ToolStore.closing(
            ToolStore.open(directory, account: account, create: true)
        ) { store in
            let before = await store.lastDurable
            do {
                return try await ContentCommands(store, FileStore(store, collects: false))
                    .importFolder(folder)
            } catch {
                let recorded = Int(clamping: await store.lastDurable.rawValue - before.rawValue)
                Message.note(
                    "recorded before the error: \(recorded.counted("event")); import the folder again to continue"
                )
                throw error
            }
        }
        Stdout.note(effect: "the import is complete: \(result.events.counted("event")) recorded")
        for note in result.notes { Message.note("passed over: \(note)") }
        var row = ViewRow()
        row.appendField("appended", result.events)
        row.appendField("cities", result.cities)
        row.appendField("pages", result.pages)
        row.appendField("resources", result.resources)
        row.appendField("passedOver", result.notes.count)
        RowWriter.writeSummary(row, output)
    }
}
