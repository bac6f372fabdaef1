// Verifies, repairs and salvages a log, as `logtool verify` and `logtool repair` do, for an app.
// Spec/format/repair.md.

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

    /// Creates the value for a log; reads nothing.
    ///
    /// - Parameters:
    ///   - url: the log's folder.
    ///   - account: the account that the app opens the log with; nil for a log of no account. A repair needs
    ///     it if the damage has left no file with the account.
    ///   - rules: the rules of the app's event types.
    ///   - upcasters: the upcasters of older event types.
    ///   - views: the views of the app, whose stored states are compared with the events.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - environment: file system, clock and randomness.
    /// - Throws: `EventError` (`refused`) for a URL that is not a folder on this device, and for rules and
    ///   upcasters that are inconsistent.
    public init(
        at url: URL, account: String?, rules: [EventRule] = [], upcasters: [Upcaster] = [],
        views: [any Projection.Type] = [], extending catalogue: EventCatalogue = .ownTypes,
        environment: LogEnvironment = LogEnvironment()
    ) throws(EventError) {
        directory = try url.localPath()
        self.account = account
        self.catalogue = catalogue.adding(rules, upcasters: upcasters)
        if let fault = self.catalogue.fault { throw fault }
        self.views = views + [Outbox.self] + self.catalogue.viewsOfStates
        self.environment = environment
    }

    /// Reads the whole log and compares stored states with the events, also while a store has the log open.
    /// Changes nothing.
    ///
    /// - Parameter progress: called with the part that has been read, from 0 to 1, on another thread.
    /// - Returns: the report with all damage.
    /// - Throws: `LogError` if there is no log, it belongs to another account, or it is of a newer version. A
    ///   file that cannot be read is damage in the report.
    ///   `CancellationError` if the task is cancelled.
    /// - Complexity: O(bytes of the log); memory for one frame and the views.
    public func verify(
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> VerificationReport {
        try checkAccount()
        let verification = try await LongRead.run(
            of: directory, environment.fileSystem, verifying: true, progress: progress
        ) { files in
            try Verification(of: directory, files, catalogue: catalogue, views: views) { _ in }
        }
        return VerificationReport(
            events: verification.summary.events, last: verification.summary.last,
            unfinishedBytes: verification.summary.tornTail?.byteCount ?? 0,
            missing: verification.summary.missing,
            damage: verification.findings.map {
                LogDamage(
                    file: $0.segment, offset: $0.offset, positions: $0.positions, lost: $0.lost,
                    lostEndIsKnown: $0.lostEndIsKnown, reason: $0.detail, cause: $0.cause)
            })
    }

    /// Makes a report on the log for a support mail, also on a damaged one, and while a store has it open.
    /// Changes nothing.
    ///
    /// - Parameter progress: called with the part that has been read, from 0 to 1, on another thread.
    /// - Throws: as `verify`.
    /// - Complexity: O(bytes of the log); memory for one frame, the outbox and the views.
    public func diagnosticReport(
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> DiagnosticReport {
        try checkAccount()
        return try await DiagnosticReport.read(
            directory, catalogue, views: views, environment, nil, progress)
    }

    /// Repairs a damaged log: intact events keep their positions, and every file that is changed is first
    /// copied to the folder `quarantine/` of the log. No store may have the log open. Durable on return; after
    /// an error or a kill, call it again.
    ///
    /// - Parameters:
    ///   - isTrial: true to change nothing and only report what a repair would change.
    ///   - progress: called with the part that has been read, from 0 to 1, on another thread.
    /// - Returns: the replaced files, and the lost positions.
    /// - Throws: `LogError`: `locked`, `noSuchLog`, `notALog`, `wrongAccount`, `newerVersion`, `diskFull`,
    ///   `readOnly`, `io`.
    ///   `CancellationError` if the task is cancelled before anything was changed.
    /// - Complexity: O(bytes of the log).
    @discardableResult
    public func repair(
        isTrial: Bool = false, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> RepairSummary {
        try checkAccount()
        let wrong = try await wrongCheckpoints(progress)
        return try await BlockingWork.run { [self] in
            let repair = LogRepair(
                directory, account: account, keptStates: LogRepair.statesOfStores,
                wrongCheckpoints: wrong, environment: environment)
            return RepairSummary(isTrial ? try repair.plan() : try repair.repair())
        }
    }

    /// Copies the log into a new folder and repairs the copy. The files of the damaged log do not change; its
    /// lock is held meanwhile. Symbolic links in the folder are not copied. For an app whose log cannot be
    /// opened: open the copy, and keep the old folder until it is not needed any more. Durable on return.
    ///
    /// - Parameters:
    ///   - url: the folder of the copy, which must not exist; its parent must.
    ///   - progress: called with the approximate part of the log that has been copied, from 0 to 1.
    /// - Returns: the replaced files of the copy, and the lost positions.
    /// - Throws: as `repair`; `LogError` (`io`) if the folder exists or would be in the log's folder, and for
    ///   a file that cannot be read. After an error there is no copy.
    /// - Complexity: O(bytes of the log).
    @discardableResult
    public func salvage(
        to url: URL, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> RepairSummary {
        let copy = try url.localPath()
        try checkAccount()
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

    /// Throws `wrongAccount` if a readable segment names another account.
    private func checkAccount() throws(LogError) {
        let reader = LogReader(directory, fileSystem: environment.fileSystem)
        guard let account, let owner = (try? reader.files())?.account, owner != account else {
            return
        }
        throw LogError(
            .wrongAccount, path: directory,
            "the log belongs to another account; pass the account of this log")
    }

    private init(_ other: LogMaintenance, at directory: String) {
        self.directory = directory
        account = other.account
        catalogue = other.catalogue
        views = other.views
        environment = other.environment
    }

    /// The checkpoints whose states differ from the events, with reasons: a repair sets them aside. Empty if
    /// the log cannot be verified; the repair then examines the files alone.
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

/// Damage at one location of a log.
public struct LogDamage: Hashable, Sendable, CustomStringConvertible {
    /// The file, relative to the log's folder.
    public let file: String
    /// The offset in the file; nil if it does not apply.
    public let offset: Int?
    /// The positions of the affected events, if they are known.
    public let positions: ClosedRange<Position>?
    /// The positions whose events cannot be read, in order; empty if there are none, or none is known. A repair
    /// may keep some of them: it also reads frames with a damaged header, and the intact part of a commit.
    public let lost: [ClosedRange<Position>]
    /// False if events after the last range of `lost` are lost as well, and their number is not known.
    public let lostEndIsKnown: Bool
    /// What is wrong, in English.
    public let reason: String
    /// The file whose damage has caused this one; nil for damage of its own. A stored state, for example,
    /// cannot be compared with events that are lost.
    public let cause: String?

    /// The file, the offset, the reason, the lost positions and the cause.
    public var description: String {
        var text = file
        if let offset { text += ", byte \(offset)" }
        if lost.isEmpty, let positions { text += ", \(positions.text)" }
        text += ": \(reason)"
        if !lost.isEmpty { text += "; lost: \(lost.text(endIsKnown: lostEndIsKnown))" }
        if let cause { text += "; follows from the damage in \(cause)" }
        return text
    }
}

extension [ClosedRange<Position>] {
    /// The ranges as a list.
    ///
    /// - Parameter endIsKnown: false if it is not known where the last range ends.
    fileprivate func text(endIsKnown: Bool) -> String {
        guard !endIsKnown, let last else {
            return map(\.text).joined(separator: ", ")
        }
        return (dropLast().map(\.text) + ["positions from \(last.lowerBound) on"])
            .joined(separator: ", ")
    }
}

/// The result of a verification.
public struct VerificationReport: Hashable, Sendable, CustomStringConvertible {
    /// The number of readable events.
    public let events: Int
    /// The position of the last readable event; `.zero` if none is readable.
    public let last: Position
    /// The size in bytes of the torn tail, which the next opening sets aside. It is not damage.
    public let unfinishedBytes: Int
    /// The positions that the log had when this folder was copied from it file by file, and that the copy
    /// lacks; nil for any other folder. They are not damage.
    public let missing: ClosedRange<Position>?
    /// The damage.
    public let damage: [LogDamage]
    /// True if no damage was found.
    public var isIntact: Bool { damage.isEmpty }

    /// The number of readable events, followed by the damage, one finding a line.
    public var description: String {
        var text = events.counted("readable event")
        if last > .zero { text += ", the last at position \(last)" }
        if unfinishedBytes > 0 {
            text += "; \(unfinishedBytes.counted("byte")) of an unfinished write"
        }
        if let missing { text += "; a copy that lacks \(missing.text)" }
        text += isIntact ? "; no damage" : "; \(damage.count.counted("finding")):"
        return ([text] + damage.map(\.description)).joined(separator: "\n")
    }
}

/// The changes of a repair, made or planned.
public struct RepairSummary: Hashable, Sendable, CustomStringConvertible {
    /// The files that were replaced or set aside, with reasons.
    public let damage: [LogDamage]
    /// The positions of the lost events, in order. If their number is unknown, the last range ends at the
    /// greatest possible position.
    public let lost: [ClosedRange<Position>]
    /// The number of lost events, the store's own records included; nil if unknown. A sync restores those
    /// that the server has.
    public let lostCount: Int?

    /// The lost events, followed by the replaced files, one a line.
    public var description: String {
        guard !damage.isEmpty else { return "the log is intact; there is nothing to repair" }
        let count = lostCount.map { $0.counted("lost event") } ?? "an unknown number of lost events"
        let positions =
            lost.isEmpty ? "" : " (\(lost.text(endIsKnown: lostCount != nil)))"
        return (["\(count)\(positions); replaced or set aside:"] + damage.map(\.description))
            .joined(separator: "\n")
    }

    init(_ report: RepairReport) {
        damage = report.actions.map { action in
            var positions: ClosedRange<Position>?
            if let first = action.lost.first, let last = action.lost.last {
                positions = first.lowerBound...last.upperBound
            }
            return LogDamage(
                file: action.name, offset: nil, positions: positions, lost: action.lost,
                lostEndIsKnown: action.endIsKnown, reason: action.reason, cause: action.cause)
        }
        lost = report.lost
        let isKnown = report.actions.allSatisfy(\.endIsKnown)
        lostCount =
            isKnown
            ? lost.reduce(0) { $0 + Int($1.lowerBound.distance(to: $1.upperBound)) + 1 } : nil
    }
}
