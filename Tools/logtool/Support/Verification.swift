// Everything that can be verified of a log: its files, and its stored states against its events. Used by
// verify, and by repair for the states. Spec/format/checkpoint.md, CHK-6.

import DaybookOffline
import LogFormat
import LogStorage

/// What verification found.
struct Verification {
    let summary: VerificationSummary
    let checkpoints: CheckpointVerifier

    var findings: [Finding] { summary.findings + checkpoints.findings }

    /// Reads a log.
    ///
    /// - Parameters:
    ///   - fileSystem: what the segments are read through.
    ///   - progress: called with the number of events so far.
    /// - Throws: `LogError` as `LogVerifier.verify(_:)`.
    /// - Complexity: O(bytes).
    init(
        of directory: String, _ fileSystem: any FileSystem, progress: (Int) -> Void
    ) throws {
        var count = 0
        var checkpoints = CheckpointVerifier(
            directory, catalogue: OfflineModel.catalogue, views: OfflineModel.views + [Outbox.self],
            compactedThrough: (try? LogReader(directory).compactedThrough()) ?? .zero)
        summary = try LogVerifier(directory, fileSystem: fileSystem).verify { prefix, line in
            count += 1
            progress(count)
            do throws(EventError) {
                checkpoints.fold(try LineDecoder.event(line, prefix, OfflineModel.catalogue))
                return nil
            } catch { return "the line is not an event: \(error.detail)" }
        }
        checkpoints.finish(at: summary.last)
        self.checkpoints = checkpoints
    }
}
