// Everything that can be verified of a log: its files, and its stored states against its events. Used where
// a log is verified, and where it is repaired, for the states. Spec/format/checkpoint.md, CHK-6.

import LogFormat
import LogStorage

/// What verification found.
package struct Verification {
    /// What was found in the segments.
    package let summary: VerificationSummary
    /// What was found in the checkpoints.
    package let checkpoints: CheckpointVerifier

    /// All that is not right.
    package var findings: [Finding] { summary.findings + checkpoints.findings }
    /// The checkpoints that are not what the events come to, by name, and why.
    package var wrongCheckpoints: [String: String] {
        checkpoints.findings.reduce(into: [:]) { $0[$1.segment] = $1.detail }
    }

    /// Reads a log.
    ///
    /// - Parameters:
    ///   - fileSystem: what the segments are read through.
    ///   - catalogue: the known event types.
    ///   - views: the known views; stored states of others are not compared.
    ///   - progress: called with the number of events so far.
    /// - Throws: `LogError` as `LogVerifier.verify(_:)`.
    /// - Complexity: O(bytes).
    package init(
        of directory: String, _ fileSystem: any FileSystem, catalogue: EventCatalogue,
        views: [any Projection.Type], progress: (Int) -> Void
    ) throws {
        var count = 0
        var checkpoints = CheckpointVerifier(
            directory, fileSystem: fileSystem, catalogue: catalogue, views: views,
            compactedThrough: (try? LogReader(directory, fileSystem: fileSystem).compactedThrough())
                ?? .zero)
        summary = try LogVerifier(directory, fileSystem: fileSystem).verify { prefix, line in
            count += 1
            progress(count)
            do throws(EventError) {
                checkpoints.fold(try LineDecoder.event(line, prefix, catalogue))
                return nil
            } catch { return "the line is not an event: \(error.detail)" }
        }
        checkpoints.finish(at: summary.last)
        self.checkpoints = checkpoints
    }
}
