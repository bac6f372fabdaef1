// An issue that a test framework reports while a property runs counts as the run's failure, so that shrinking
// reports one counterexample instead of every step. A test passes the issues on, since this module links no
// test framework.

import LogFormat
import Synchronization

/// The issues that a test framework reported in one run of a property.
public struct RecordedIssues: Error, CustomStringConvertible {
    /// The framework's descriptions of the issues, in the order of reporting.
    public fileprivate(set) var issues: [String] = []

    /// The first issue, at most 1,000 characters of it, and the number of the others, which often follow from it.
    public var description: String {
        guard let first = issues.first else { return "no issue" }
        let text = first.count > 1_000 ? "\(first.prefix(1_000))…" : first
        return issues.count == 1
            ? text : "\(text)\nand \((issues.count - 1).counted("other issue"))"
    }
}

/// The issues of the run in progress.
final class IssueRecorder: Sendable {
    @TaskLocal static var current: IssueRecorder?

    private let recorded = Mutex(RecordedIssues())

    func record(_ issue: String) { recorded.withLock { $0.issues.append(issue) } }

    /// Runs a body.
    ///
    /// - Throws: the issues that were recorded meanwhile; otherwise the error of the body.
    static func run(_ body: () throws -> Void) throws {
        let recorder = IssueRecorder()
        do {
            try $current.withValue(recorder, operation: body)
        } catch {
            try recorder.throwIssues()
            throw error
        }
        try recorder.throwIssues()
    }

    /// Runs an asynchronous body; otherwise the same as the synchronous form.
    static func run(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void
    ) async throws {
        let recorder = IssueRecorder()
        do {
            try await $current.withValue(recorder, operation: body, isolation: isolation)
        } catch {
            try recorder.throwIssues()
            throw error
        }
        try recorder.throwIssues()
    }

    private func throwIssues() throws {
        let issues = recorded.withLock { $0 }
        if !issues.issues.isEmpty { throw issues }
    }
}

extension Property {
    /// Counts an issue that a test framework is about to report as a failure of the run in progress.
    ///
    /// A failing `#expect` or `#require` reports each failing run, those of shrinking included, and a failing
    /// `#expect` throws no error that a property could shrink. A test that passes its issues to this method
    /// reports only the shrunk counterexample. With Swift Testing a trait does that:
    ///
    /// ```swift
    /// extension Trait where Self == IssueHandlingTrait {
    ///     static var quietShrinking: Self {
    ///         .filterIssues { !Property.captureIssue(String(reflecting: $0)) }
    ///     }
    /// }
    /// ```
    ///
    /// - Parameter description: the issue, for the failure report.
    /// - Returns: false outside of a run; then the framework must report the issue.
    public static func captureIssue(_ description: String) -> Bool {
        guard let recorder = IssueRecorder.current else { return false }
        recorder.record(description)
        return true
    }
}
