// An export into a file, as an app starts one: off the cooperative pool, with progress and cancellation.
// Spec/operations/logtool.md, TOOL-10.

import LogStorage
import Synchronization

extension EventExport {
    /// How many events are written between two calls of `progress`.
    private static let progressInterval = 1_000

    /// Writes the selected events of a log into a file. Durable on return.
    ///
    /// - Parameters:
    ///   - advice: how to have a file replaced that is there already; nil replaces it.
    ///   - progress: called every 1,000 events with what has been written so far, on another thread.
    /// - Throws: as `ExportFile.init`; `LogError` (`corrupt`) where the log is damaged: everything
    ///   before the damage is in the file, unless there was a file already, which then stays;
    ///   `CancellationError`.
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
            // A whole export is worth more than a part of a damaged log.
            if file.replacesFile { file.discard() } else { try file.finish() }
            throw damage
        }
        try file.finish()
        progress?(summary)
        return summary
    }
}
