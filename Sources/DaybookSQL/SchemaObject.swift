// The tables, indexes, triggers and views of a projection, to be dropped or copied. Spec/model/sql.md, SQL-5.

import Foundation
import GRDB

/// An object of a database's schema.
struct SchemaObject: Codable, Hashable, Sendable {
    enum Kind: String, Codable {
        case table, index, trigger, view
        case virtualTable = "virtual"
    }

    let kind: Kind
    let name: String

    /// The kind as the schema names it.
    fileprivate var schemaType: String { kind == .virtualTable ? "table" : kind.rawValue }

    /// The objects of a database in the order of their creation: not those of SQLite or of this library, nor
    /// the tables in which a virtual table keeps its content.
    static func all(in db: Database, schema: String = "main") throws -> [SchemaObject] {
        let kinds = try Row.fetchAll(
            db, sql: "SELECT name, type FROM pragma_table_list WHERE schema = ?",
            arguments: [schema])
        let kindOfTable = Dictionary(
            kinds.map { ($0["name"] as String, $0["type"] as String) }, uniquingKeysWith: { $1 })
        return try Row.fetchAll(
            db,
            sql: "SELECT type, name FROM \(schema.quotedDatabaseIdentifier).sqlite_schema "
                + "WHERE sql IS NOT NULL ORDER BY rowid"
        ).compactMap { row in
            let (type, name): (String, String) = (row["type"], row["name"])
            let isOfLibrary = name == "daybook_projections" || name == "daybook_parked"
            guard !name.lowercased().hasPrefix("sqlite_"), !isOfLibrary else { return nil }
            guard type == "table" else {
                return Kind(rawValue: type).map { .init(kind: $0, name: name) }
            }
            switch kindOfTable[name] {
            case "shadow": return nil
            case "virtual": return SchemaObject(kind: .virtualTable, name: name)
            default: return SchemaObject(kind: .table, name: name)
            }
        }
    }
}

extension [SchemaObject] {
    /// Drops the objects that exist, and notifies observers. Foreign keys are off, or rows of the app that refer
    /// to the tables would be deleted, too.
    func drop(from db: Database) throws {
        try notifyObservers(in: db)
        // Triggers and views, which read tables, before them; tables that refer to others before those.
        for kind in [SchemaObject.Kind.trigger, .view, .virtualTable, .index, .table] {
            for object in reversed() where object.kind == kind {
                let keyword = kind == .virtualTable ? "TABLE" : kind.rawValue.uppercased()
                try db.execute(
                    sql: "DROP \(keyword) IF EXISTS main.\(object.name.quotedDatabaseIdentifier)")
            }
        }
    }

    /// Notifies observers of all tables: GRDB does not observe that they are dropped.
    func notifyObservers(in db: Database) throws {
        for object in self where object.kind == .table || object.kind == .virtualTable {
            guard try db.tableExists(object.name) else { continue }
            try db.notifyChanges(in: Table(object.name))
        }
    }

    /// Creates the objects of an attached database anew in the main one, with their content.
    ///
    /// - Parameter schema: the name of the attached database.
    func copy(from schema: String, in db: Database) throws {
        func create(_ kinds: Set<SchemaObject.Kind>) throws {
            for object in self where kinds.contains(object.kind) {
                guard
                    let sql = try String.fetchOne(
                        db,
                        sql: "SELECT sql FROM \(schema.quotedDatabaseIdentifier).sqlite_schema "
                            + "WHERE name = ? AND type = ?",
                        arguments: [object.name, object.schemaType])
                else { continue }
                try db.execute(sql: sql)
                if object.kind == .table { try copyContent(of: object, from: schema, in: db) }
            }
        }
        // Indexes are built at the end, which is faster, and triggers must not see the copied rows. The index of a
        // full-text search may read a table or a view.
        try create([.table])
        try create([.index, .view, .virtualTable])
        for object in self where object.kind == .virtualTable {
            try copyContent(of: object, from: schema, in: db)
        }
        try create([.trigger])
        try notifyObservers(in: db)
    }

    private func copyContent(
        of object: SchemaObject, from schema: String, in db: Database
    ) throws {
        let table = object.name.quotedDatabaseIdentifier
        if object.kind == .virtualTable, try Self.readsAnotherTable(object.name, schema, db) {
            return try db.execute(sql: "INSERT INTO main.\(table)(\(table)) VALUES ('rebuild')")
        }
        let source = "\(schema.quotedDatabaseIdentifier).\(table)"
        // Without names of columns, SQLite copies the records of a table and of its indexes as they are
        // (`xferOptimization` in its insert.c), in a third of the time. A table that has neither an INTEGER PRIMARY
        // KEY nor an index would get new rowids, to which other tables may refer.
        if try Self.keepsRowIDs(object.name, schema, db) {
            try db.execute(sql: "INSERT INTO main.\(table) SELECT * FROM \(source)")
        } else {
            let columns = try String.fetchAll(
                db, sql: "SELECT name FROM pragma_table_xinfo(?, ?) WHERE hidden = 0",
                arguments: [object.name, schema])
            let hasRowIDs = try Bool.fetchOne(
                db, sql: "SELECT NOT wr FROM pragma_table_list WHERE schema = ? AND name = ?",
                arguments: [schema, object.name])
            let rowID = ["rowid", "_rowid_", "oid"].filter { name in
                hasRowIDs != false && !columns.contains { $0.lowercased() == name }
            }
            let list = (columns + rowID.prefix(1)).map(\.quotedDatabaseIdentifier)
                .joined(separator: ", ")
            try db.execute(sql: "INSERT INTO main.\(table)(\(list)) SELECT \(list) FROM \(source)")
        }
        guard try db.tableExists("sqlite_sequence"),
            try db.tableExists("sqlite_sequence", in: schema)
        else { return }
        try db.execute(
            sql: "DELETE FROM main.sqlite_sequence WHERE name = ?", arguments: [object.name])
        try db.execute(
            sql: "INSERT INTO main.sqlite_sequence SELECT * FROM "
                + "\(schema.quotedDatabaseIdentifier).sqlite_sequence WHERE name = ?",
            arguments: [object.name])
    }

    /// True if the rows of a table keep their rowids when they are copied without names of columns: it has an
    /// index that belongs to its declaration, an INTEGER PRIMARY KEY, or no rowids; and no generated columns, which
    /// cannot be inserted.
    private static func keepsRowIDs(
        _ name: String, _ schema: String, _ db: Database
    ) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: """
                SELECT NOT EXISTS (SELECT * FROM pragma_table_xinfo(:name, :schema) WHERE hidden <> 0)
                AND (EXISTS (
                        SELECT * FROM pragma_index_list(:name, :schema) WHERE origin IN ('u', 'pk'))
                    OR (SELECT sum(pk) = 1 AND max(iif(pk, upper(type), '')) = 'INTEGER'
                        FROM pragma_table_xinfo(:name, :schema)))
                """, arguments: ["name": name, "schema": schema]) ?? false
    }

    /// True for a full-text index of the rows of another table.
    private static func readsAnotherTable(
        _ name: String, _ schema: String, _ db: Database
    ) throws -> Bool {
        let sql =
            try String.fetchOne(
                db,
                sql:
                    "SELECT sql FROM \(schema.quotedDatabaseIdentifier).sqlite_schema WHERE name = ?",
                arguments: [name]) ?? ""
        return sql.range(of: #"\bcontent\s*="#, options: [.regularExpression, .caseInsensitive])
            != nil
    }
}
