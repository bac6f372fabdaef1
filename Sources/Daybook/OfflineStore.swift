// What an app imports: one store with everything that it keeps offline, and one call that ships it.

@_exported import EventSourcing
import Foundation
@_exported import LogFormat
@_exported import LogStorage
@_exported import OfflineModel
@_exported import Replay

/// An app's offline store: a log of everything the user did, and the views that follow from it.
///
/// ```swift
/// let store = try await OfflineStore.open(at: url, account: "user-456")
/// try await store.cities.save("city-1", by: "user-456")
/// let note = try await store.notes.add("Great coffee", city: "city-1", by: "user-456")
/// let report = try await store.sync(to: endpoint, credentials: BearerToken("…"))
/// try await store.close()
/// ```
///
/// Every method that records something returns when it is on the disk, unless it says otherwise.
public struct OfflineStore: Sendable {
    /// The store of events underneath.
    public let events: EventStore

    /// Saved cities.
    public var cities: CityCommands { CityCommands(events) }
    /// Notes about cities.
    public var notes: NoteCommands { NoteCommands(events) }
    /// Settings.
    public var preferences: PreferencesCommands { PreferencesCommands(events) }
    /// Learning progress.
    public var progress: ProgressCommands { ProgressCommands(events) }

    /// Opens the store in a folder, or creates it there.
    ///
    /// - Parameters:
    ///   - url: the log's folder; its parent must exist. One process at a time can have it open.
    ///   - account: whose store it is. A log belongs to one account for ever.
    ///   - rules: the rules of the app's own event types.
    ///   - views: the app's own views, beside the built-in ones.
    ///   - environment: file system, clock and randomness; tests bring their own.
    ///   - progress: called now and then with the number of events folded so far and their total,
    ///     where there are many: at the first opening with a new or changed view.
    /// - Throws: `LogError`: `locked` if somebody has the log open, `wrongAccount`, `newerVersion`,
    ///   `corrupt`, …
    /// - Complexity: O(state + events behind the newest checkpoint), not O(history).
    public static func open(
        at url: URL, account: String? = nil, rules: [EventRule] = [],
        views: [any Projection.Type] = [], environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)? = nil
    ) async throws -> OfflineStore {
        let builtIn: [any Projection.Type] = OfflineModel.views + [Outbox.self]
        return OfflineStore(
            events: try await EventStore.open(
                at: url.path, account: account,
                catalogue: OfflineModel.catalogue.adding(rules), views: builtIn + views,
                environment: environment, progress: progress))
    }

    /// The state of a view. It includes every append that has returned. O(1).
    public func view<View: Projection>(_ view: View.Type) -> View { events.view(view) }

    /// Records an event of the app's own. See `EventStore.append(_:durability:)`.
    @discardableResult
    public func append(
        _ payload: some EventPayload, durability: Durability = .durable
    ) async throws -> Appended {
        try await events.append(payload, durability: durability)
    }

    /// Checks the state and records events, with nothing in between. See `EventStore.write(_:)`.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @Sendable (inout EventStore.Transaction) throws -> Result
    ) async throws -> Result {
        try await events.write(body)
    }

    /// Ships what the server has not settled.
    ///
    /// - Parameters:
    ///   - endpoint: where batches are posted: the server's `…/v1/events`.
    ///   - deadline: when to stop at the latest; nil stops when nothing more can be sent now.
    /// - Returns: what was shipped and what is left.
    /// - Throws: `LogError`. Failures of the network are no errors; they are in the report.
    @discardableResult
    public func sync(
        to endpoint: URL, credentials: any Credentials = NoCredentials(),
        until deadline: Date? = nil
    ) async throws -> SyncReport {
        let replayer = Replayer(
            events, transport: HTTPTransport(endpoint: endpoint), credentials: credentials)
        return try await replayer.run(
            until: deadline.map { .at(Timestamp($0)) } ?? .whenNothingMoves)
    }

    /// The views as they were at a position. See `EventStore.state(at:)`.
    public func state(at position: Position) async throws -> PastState {
        try await events.state(at: position)
    }

    /// Writes what waits and releases the log's lock until `resume()`. See `EventStore.suspend()`.
    public func suspend() async throws { try await events.suspend() }

    /// Takes the lock again after `suspend()`. See `EventStore.resume()`.
    public func resume() async throws { try await events.resume() }

    /// Writes what waits and closes the log. The store cannot be used any more.
    ///
    /// - Throws: `LogError` where something that waited could not be written.
    public func close() async throws { try await events.close() }
}
