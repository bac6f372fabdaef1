// The keys of settings with the types of their values: built-in ones, and those that an app adds. Secrets
// have keys of another type: SecretKey in Replay. Spec/model/settings.md, SET-1 and SET-3.

import Daybook

/// The key of a setting without a default.
///
/// ```swift
/// extension SettingKey where Value == String {
///     static var homeAirport: Self { SettingKey("homeAirport") }
/// }
/// ```
public struct SettingKey<Value: SettingValue>: Hashable, Sendable {
    /// The key in events.
    public let name: String

    /// Creates a key. The key of a secret is refused when a value is put.
    public init(_ name: String) { self.name = name }
}

/// The key of a user's setting with a default.
public struct UserSetting<Value: SettingValue>: Hashable, Sendable {
    /// The key.
    public let key: SettingKey<Value>
    /// The value if none was put.
    public let defaultValue: Value

    /// Creates a setting.
    public init(_ name: String, default defaultValue: Value) {
        key = SettingKey(name)
        self.defaultValue = defaultValue
    }
}

extension SettingKey where Value == Int {
    /// The version of the app's data, which migrations raise. See `MigrationPlan`.
    public static var version: Self { SettingKey("version") }
    /// A hash of the device's id. The store keeps it for the app; nothing in the library reads it.
    public static var deviceIdHash: Self { SettingKey("deviceIdHash") }
    /// Minutes to wait before a backup starts.
    public static var backupTriggerDelay: Self { SettingKey("backupTriggerDelay") }
}

extension SettingKey where Value == String {
    /// The ETag of the last synchronisation of assets.
    public static var assetETag: Self { SettingKey("assetETag") }
    /// An id of this device, which the app makes. The store keeps it for the app; nothing in the library reads
    /// it: a log has its own `logID`.
    public static var deviceId: Self { SettingKey("deviceId") }
    /// The server's address. The store keeps it for the app, which passes it to `sync(to:)` and to the
    /// download managers; nothing in the library reads it.
    public static var serverUrl: Self { SettingKey("serverUrl") }
    /// The address of the server's API, kept as `serverUrl` is.
    public static var serverEndpoint: Self { SettingKey("serverEndpoint") }
}

extension SettingKey where Value == Bool {
    /// True if backups start automatically.
    public static var autoBackup: Self { SettingKey("autoBackup") }
    /// True if backups run in the background.
    public static var backgroundBackup: Self { SettingKey("backgroundBackup") }
    /// True if backups wait for Wi-Fi.
    public static var backupRequireWifi: Self { SettingKey("backupRequireWifi") }
    /// True if backups wait for the charger.
    public static var backupRequireCharging: Self { SettingKey("backupRequireCharging") }
}

extension SettingKey where Value == Timestamp {
    /// The time since which backups fail.
    public static var backupFailedSince: Self { SettingKey("backupFailedSince") }
}

extension SettingKey {
    /// The user who is logged in, as a type of the app.
    public static func currentUser(as type: Value.Type) -> Self { SettingKey("currentUser") }
}

extension UserSetting where Value == Bool {
    /// True to load previews; the default is true.
    public static var loadPreview: Self { UserSetting("loadPreview", default: true) }
    /// True to load images in full resolution; the default is false.
    public static var loadOriginal: Self { UserSetting("loadOriginal", default: false) }
    /// True if colours follow the system; the default is false.
    public static var dynamicTheme: Self { UserSetting("dynamicTheme", default: false) }
    /// True for a colourful interface; the default is true.
    public static var colorfulInterface: Self { UserSetting("colorfulInterface", default: true) }
    /// True for a dynamic layout of the grid; the default is false.
    public static var dynamicLayout: Self { UserSetting("dynamicLayout", default: false) }
    /// True to show where an asset is stored; the default is true.
    public static var storageIndicator: Self { UserSetting("storageIndicator", default: true) }
    /// True to play videos in a loop; the default is true.
    public static var loopVideo: Self { UserSetting("loopVideo", default: true) }
    /// True to start videos automatically; the default is true.
    public static var autoPlayVideo: Self { UserSetting("autoPlayVideo", default: true) }
    /// True for haptic feedback; the default is true.
    public static var enableHapticFeedback: Self {
        UserSetting("enableHapticFeedback", default: true)
    }
    /// True to keep favourites on the device when space is freed; the default is true.
    public static var cleanupKeepFavorites: Self {
        UserSetting("cleanupKeepFavorites", default: true)
    }
}

extension UserSetting where Value == String {
    /// `light`, `dark` or `system`; the default is `system`.
    public static var themeMode: Self { UserSetting("themeMode", default: "system") }
    /// The accent colour by its name in the app; the default is `default`.
    public static var primaryColor: Self { UserSetting("primaryColor", default: "default") }
    /// The media types that stay on the device when space is freed: `photos`, `videos`, `both` or `none`; the
    /// default is `none`.
    public static var cleanupKeepMediaType: Self {
        UserSetting("cleanupKeepMediaType", default: "none")
    }
}

extension UserSetting where Value == Int {
    /// The number of columns of the grid; the default is 4.
    public static var tilesPerRow: Self { UserSetting("tilesPerRow", default: 4) }
    /// The grouping of assets, by the app's numbers; the default is 0.
    public static var groupAssetsBy: Self { UserSetting("groupAssetsBy", default: 0) }
    /// The greatest number of cached thumbnails; the default is 10,000.
    public static var thumbnailCacheSize: Self {
        UserSetting("thumbnailCacheSize", default: 10_000)
    }
    /// The greatest number of cached previews; the default is 350.
    public static var imageCacheSize: Self { UserSetting("imageCacheSize", default: 350) }
    /// The greatest number of cached thumbnails of albums; the default is 200.
    public static var albumThumbnailCacheSize: Self {
        UserSetting("albumThumbnailCacheSize", default: 200)
    }
    /// The least age in days of assets that are removed when space is freed; the default is 0: no age is
    /// chosen, and nothing is removed.
    public static var cleanupCutoffDaysAgo: Self {
        UserSetting("cleanupCutoffDaysAgo", default: 0)
    }
}

extension UserSetting where Value == [String] {
    /// The albums whose assets stay on the device when space is freed; the default is none.
    public static var cleanupKeepAlbumIds: Self { UserSetting("cleanupKeepAlbumIds", default: []) }
}
