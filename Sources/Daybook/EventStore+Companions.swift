// Opens companions of a log: stores of processes that are not its owner. Spec/format/companions.md.

import EventSourcing
import Foundation
import LogStorage
import Replay

extension EventStore {
    /// Opens a companion of the log in a folder: for a process that is not the log's owner, such as a widget, an
    /// extension or a command. It records events in a small log of its own beside the main log, which the owner
    /// absorbs, and reads the owner's views with these events folded in. It takes no lock that another process needs.
    ///
    /// ```swift
    /// let companion = try await EventStore.openCompanion(
    ///     at: url, name: "widget", account: "user-456", rules: rules, views: [Trips.self])
    /// try await companion.append(TripPlanned(city: "lisbon"))
    /// ```
    ///
    /// - Parameters:
    ///   - url: the log's folder. The owner has created the log.
    ///   - name: the companion's name: 1 to 64 characters `[a-z0-9-]`, the first no hyphen. Processes that run at the
    ///     same time can share it.
    ///   - account: the account that the log must belong to; nil for any.
    ///   - rules: the rules of the app's event types. Pass those of the owner: an event that its rules refuse is not
    ///     absorbed.
    ///   - upcasters: the upcasters of older event types.
    ///   - views: the views to read; the outbox is always one of them.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - limits: the bounds of what may wait for the owner.
    ///   - environment: file system, clock and randomness; tests bring their own.
    /// - Throws: `EventError` (`refused`) for a URL that is not a folder on this device, for a wrong name, and for
    ///   rules, upcasters or views that are inconsistent. `LogError`: `noSuchLog` if there is no log yet, or it is
    ///   being erased; `wrongAccount`, `newerVersion`, `corrupt`, `io`, …; `CancellationError`.
    /// - Complexity: O(states + events after the newest checkpoint + waiting events).
    public static func openCompanion(
        at url: URL, name: String, account: String? = nil, rules: [EventRule] = [],
        upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        limits: CompanionLimits = CompanionLimits(),
        environment: LogEnvironment = LogEnvironment()
    ) async throws -> CompanionStore {
        let companion = try await CompanionStore.open(
            at: try url.localPath(), name: name, account: account,
            catalogue: catalogue.adding(rules, upcasters: upcasters), views: views + [Outbox.self],
            limits: limits, environment: environment)
        await companion.restoreClock()
        return companion
    }
}
