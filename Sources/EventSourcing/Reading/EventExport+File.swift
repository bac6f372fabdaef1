// An export to a file, as an app starts one: outside the cooperative pool, with progress and cancellation.
// Spec/operations/logtool.md, TOOL-10.

import LogStorage
import Synchronization

extension EventExport {
    /// The number of events between two calls of `progress`.
    private static let progressInterval = 1_000

    /// Writes the selected events of a log to a file. Durable on return.
    ///
    /// - Parameters:
    ///   - advice: how to allow replacing an existing file, for the error; nil to replace it.
    ///   - progress: called every 1,000 events with the summary so far, on another thread.
    /// - Throws: as `ExportFile.init`; `LogError` (`corrupt`) if the log is damaged: the file then has all
    ///   events before the damage, but an existing file is not replaced; `CancellationError`.
    /// - Complexity: O(bytes of the log from `from` on); memory for one frame.
    package func write(
        logAt directory: String, _ fileSystem: any FileSystem, to path: String,
        replacing advice: String?, progress: (@Sendable (ExportSummary) -> Void)?
    ) async throws -> ExportSummary {
        let isCancelled = Atomic(false)
        return try await withTaskCancellationHandler {
            try await BlockingWork.run {
                try write(
                    LogReader(directory, fileSystem: fileSystem),
                    to: ExportFile(
                        path, advice.map { .refused($0) } ?? .allowed, log: directory),
                    isCancelled: { isCancelled.load(ordering: .relaxed) }, progress)
            }
        } onCancel: {
            isCancelled.store(true, ordering: .relaxed)
        }
    }

    private func write(
        _ reader: LogReader, to file: ExportFile, isCancelled: () -> Bool,
        _ progress: (@Sendable (ExportSummary) -> Void)?
    ) throws -> ExportSummary {
        var summary = ExportSummary()
        var damage: LogError?
        do {
            try write(reader, &summary, isCancelled: isCancelled) { line, summary in
                try file.write(line)
                if summary.events.isMultiple(of: Self.progressInterval) { progress?(summary) }
            }
        } catch let error as LogError where error.code == .corrupt {
            damage = error
        } catch {
            file.discard()
            throw error
        }
        if let damage {
            // An existing, complete export is not replaced by a partial one.
            if file.replacesFile { file.discard() } else { try file.finish() }
            throw damage
        }
        try file.finish()
        progress?(summary)
        return summary
    }
}
