// Failures of the kit, for a program that shows `localizedDescription`. Each has one meaning: its type.

import Foundation

extension ProjectionLaw.Violation: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension FaultFailure: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension BrokenInvariant: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension RotFailure: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension CrashFailure: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension CorpusError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension RecordedIssues: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension PropertyFailure: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension CoverageFailure: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}
