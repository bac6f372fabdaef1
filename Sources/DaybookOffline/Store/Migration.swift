// From one version of an app's data to the next. Events of old types are read as new ones by
// upcasters, and stay as they are; here is what must be recorded once: settings that get other names,
// values that are worked out from old ones. Spec/model/settings.md, SET-6 to SET-8.

import Daybook
import Foundation

/// The way from an app's first version of its data to the present one.
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
    /// From one version to the next.
    public struct Step: Sendable {
        /// Whether a step has recorded all that it has to.
        public enum Progress: Sendable {
            /// It is called again.
            case more
            /// The rest is verified and the version recorded.
            case done
        }

        /// The version that it leads to.
        public let version: Int
        let apply: @Sendable (inout EventStore.Transaction) throws -> Progress
        let verify: @Sendable (EventStore.Transaction) throws -> Void

        /// Creates a step.
        ///
        /// - Parameters:
        ///   - version: the version that it leads to.
        ///   - apply: looks at the views for what is still to be done, and records it, or a portion
        ///     of it: what one call records is one commit, at most 4 MiB. After a kill it is called
        ///     again, so it must not count on having been called the first time.
        ///   - verify: looks at the views when all is recorded; throws for what is not as it has to
        ///     be. The version then stays the old one.
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

    /// The version of data in which none is recorded.
    public let initial: Int
    /// The steps, in order.
    public let steps: [Step]
    /// The version that the app expects: that of the last step.
    public var version: Int { steps.last?.version ?? initial }

    /// Lists the steps.
    ///
    /// - Parameters:
    ///   - initial: the version of data in which none is recorded.
    ///   - steps: in order; each leads to a higher version than the one before. Others are refused by
    ///     `OfflineStore.migrate(_:progress:)`.
    public init(from initial: Int = 1, _ steps: [Step]) {
        self.initial = initial
        self.steps = steps
    }

    /// All that data can have which the plan understands, in order.
    fileprivate var versions: [Int] { [initial] + steps.map(\.version) }
}

/// What a migration did.
public struct MigrationReport: Hashable, Sendable {
    /// The version that was found.
    public var from: Int
    /// The version that the data have now.
    public var to: Int
    /// How many commits it took; 0 if there was nothing to do.
    public var commits: Int

    /// Creates a report.
    public init(from: Int, to: Int, commits: Int = 0) {
        self.from = from
        self.to = to
        self.commits = commits
    }
}

/// Why data were not migrated.
public struct MigrationError: LocalizedError, Sendable, CustomStringConvertible {
    /// What kind of failure it is. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// A newer release of the app has written the data.
        case newerVersion = "newer-version"
        /// The version is none that the plan begins with or leads to, or is no number.
        case unknownVersion = "unknown-version"
        /// The versions of the plan do not rise.
        case invalidPlan = "invalid-plan"
        /// A step has failed. What it had recorded stays; the next call goes on.
        case stepFailed = "step-failed"
        /// The data are not as a step's verification wants them. The version is the old one.
        case notVerified = "not-verified"
    }

    /// The kind of failure.
    public var code: Code
    /// The version that the data have.
    public var stored: Int
    /// The version that was to be reached.
    public var wanted: Int
    /// What happened, with what to do where that is not plain.
    public var detail: String
    /// What the step has thrown.
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
        case .unknownVersion: "Give a plan that begins at version \(stored)."
        case .stepFailed, .notVerified:
            "Correct the step, then migrate again: it goes on from version \(stored)."
        }
    }

    /// What happened.
    public var description: String { detail }
}

extension OfflineStore {
    /// Brings the app's data to the version that it expects, step by step. Durable on return. Call
    /// it after opening, before anything else is recorded: a log without any event gets the newest
    /// version at once.
    ///
    /// The version stands in the setting `version` of this store. It is recorded when a step's
    /// events are durable and verified, so a kill at any moment leaves a version whose step is
    /// whole; the next call goes on where it was.
    ///
    /// - Parameters:
    ///   - plan: the steps.
    ///   - progress: called after every commit with the version that is being reached.
    /// - Returns: what was done.
    /// - Throws: `MigrationError`: `invalidPlan`, `newerVersion` and `unknownVersion` with nothing
    ///   changed, `stepFailed`, `notVerified`; `LogError` as `EventStore.append`; `CancellationError`
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
                    "the versions of the migration plan must rise; they are \(versions). Nothing "
                    + "was changed")
        }
        let stored = view(SettingsView.self).json(of: name)
        if stored == nil, await events.lastDurable.rawValue == 0 {
            try await settings.put(.version, plan.version)
            return MigrationReport(from: plan.version, to: plan.version, commits: 1)
        }
        guard let first = stored == nil ? plan.initial : settings.tryGet(.version) else {
            throw MigrationError(
                code: .unknownVersion, stored: 0, wanted: plan.version,
                detail: "the setting \(name) holds no whole number. Nothing was changed")
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
                detail: "the data have version \(first), and no step begins there: the plan knows "
                    + "\(versions). Nothing was changed")
        }
        var report = MigrationReport(from: first, to: first)
        for step in plan.steps where step.version > report.to {
            try await perform(step, &report, progress)
            report.to = step.version
        }
        return report
    }

    private func perform(
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
        /// Another call may have migrated meanwhile.
        @Sendable func check(_ transaction: EventStore.Transaction) throws {
            let version = transaction.view(SettingsView.self)[.version]
            guard version ?? stored == stored else {
                throw failure(.stepFailed, "was taken by somebody else", Overtaken())
            }
        }
        var state = MigrationPlan.Step.Progress.more
        while state == .more {
            try Task.checkCancellation()
            let before = await events.lastDurable
            do {
                state = try await write { transaction in
                    try check(transaction)
                    do { return try step.apply(&transaction) } catch {
                        throw failure(.stepFailed, "failed", error)
                    }
                }
            } catch let error as EventError { throw failure(.stepFailed, "failed", error) }
            let isNew = await events.lastDurable > before
            guard isNew || state == .done else { throw failure(.stepFailed, "failed", Stuck()) }
            guard isNew else { continue }
            report.commits += 1
            progress?(step.version)
        }
        try await write { transaction in
            try check(transaction)
            do { try step.verify(transaction) } catch {
                throw failure(.notVerified, "is not verified", error)
            }
            try transaction.put(.version, step.version)
        }
        report.commits += 1
        progress?(step.version)
    }
}

/// What is wrong with a step, for people.
private struct Stuck: Error, CustomStringConvertible {
    var description: String { "it has recorded nothing new, and says that there is more" }
}

private struct Overtaken: Error, CustomStringConvertible {
    var description: String { "the version has changed. Migrate one at a time" }
}
