// What the database says of a projection: through which position of which log its rows are computed. Written in
// the transaction that writes the rows. Spec/model/sql.md, SQL-2.

import Daybook
import Foundation
import GRDB

/// The row of a projection in the table `daybook_projections`.
struct ProjectionRecord: Codable, Hashable, Sendable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "daybook_projections"

    let name: String
    let version: Int
    /// The log whose events the rows are computed from.
    let log: String
    /// The writer id of the log on this device.
    let writer: String
    /// The last position that the rows include.
    var position: Int64
    /// The id of the event at `position`; nil at position 0.
    var event: String?
    /// The retracted positions up to `position`: the rows do not include them.
    var retracted: [UInt64]
    /// What `create` has created.
    var objects: [SchemaObject]

    var through: Position { Position(UInt64(clamping: position)) }

    static func createTables(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE IF NOT EXISTS daybook_projections (
                    name TEXT NOT NULL PRIMARY KEY,
                    version INTEGER NOT NULL,
                    log TEXT NOT NULL,
                    writer TEXT NOT NULL,
                    position INTEGER NOT NULL,
                    event TEXT,
                    retracted TEXT NOT NULL,
                    objects TEXT NOT NULL
                ) STRICT;
                CREATE TABLE IF NOT EXISTS daybook_parked (
                    projection TEXT NOT NULL,
                    position INTEGER NOT NULL,
                    id TEXT NOT NULL,
                    type TEXT NOT NULL,
                    error TEXT NOT NULL,
                    PRIMARY KEY (projection, position)
                ) STRICT, WITHOUT ROWID;
                """)
    }

    /// The records in a database; empty before the first projection.
    static func all(in db: Database) throws -> [String: ProjectionRecord] {
        guard try db.tableExists(databaseTableName) else { return [:] }
        return Dictionary(uniqueKeysWithValues: try fetchAll(db).map { ($0.name, $0) })
    }
}

/// An event that a projection could not apply.
public struct ParkedProjection: Codable, Hashable, Sendable, FetchableRecord, PersistableRecord {
    /// The table of parked events.
    public static let databaseTableName = "daybook_parked"

    /// The projection's name.
    public let projection: String
    /// The event's position.
    public var position: Position { Position(UInt64(clamping: storedPosition)) }
    /// The event's id.
    public var id: UUID { UUID(text: storedID) ?? UUID() }
    /// The event's type, in its newest form.
    public let type: String
    /// The error that `apply` has thrown, as text.
    public let error: String

    private let storedPosition: Int64
    private let storedID: String

    private enum CodingKeys: String, CodingKey {
        case projection, type, error
        case storedPosition = "position"
        case storedID = "id"
    }

    /// Removes the parked events of a projection.
    static func deleteAll(of projection: String, in db: Database) throws {
        try filter(Column("projection") == projection).deleteAll(db)
    }

    init(_ projection: String, _ event: Event, _ error: any Error) {
        self.projection = projection
        storedPosition = Int64(clamping: event.position.rawValue)
        storedID = event.id.text
        type = event.type
        self.error = "\(error)"
    }
}
