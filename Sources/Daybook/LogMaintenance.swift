// Verifies, repairs and salvages a log that no store has open: what `logtool
// verify` and `logtool repair` do, for an app. Spec/format/repair.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Replay

/// Verifies, repairs and salvages a log.
///
/// ```swift
/// let maintenance = try LogMaintenance(at: url, account: "user-456", views: [Trips.self])
/// let report = try await maintenance.salvage(to: newURL)
/// print("\(report.lostCount.map { "\($0)" } ?? "some") events are lost")
/// ```
public struct LogMaintenance: Sendable {
    private let directory: String
    private let account: String?
    private let catalogue: EventCatalogue
    private let views: [any Projection.Type]
    private let environment: LogEnvironment

    /// Names a log; reads nothing.
    ///
    /// - Parameters:
    ///   - url: the log's folder.
    ///   - account: the account that the app opens the log with; nil for a log of no account. A repair needs
    ///     it where the damage has left no file that names the account.
    ///   - rules: the rules of the app's event types.
    ///   - upcasters: the ways from older event types to those that have replaced them.
    ///   - views: the views of the app, whose stored states are compared with the events.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - environment: file system, clock and randomness.
    /// - Throws: `EventError` (`refused`) for a URL that is not one of a folder on this device, and for rules
    ///   and upcasters that do not go together.
    public init(
        at url: URL, account: String?, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        views: [any Projection.Type] = [], extending catalogue: EventCatalogue = .ownTypes,
        environment: LogEnvironment = LogEnvironment()
    ) throws(EventError) {
        directory = try url.localPath()
        self.account = account
        self.catalogue = catalogue.adding(rules, upcasters: upcasters)
        if let fault = self.catalogue.fault { throw fault }
        self.views = views + [Outbox.self]
        self.environment = environment
    }

