// logtool export and import with --layout: the content that a log holds, as a folder.
// Spec/operations/logtool.md, TOOL-30.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

/// The forms of a folder.
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
            // What is missing now may be in the folder that is there.
            guard try summary.leftOut.isEmpty || !folder.check() else {
                Self.tell(summary)
                Message.error("\(destination) was left as it is: it may hold what is missing here")
                throw Exit.badData
            }
            leftover = try folder.finish()
        } catch {
            folder.discard()
            throw error
        }
        var row = ViewRow()
        row.add("cities", summary.cities)
        row.add("languages", summary.languages)
        row.add("pages", summary.pages)
        row.add("resources", summary.resources)
        row.add("bytes", summary.bytes)
        RowWriter.writeSummary(row, output)
        Self.tell(summary)
        if let leftover { Message.error(leftover) }
        guard summary.leftOut.isEmpty else { throw Exit.badData }
        guard leftover == nil else { throw Exit.io }
    }

    private static func tell(_ summary: ContentLayoutWriter.Summary) {
        for text in summary.leftOut { Message.error("left out: \(text)") }
    }

    private func write(
        _ directory: String, _ folder: ExportFolder
    ) throws -> ContentLayoutWriter.Summary {
        // Compaction may take out what was just read about.
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
            if let tail = outcome.tornTail { Message.note(Inspect.words(tail)) }
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
            .io, path: directory, "the log changed whenever it was read. Try again")
    }

    /// Records what a folder says and a log does not.
    func `import`(
        _ directory: String, from source: String, account: String?, _ output: OutputFormat
    ) async throws {
        // First: what cannot be read must not leave a new log.
        let folder = try ContentLayoutReader(source, POSIXFileSystem())
        let result = try await ToolStore.closing(
            ToolStore.open(directory, account: account, create: true)
        ) { store in
            try await ContentCommands(store, FileStore(store, collects: false))
                .importFolder(folder)
        }
        for note in result.notes { Message.note("passed over: \(note)") }
        var row = ViewRow()
        row.add("appended", result.events)
        row.add("cities", result.cities)
        row.add("pages", result.pages)
        row.add("resources", result.resources)
        row.add("passedOver", result.notes.count)
        RowWriter.writeSummary(row, output)
    }
}
