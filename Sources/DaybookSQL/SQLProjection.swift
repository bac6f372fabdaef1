// A read model in SQL: tables that are computed only from the events of a log. Spec/model/sql.md.

import Daybook
import GRDB

/// Tables in the app's own database that are computed from the events of a log.
///
/// ```swift
/// struct TripRows: SQLProjection {
///     static let name = "trips", version = 1
///     static let events: [any EventPayload.Type] = [TripPlanned.self]
///
///     static func create(in db: Database) throws {
///         try db.execute(sql: "CREATE TABLE trip (id TEXT PRIMARY KEY, stop TEXT, lww BLOB) STRICT")
///     }
///
///     func apply(_ event: Event, in db: Database) throws {
///         let planned = try event.payload(as: TripPlanned.self)
///         try db.upsert(into: "trip", ["id": planned.trip], set: ["stop": planned.stop], by: event)
///     }
/// }
/// let rows = try await store.project(into: pool, [TripRows()])
/// ```
///
/// The library writes the projection's position in the transaction that writes the rows, so each event is
/// applied exactly once, whatever ends the process in between.
public protocol SQLProjection: Sendable {
    /// The projection's name, stable across releases; unique in the database.
    static var name: String { get }
    /// The version, to be raised whenever the tables or the meaning of `apply` change. The tables of another
    /// version are built anew, while the old ones serve.
    static var version: Int { get }
    /// The types of the events that `apply` gets, in their newest form.
    static var events: [any EventPayload.Type] { get }
    /// True if the rows do not change when events are removed that later ones have superseded, as with
    /// `upsert(into:_:set:by:)`. While it is false, compaction keeps all events of the types.
    static var allowsCompaction: Bool { get }
    /// Creates the projection's tables, indexes, triggers and views, all of them new: called in a transaction,
    /// in a database in which none of them exists.
    static func create(in db: Database) throws
    /// Applies one event. Called in a transaction, in the order of positions; events that are retracted are
    /// left out. It depends only on the event and the projection's own tables: no clock, no randomness, and no
    /// transaction of its own. A batch in which an event fails is rolled back and applied once more.
    ///
    /// - Throws: any error. What the event has changed is undone, the event is parked with the error
    ///   (`ProjectedRows.parked()`), and the next one is applied.
    func apply(_ event: Event, in db: Database) throws
}

extension SQLProjection {
    /// False: compaction keeps the events of the projection's types.
    public static var allowsCompaction: Bool { false }
}

/// A projection with what is computed from its type.
struct Projecting: Sendable {
    let projection: any SQLProjection
    let name: String
    let version: Int
    /// The types of the events that change its rows; nil for all.
    let types: Set<String>?
    /// The follower of its view, before its state is known; nil for a projection that applies events itself.
    let follower: (any ViewFollowing)?

    init(_ projection: any SQLProjection, _ catalogue: EventCatalogue) {
        self.projection = projection
        name = type(of: projection).name
        follower = (projection as? any ViewTable)?.follower
        // A view is folded anew under other rules, and so is its table.
        version = type(of: projection).version ^ (follower?.fingerprint(of: catalogue) ?? 0)
        types = follower.map(\.types) ?? Set(type(of: projection).events.map { $0.type })
    }

    func wants(_ type: String) -> Bool { types?.contains(type) ?? true }

    var allowsCompaction: Bool { type(of: projection).allowsCompaction }

    func create(in db: Database) throws { try type(of: projection).create(in: db) }
}