    /// Reads the whole log, beside a store that has it open or without one. Changes nothing.
    ///
    /// - Parameter progress: called with the part that has been read, from 0 to 1, on another thread.
    /// - Returns: what was read, and all that is damaged.
    /// - Throws: `LogError` where there is no log, it is of a newer version, or a file cannot be read.
    ///   `CancellationError` if the task is cancelled.
    /// - Complexity: O(bytes of the log); memory for one frame and the views.
    public func verify(
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> VerificationReport {
        let found = try await LongRead.run(
            of: directory, environment.fileSystem, verifying: true, progress: progress
        ) { files in
            try Verification(of: directory, files, catalogue: catalogue, views: views) { _ in }
        }
        return VerificationReport(
            events: found.summary.events, last: found.summary.last,
            unfinishedBytes: found.summary.tornTail?.byteCount ?? 0,
            damage: found.findings.map {
                LogDamage(
                    file: $0.segment, offset: $0.offset, positions: $0.positions,
                    description: $0.detail)
            })
    }

    /// Repairs a damaged log: what is intact keeps its position, and every file that is changed
    /// is first moved to the folder `quarantine/` of the log. No store may have the log open. Durable on
    /// return; after an error or a kill, repair again.
    ///
    /// - Parameters:
    ///   - isTrial: whether nothing is changed, and the report says what would be.
    ///   - progress: called with the part that has been read, from 0 to 1, on another thread.
    /// - Returns: what was replaced, and the positions that are lost.
    /// - Throws: `LogError`: `locked`, `noSuchLog`, `notALog`, `newerVersion`, `diskFull`, `readOnly`, `io`.
    ///   `CancellationError` if the task is cancelled before anything was changed.
    /// - Complexity: O(bytes of the log).
    @discardableResult
    public func repair(
        isTrial: Bool = false, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> RepairSummary {
        let wrong = try await wrongCheckpoints(progress)
        return try await BlockingWork.run { [self] in
            let repair = LogRepair(
                directory, account: account, keptStates: LogRepair.statesOfStores,
                wrongCheckpoints: wrong, environment: environment)
            return RepairSummary(isTrial ? try repair.plan() : try repair.repair())
        }
    }

    /// Copies the log into a new folder and repairs the copy; the files of the damaged log stay as they are,
    /// but for its lock, which is held meanwhile. Links in the folder are left out. The way out for
    /// an app whose log cannot be opened: open the copy, and keep the old folder until it is no longer
    /// needed. Durable on return.
    ///
    /// - Parameters:
    ///   - url: the folder of the copy, which must not exist; its parent must.
    ///   - progress: called with the part of the log that has been copied, about, from 0 to 1.
    /// - Returns: what was repaired in the copy, and the positions that are lost.
    /// - Throws: as `repair`; `LogError` (`io`) where the folder exists or
    ///   would lie in the log's, and for a file that cannot be read. After an error there is no copy.
    /// - Complexity: O(bytes of the log).
    @discardableResult
    public func salvage(
        to url: URL, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> RepairSummary {
        let copy = try url.localPath()
        try await LongRead.run(
            of: directory, environment.fileSystem, verifying: true, progress: progress
        ) { files in
            try LogCopy(
                of: directory, to: copy, environment: environment, reading: files
            ).run()
        }
        do {
            return try await LogMaintenance(self, at: copy).repair()
        } catch {
            try? environment.fileSystem.removeAll(copy)
            throw error
        }
    }

    private init(_ other: LogMaintenance, at directory: String) {
        self.directory = directory
        account = other.account
        catalogue = other.catalogue
        views = other.views
        environment = other.environment
    }

    /// The checkpoints that a repair sets aside. What cannot be verified at all is judged by its files alone.
    private func wrongCheckpoints(
        _ progress: (@Sendable (Double) -> Void)?
    ) async throws -> [String: String] {
        do {
            return try await LongRead.run(
                of: directory, environment.fileSystem, verifying: true, progress: progress
            ) { files in
                try Verification(of: directory, files, catalogue: catalogue, views: views) { _ in }
                    .wrongCheckpoints
            }
        } catch is LogError { return [:] }
    }
}

/// A place in a log that is not as a writer leaves it.
public struct LogDamage: Hashable, Sendable, CustomStringConvertible {
    /// The file, as named from the log's folder.
    public let file: String
    /// The byte in the file, where there is one.
    public let offset: Int?
    /// The events concerned, where they are known.
    public let positions: ClosedRange<Position>?
    /// What is wrong.
    public let description: String
}

/// What verification found.
public struct VerificationReport: Hashable, Sendable {
    /// How many events can be read.
    public let events: Int
    /// The position of the last event that can be reached; `.zero` where the damage hides all of them.
    public let last: Position
    /// Bytes of a write that a crash interrupted; the next opening sets them aside. No damage.
    public let unfinishedBytes: Int
    /// All that is damaged.
    public let damage: [LogDamage]
    /// True if no damage was found.
    public var isIntact: Bool { damage.isEmpty }
}

/// What a repair changed, or would change.
public struct RepairSummary: Hashable, Sendable {
    /// The files that were replaced or set aside, and why.
    public let damage: [LogDamage]
    /// The positions whose events are lost, in order. Where it is not known how many there were, the last
    /// range reaches to the greatest position that is possible.
    public let lost: [ClosedRange<Position>]
    /// How many events are lost, records of the store's own included; nil where that is not known. A sync
    /// brings back those that the server has.
    public let lostCount: Int?

    init(_ report: RepairReport) {
        damage = report.actions.map {
            LogDamage(
                file: $0.name, offset: nil, positions: $0.positions, description: $0.reason)
        }
        lost = report.lost
        let isKnown = report.actions.allSatisfy(\.endIsKnown)
        lostCount =
            isKnown
            ? lost.reduce(0) { $0 + Int($1.lowerBound.distance(to: $1.upperBound)) + 1 } : nil
    }
}
