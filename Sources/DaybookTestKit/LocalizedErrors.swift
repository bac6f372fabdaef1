// Failures of the kit, for a program that shows `localizedDescription`. Each has one meaning: its type.

import Foundation

/// A failure whose `localizedDescription` is its description.
package protocol DescribedFailure: LocalizedError, CustomStringConvertible {}

extension DescribedFailure {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension ProjectionLaw.Violation: LocalizedError, DescribedFailure {}
extension FaultFailure: LocalizedError, DescribedFailure {}
extension BrokenInvariant: LocalizedError, DescribedFailure {}
extension RotFailure: LocalizedError, DescribedFailure {}
extension CrashFailure: LocalizedError, DescribedFailure {}
extension CorpusError: LocalizedError, DescribedFailure {}
extension RecordedIssues: LocalizedError, DescribedFailure {}
extension PropertyFailure: LocalizedError, DescribedFailure {}
extension CoverageFailure: LocalizedError, DescribedFailure {}
extension NotTried: LocalizedError, DescribedFailure {}
