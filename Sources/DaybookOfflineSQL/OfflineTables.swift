// The built-in views as tables, with indexes for the queries that the apps make. Spec/model/sql.md, SQL-9.

@_exported import DaybookOffline
@_exported import DaybookSQL
import GRDB

/// The tables of the built-in views.
public enum OfflineTables {
    /// All tables: one for each view, and the outbox.
    public static let all: [any SQLProjection] = [
        CityRows(), NoteRows(), PreferencesRows(), ProgressRows(), PageRows(), ContentRows(),
        DownloadRows(), SettingRows(), LearningRows(), AssetRows(), AlbumRows(), DeviceMediaRows(),
        ImageRows(), OutboxRows(),
    ]
}

extension OfflineStore {
    /// Computes tables in a database of the app, and follows the log from then on: `EventStore.project(into:_:)`.
    ///
    /// ```swift
    /// let rows = try await store.project(into: pool)
    /// try await store.notes.add("Great coffee", city: "rome", by: "user-456")
    /// try await rows.reach()
    /// let found = try await pool.read { db in
    ///     try Row.fetchAll(db, sql: """
    ///         SELECT notes.* FROM notes JOIN notes_fts ON notes_fts.rowid = notes.rowid
    ///         WHERE notes_fts MATCH 'coffee' ORDER BY rank
    ///         """)
    /// }
    /// ```
    ///
    /// - Throws: as `EventStore.project(into:_:)`.
    public func project(
        into database: any DatabaseWriter, _ projections: [any SQLProjection] = OfflineTables.all
    ) async throws -> ProjectedRows {
        try await events.project(into: database, projections)
    }
}

/// The table `cities`: saved cities, and those whose content is on the device. `savedBy` is a JSON array of users.
public struct CityRows: ViewTable {
    public typealias View = CitiesView
    public static let indexes = [["lastAccessedAt"]]
    public init() {}
}

/// The table `notes`, with the full-text index `notes_fts` of the contents.
public struct NoteRows: ViewTable {
    public typealias View = NotesView
    public static let indexes = [["cityId", "createdAt", "noteId"], ["createdBy"]]
    public static let fullTextColumns = ["content"]
    public init() {}
}

/// The table `preferences`: one row for each user.
public struct PreferencesRows: ViewTable {
    public typealias View = PreferencesView
    public init() {}
}

/// The table `progress`: one row for each learner. `courses` is a JSON array.
public struct ProgressRows: ViewTable {
    public typealias View = ProgressView
    public init() {}
}

/// The table `pages`: the pages of the cities, without their content.
public struct PageRows: ViewTable {
    public typealias View = PagesView
    public static let indexes = [["city", "language", "path"], ["parentPath"]]
    public init() {}
}

/// The table `content`: cities with their languages, updates and resources.
public struct ContentRows: ViewTable {
    public typealias View = ContentView
    public static let indexes = [["city"]]
    public init() {}
}

/// The table `downloads`: the download jobs.
public struct DownloadRows: ViewTable {
    public typealias View = DownloadsView
    public static let indexes = [["cityId"], ["status", "startedAt"]]
    public init() {}
}

/// The table `settings`: keys with values. An array or an object is JSON text.
public struct SettingRows: ViewTable {
    public typealias View = SettingsView
    public init() {}
}

/// The table `learning`: courses, lessons and learners, which `kind` distinguishes.
public struct LearningRows: ViewTable {
    public typealias View = LearningView
    public static let indexes = [["kind", "courseId", "lessonId"], ["userId"]]
    public init() {}
}

/// The table `assets`: the assets of the library.
public struct AssetRows: ViewTable {
    public typealias View = AssetsView
    public static let indexes = [
        ["remoteId"], ["localId"], ["ownerId", "checksum"], ["ownerId", "fileCreatedAt"],
        ["fileCreatedAt", "assetId"],
    ]
    public init() {}
}

/// The table `albums`. `assetIds` and `userIds` are JSON arrays.
public struct AlbumRows: ViewTable {
    public typealias View = AlbumsView
    public static let indexes = [["albumId"], ["remoteId"], ["ownerId"]]
    public init() {}
}

/// The table `devicemedia`: albums chosen for backup, duplicates, ETags and assets of the device, distinguished by
/// `kind`.
public struct DeviceMediaRows: ViewTable {
    public typealias View = DeviceMediaView
    public static let indexes = [["kind", "id"], ["hash"]]
    public init() {}
}

/// The table `images`: the cached images.
public struct ImageRows: ViewTable {
    public typealias View = ImagesView
    public static let indexes = [["kind", "id"], ["lastAccessedAt"]]
    public init() {}
}

/// The table `outbox`: the actions that the server has not settled, as the log records them. Attempts that were
/// only made in memory are not in it.
public struct OutboxRows: ViewTable {
    public typealias View = Outbox
    public static let indexes = [["position"], ["entityId"], ["syncStatus"]]
    public init() {}
}
