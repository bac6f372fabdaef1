// logtool export with --layout: a folder of cached content, or a database of SQLite.
// Spec/operations/logtool.md, TOOL-30 and TOOL-53.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

/// The layouts of an export.
enum ExportLayout: String, ExpressibleByArgument, CaseIterable {
    case contentCache = "content-cache"
    case sqlite

    /// Writes a log in this layout.
    func export(
        _ directory: String, to destination: String, force: Bool, _ output: OutputFormat
    ) throws {
        switch self {
        case .contentCache:
            try FolderLayout.contentCache.export(directory, to: destination, force: force, output)
        case .sqlite: try exportDatabase(directory, to: destination, force: force, output)
        }
    }

    private func exportDatabase(
        _ directory: String, to destination: String, force: Bool, _ output: OutputFormat
    ) throws {
        _ = try LogReader(directory).files()
        let file = try ExportFile(
            destination, force ? .allowed : .refused("add --force"), log: directory)
        // The log is read for the fold, for the events, and for the values of three views that only events contain.
        let progress = Progress("exported", of: .bytes(5 * LogReader(directory).bytesToRead()))
        defer { progress.finish() }
        let last: Position
        let tables: Int
        do {
            let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
            let database = try SQLiteExport(file.temporary, namedInErrors: destination)
            (last, tables) = try LogTables.write(to: database, reader, progress)
            try database.finish()
            try Task.checkCancellation()
        } catch {
            file.discard()
            throw error
        }
        progress.finish()
        try file.finish()
        Stdout.note(effect: "the export is complete")
        let size = try FileManager.default.attributesOfItem(atPath: destination)[.size] as? Int
        var row = ViewRow()
        row.appendField("tables", tables)
        row.appendField("last", Int(clamping: last.rawValue))
        row.appendField("bytes", size ?? 0)
        RowWriter.writeSummary(row, output)
    }
}
