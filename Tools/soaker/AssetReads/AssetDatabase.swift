// The assets in SQLite, for comparison. Uses GRDB as a careful app would: statements are prepared once,
// columns are read by index.

import DaybookOffline
import Foundation
import GRDB

/// A table of assets with the indexes of Spec/model/media.md.
struct AssetDatabase {
    private let queue: DatabaseQueue

    init(at path: String) throws {
        var configuration = Configuration()
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA cache_size = -65536")
        }
        queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE asset (
                        assetId TEXT PRIMARY KEY, remoteId TEXT, localId TEXT,
                        ownerId TEXT NOT NULL, checksum TEXT NOT NULL, type TEXT NOT NULL,
                        fileName TEXT NOT NULL, fileCreatedAt INTEGER NOT NULL,
                        fileModifiedAt INTEGER NOT NULL, updatedAt INTEGER NOT NULL,
                        durationSeconds REAL, width INTEGER, height INTEGER,
                        livePhotoVideoId TEXT, isFavorite INTEGER NOT NULL,
                        isArchived INTEGER NOT NULL, isTrashed INTEGER NOT NULL);
                    CREATE UNIQUE INDEX asset_remote ON asset (remoteId);
                    CREATE UNIQUE INDEX asset_local ON asset (localId);
                    CREATE UNIQUE INDEX asset_checksum ON asset (ownerId, checksum);
                    CREATE INDEX asset_owner ON asset (ownerId, fileCreatedAt, assetId);
                    CREATE INDEX asset_created ON asset (fileCreatedAt, assetId);
                    """)
        }
    }

    func insert(_ assets: some Sequence<Asset>) throws {
        try queue.write { db in
            let parameters = Array(repeating: "?", count: 17).joined(separator: ",")
            let statement = try db.cachedStatement(sql: "INSERT INTO asset VALUES (\(parameters))")
            for asset in assets {
                try statement.execute(arguments: [
                    asset.id, asset.remoteId, asset.localId, asset.ownerId, asset.checksum,
                    asset.type.rawValue, asset.fileName,
                    asset.fileCreatedAt.moment.milliseconds,
                    asset.fileModifiedAt.moment.milliseconds, asset.updatedAt.moment.milliseconds,
                    asset.durationSeconds, asset.width, asset.height, asset.livePhotoVideoId,
                    asset.isFavorite, asset.isArchived, asset.isTrashed,
                ])
            }
        }
    }

    func assets(remoteIds: [String]) throws -> [Asset?] {
        try queue.read { db in
            let statement = try db.cachedStatement(sql: "SELECT * FROM asset WHERE remoteId = ?")
            return try remoteIds.map { try AssetRow.fetchOne(statement, arguments: [$0])?.asset }
        }
    }

    func assets(ownedBy ownerId: String) throws -> [Asset] {
        try fetch(
            "SELECT * FROM asset WHERE ownerId = ? ORDER BY fileCreatedAt, assetId", [ownerId])
    }

    func assets(from start: Timestamp, through end: Timestamp) throws -> [Asset] {
        try fetch(
            "SELECT * FROM asset WHERE fileCreatedAt BETWEEN ? AND ? "
                + "ORDER BY fileCreatedAt, assetId", [start.milliseconds, end.milliseconds])
    }

    private func fetch(_ sql: String, _ arguments: StatementArguments) throws -> [Asset] {
        try queue.read { db in
            let statement = try db.cachedStatement(sql: sql)
            var assets: [Asset] = []
            let rows = try AssetRow.fetchCursor(statement, arguments: arguments)
            while let row = try rows.next() { assets.append(row.asset) }
            return assets
        }
    }
}

/// One row of the table.
private struct AssetRow: FetchableRecord {
    let asset: Asset

    init(row: Row) throws {
        func time(_ index: Int) -> ZonedTime {
            ZonedTime(Timestamp(milliseconds: row[index] as Int64))
        }
        asset = Asset(
            id: row[0], remoteId: row[1], localId: row[2], ownerId: row[3], checksum: row[4],
            type: AssetType(rawValue: row[5]) ?? .other, fileName: row[6], fileCreatedAt: time(7),
            fileModifiedAt: time(8), updatedAt: time(9), durationSeconds: row[10], width: row[11],
            height: row[12], livePhotoVideoId: row[13], isFavorite: row[14], isArchived: row[15],
            isTrashed: row[16])
    }
}
