// The complete verification of a log: its files, and its stored states against its events.
// Spec/format/checkpoint.md, CHK-6.

import LogFormat
import LogStorage

/// The result of a verification.
package struct Verification {
    /// The result for the segments.
    package let summary: VerificationSummary
    /// The result for the checkpoints.
    package let checkpoints: CheckpointVerifier

    /// All errors found; those that only follow from others come last.
    package var findings: [Finding] {
        let findings = summary.findings + checkpoints.findings
        return findings.filter { $0.cause == nil } + findings.filter { $0.cause != nil }
    }
    /// The descriptions of the errors in checkpoints, by the checkpoint's name.
    package var wrongCheckpoints: [String: String] {
        checkpoints.findings.reduce(into: [:]) { $0[$1.segment] = $1.detail }
    }

    /// Reads and verifies a log.
    ///
    /// - Parameters:
    ///   - fileSystem: the file system for reading the segments.
    ///   - catalogue: the known event types.
    ///   - views: the known views; stored states of others are not compared.
    ///   - progress: called with the number of events so far.
    /// - Throws: `LogError` as `LogVerifier.verify(_:)`.
    /// - Complexity: O(bytes).
    package init(
        of directory: String, _ fileSystem: any FileSystem, catalogue: EventCatalogue,
        views: [any Projection.Type], progress: (Int) -> Void
    ) throws {
        let reader = LogReader(directory, fileSystem: fileSystem)
        let catalogue = reader.adding(recordedRulesTo: catalogue, fileSystem)
        var count = 0
        var checkpoints = CheckpointVerifier(
            directory, fileSystem: fileSystem, catalogue: catalogue, views: views,
            compactedThrough: (try? reader.compactedThrough(skippingUnreadable: true)) ?? .zero)
        summary = try LogVerifier(directory, fileSystem: fileSystem).verify { prefix, line in
            count += 1
            progress(count)
            do throws(EventError) {
                checkpoints.fold(try LineDecoder.event(line, prefix, catalogue))
                return nil
            } catch { return "the line is not an event: \(error.detail)" }
        }
        checkpoints.finish(at: summary.last, lacking: summary.missing)
        checkpoints.foldConsequences(of: summary.findings)
        self.checkpoints = checkpoints
    }
}
