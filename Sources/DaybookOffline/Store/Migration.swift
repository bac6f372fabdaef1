// Migrations of an app's data from one version to the next. Upcasters convert events of old types on reading,
// without a migration; a migration records events once: renamed settings, values computed from old ones.
// Spec/model/settings.md, SET-6 to SET-8.

import Daybook
import Foundation

/// The migrations from the first version of an app's data to the current one.
///
/// ```swift
/// let plan = MigrationPlan([
///     .init(to: 2) { transaction in
///         for trip in transaction.view(TripsView.self).withoutCountry.prefix(1_000) {
///             try transaction.append(CountryFound(trip: trip.id, country: country(of: trip)))
///         }
///         return transaction.view(TripsView.self).withoutCountry.count > 1_000 ? .more : .done
///     }
/// ])
/// let report = try await store.migrate(plan)
/// ```
public struct MigrationPlan: Sendable {
    /// A migration to the next version.
    public struct Step: Sendable {
        /// The progress of a step after one call.
        public enum Progress: Sendable {
            /// Work remains; the step is called again.
            case more
            /// All events are recorded; the step is verified and its version recorded.
            case done
        }

        /// The version after the step.
        public let version: Int
        let apply: @Sendable (inout EventStore.Transaction) throws -> Progress
        let verify: @Sendable (EventStore.Transaction) throws -> Void

        /// Creates a step.
        ///
        /// - Parameters:
        ///   - version: the version after the step.
        ///   - apply: finds the remaining work by the views and records all or a part of it. The events of
        ///     one call are one commit, at most 4 MiB. After a kill it is called again, so it must not assume
        ///     that a call is the first one.
        ///   - verify: checks the views when all is recorded, and throws if they are wrong. The version is
        ///     then not changed.
        public init(
            to version: Int,
            apply: @escaping @Sendable (inout EventStore.Transaction) throws -> Progress,
            verify: @escaping @Sendable (EventStore.Transaction) throws -> Void = { _ in }
        ) {
            self.version = version
            self.apply = apply
            self.verify = verify
        }
    }

    /// The version of data without a recorded version.
    public let initial: Int
    /// The steps, in order.
    public let steps: [Step]
    /// The version that the app expects: that of the last step.
    public var version: Int { steps.last?.version ?? initial }

    /// Creates a plan.
    ///
    /// - Parameters:
    ///   - initial: the version of data without a recorded version.
    ///   - steps: the steps with ascending versions. `OfflineStore.migrate(_:progress:)` refuses any other
    ///     order.
    public init(from initial: Int = 1, _ steps: [Step]) {
        self.initial = initial
        self.steps = steps
    }

    /// The versions that the plan knows, in order.
    fileprivate var versions: [Int] { [initial] + steps.map(\.version) }
}

/// The result of a migration.
public struct MigrationReport: Hashable, Sendable {
    /// The version before the migration.
    public var from: Int
    /// The version after the migration.
    public var to: Int
    /// The number of commits; 0 if no step was due.
    public var commits: Int

    /// Creates a report.
    public init(from: Int, to: Int, commits: Int = 0) {
        self.from = from
        self.to = to
        self.commits = commits
    }
}

extension MigrationReport: CustomStringConvertible {
    /// The versions and the number of commits.
    public var description: String {
        commits == 0
            ? "version \(to); no step was due"
            : "from version \(from) to version \(to) in "
                + (commits == 1 ? "1 commit" : "\(commits) commits")
    }
}

/// A failure of a migration.
public struct MigrationError: LocalizedError, Sendable, CustomStringConvertible {
    /// The kind of a failure. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// A newer release of the app has written the data.
        case newerVersion = "newer-version"
        /// The plan does not know the version, or it is not a number.
        case unknownVersion = "unknown-version"
        /// The versions of the plan are not ascending.
        case invalidPlan = "invalid-plan"
        /// A step has failed. The events that it recorded remain; the next call continues.
        case stepFailed = "step-failed"
        /// A step's verification has failed. The version was not changed.
        case notVerified = "not-verified"
    }

    /// The kind of failure.
    public var code: Code
    /// The recorded version of the data.
    public var stored: Int
    /// The version of the plan or the step.
    public var wanted: Int
    /// A human-readable message.
    public var detail: String
    /// The error that the step threw.
    public var cause: (any Error)?

    /// Creates an error.
    public init(
        code: Code, stored: Int, wanted: Int, detail: String, cause: (any Error)? = nil
    ) {
        self.code = code
        self.stored = stored
        self.wanted = wanted
        self.detail = detail
        self.cause = cause
    }

    /// The same as `description`.
    public var errorDescription: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .newerVersion: "Update the app."
        case .invalidPlan: "Order the steps so that each leads to a higher version."
        case .unknownVersion: "Pass a plan that begins at version \(stored)."
        case .stepFailed, .notVerified:
            "Correct the step, then migrate again: the migration continues from version \(stored)."
        }
    }

    /// The detail text.
    public var description: String { detail }
}

extension OfflineStore {
    /// Migrates the app's data to the version of the plan, step by step. Durable on return. Call it after the
    /// opening, before anything else is recorded: in a log without any event the newest version is recorded
    /// at once.
    ///
    /// The version is stored in the setting `version` of this store. It is recorded after a step's events are
    /// durable and verified, so that after a kill at any moment the steps up to the version are complete; the
    /// next call continues.
    ///
    /// - Parameters:
    ///   - plan: the steps.
    ///   - progress: called after every commit with the version of the current step.
    /// - Returns: the versions before and after, and the number of commits.
    /// - Throws: `MigrationError`: `invalidPlan`, `newerVersion` and `unknownVersion` before any change,
    ///   `stepFailed`, `notVerified`; `LogError` as `EventStore.append`; `CancellationError`
    ///   between two commits.
    @discardableResult
    public func migrate(
        _ plan: MigrationPlan, progress: (@Sendable (_ version: Int) -> Void)? = nil
    ) async throws -> MigrationReport {
        let name = SettingKey<Int>.version.name
        let versions = plan.versions
        guard zip(versions, versions.dropFirst()).allSatisfy(<) else {
            throw MigrationError(
                code: .invalidPlan, stored: plan.initial, wanted: plan.version,
                detail:
                    "the versions of the migration plan must be ascending; they are \(versions). "
                    + "Nothing was changed")
        }
        let stored = view(SettingsView.self).json(of: name)
        if stored == nil, await events.lastDurable.rawValue == 0 {
            try await settings.put(.version, plan.version)
            return MigrationReport(from: plan.version, to: plan.version, commits: 1)
        }
        guard let first = stored == nil ? plan.initial : settings.tryGet(.version) else {
            throw MigrationError(
                code: .unknownVersion, stored: 0, wanted: plan.version,
                detail: "the value of the setting \(name) is not an integer. Nothing was changed")
        }
        guard first <= plan.version else {
            throw MigrationError(
                code: .newerVersion, stored: first, wanted: plan.version,
                detail: "the data have version \(first), written by a newer release of the app; "
                    + "this one knows version \(plan.version). Nothing was changed. Update the app")
        }
        guard versions.contains(first) else {
            throw MigrationError(
                code: .unknownVersion, stored: first, wanted: plan.version,
                detail:
                    "the data have version \(first), which the migration plan does not know; "
                    + "it knows \(versions). Nothing was changed")
        }
        var report = MigrationReport(from: first, to: first)
        for step in plan.steps where step.version > report.to {
            try await runStep(step, &report, progress)
            report.to = step.version
        }
        return report
    }

    private func runStep(
        _ step: MigrationPlan.Step, _ report: inout MigrationReport,
        _ progress: (@Sendable (_ version: Int) -> Void)?
    ) async throws {
        let stored = report.to
        @Sendable func failure(
            _ code: MigrationError.Code, _ verb: String, _ cause: any Error
        ) -> MigrationError {
            MigrationError(
                code: code, stored: stored, wanted: step.version,
                detail: "the step to version \(step.version) \(verb): \(cause)", cause: cause)
        }
        /// Fails if another call has migrated meanwhile.
        @Sendable func checkVersion(_ transaction: EventStore.Transaction) throws {
            let version = transaction.view(SettingsView.self)[.version]
            guard version ?? stored == stored else {
                throw failure(.stepFailed, "failed", VersionChanged())
            }
        }
        var state = MigrationPlan.Step.Progress.more
        while state == .more {
            try Task.checkCancellation()
            let positionBefore = await events.lastDurable
            do {
                state = try await write { transaction in
                    try checkVersion(transaction)
                    do { return try step.apply(&transaction) } catch {
                        throw failure(.stepFailed, "failed", error)
                    }
                }
            } catch let error as EventError { throw failure(.stepFailed, "failed", error) }
            let hasRecorded = await events.lastDurable > positionBefore
            guard hasRecorded || state == .done else {
                throw failure(.stepFailed, "failed", NoProgress())
            }
            guard hasRecorded else { continue }
            report.commits += 1
            progress?(step.version)
        }
        try await write { transaction in
            try checkVersion(transaction)
            do { try step.verify(transaction) } catch {
                throw failure(.notVerified, "is not verified", error)
            }
            try transaction.put(.version, step.version)
        }
        report.commits += 1
        progress?(step.version)
    }
}

/// Thrown for a step that would be called forever.
private struct NoProgress: Error, CustomStringConvertible {
    var description: String { "it returned .more without recording an event" }
}

/// Thrown when two migrations run at the same time.
private struct VersionChanged: Error, CustomStringConvertible {
    var description: String {
        "another migration has changed the version; run one migration at a time"
    }
}
