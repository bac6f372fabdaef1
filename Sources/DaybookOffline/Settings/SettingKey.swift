// The names of settings with the types of their values: those that the documents list, and those that
// an app adds. Secrets have keys of another type: SecretKey in Replay. Spec/model/settings.md, SET-1 and SET-3.

import Daybook

/// The key of a stored value that has no default.
///
/// ```swift
/// extension SettingKey where Value == String {
///     static var homeAirport: Self { SettingKey("homeAirport") }
/// }
/// ```
public struct SettingKey<Value: SettingValue>: Hashable, Sendable {
    /// The key as events hold it.
    public let name: String

    /// Names a key. Names of secrets are refused when something is put under them.
    public init(_ name: String) { self.name = name }
}

/// The key of a user's setting: there is always a value, the default where none was put.
public struct UserSetting<Value: SettingValue>: Hashable, Sendable {
    /// The key.
    public let key: SettingKey<Value>
    /// The value where none was put.
    public let defaultValue: Value

    /// Names a setting.
    public init(_ name: String, default defaultValue: Value) {
        key = SettingKey(name)
        self.defaultValue = defaultValue
    }
}

extension SettingKey where Value == Int {
    /// The version that the data of the app have: what migrations lead to. See `MigrationPlan`.
    public static var version: Self { SettingKey("version") }
    /// A hash of the device's id.
    public static var deviceIdHash: Self { SettingKey("deviceIdHash") }
    /// Minutes to wait before a backup starts.
    public static var backupTriggerDelay: Self { SettingKey("backupTriggerDelay") }
}

extension SettingKey where Value == String {
    /// The ETag of the last synchronisation of assets.
    public static var assetETag: Self { SettingKey("assetETag") }
    /// An id of this device.
    public static var deviceId: Self { SettingKey("deviceId") }
    /// The server's address.
    public static var serverUrl: Self { SettingKey("serverUrl") }
    /// The address of the server's interface.
    public static var serverEndpoint: Self { SettingKey("serverEndpoint") }
}

extension SettingKey where Value == Bool {
    /// Whether backups start by themselves.
    public static var autoBackup: Self { SettingKey("autoBackup") }
    /// Whether backups run in the background.
    public static var backgroundBackup: Self { SettingKey("backgroundBackup") }
    /// Whether backups wait for Wi-Fi.
    public static var backupRequireWifi: Self { SettingKey("backupRequireWifi") }
    /// Whether backups wait for the charger.
    public static var backupRequireCharging: Self { SettingKey("backupRequireCharging") }
}

extension SettingKey where Value == Timestamp {
    /// Since when backups fail.
    public static var backupFailedSince: Self { SettingKey("backupFailedSince") }
}

extension SettingKey {
    /// The user who is logged in, as the app describes one.
    public static func currentUser(as type: Value.Type) -> Self { SettingKey("currentUser") }
}

extension UserSetting where Value == Bool {
    /// Whether previews are loaded: yes.
    public static var loadPreview: Self { UserSetting("loadPreview", default: true) }
    /// Whether images are loaded in full resolution: no.
    public static var loadOriginal: Self { UserSetting("loadOriginal", default: false) }
    /// Whether colours follow the system: no.
    public static var dynamicTheme: Self { UserSetting("dynamicTheme", default: false) }
    /// Whether the interface is colourful: yes.
    public static var colorfulInterface: Self { UserSetting("colorfulInterface", default: true) }
    /// Whether the grid's layout is dynamic: no.
    public static var dynamicLayout: Self { UserSetting("dynamicLayout", default: false) }
    /// Whether it is shown where an asset is stored: yes.
    public static var storageIndicator: Self { UserSetting("storageIndicator", default: true) }
    /// Whether videos begin again at their end: yes.
    public static var loopVideo: Self { UserSetting("loopVideo", default: true) }
    /// Whether videos start by themselves: yes.
    public static var autoPlayVideo: Self { UserSetting("autoPlayVideo", default: true) }
    /// Whether the device answers touches with a tick: yes.
    public static var enableHapticFeedback: Self {
        UserSetting("enableHapticFeedback", default: true)
    }
    /// Whether favourites stay on the device when space is freed: yes.
    public static var cleanupKeepFavorites: Self {
        UserSetting("cleanupKeepFavorites", default: true)
    }
}

extension UserSetting where Value == String {
    /// `light`, `dark` or `system`, the default.
    public static var themeMode: Self { UserSetting("themeMode", default: "system") }
    /// The accent colour by its name in the app; `default` unless set.
    public static var primaryColor: Self { UserSetting("primaryColor", default: "default") }
    /// What stays on the device when space is freed: `photos`, `videos`, `both`, or `none`, the
    /// default.
    public static var cleanupKeepMediaType: Self {
        UserSetting("cleanupKeepMediaType", default: "none")
    }
}

extension UserSetting where Value == Int {
    /// Columns of the grid: 4.
    public static var tilesPerRow: Self { UserSetting("tilesPerRow", default: 4) }
    /// How assets are grouped, by the app's numbers: 0.
    public static var groupAssetsBy: Self { UserSetting("groupAssetsBy", default: 0) }
    /// Most cached thumbnails: 10,000.
    public static var thumbnailCacheSize: Self {
        UserSetting("thumbnailCacheSize", default: 10_000)
    }
    /// Most cached previews: 350.
    public static var imageCacheSize: Self { UserSetting("imageCacheSize", default: 350) }
    /// Most cached thumbnails of albums: 200.
    public static var albumThumbnailCacheSize: Self {
        UserSetting("albumThumbnailCacheSize", default: 200)
    }
    /// How many days old an asset must be at least to go when space is freed: 0, any.
    public static var cleanupCutoffDaysAgo: Self {
        UserSetting("cleanupCutoffDaysAgo", default: 0)
    }
}

extension UserSetting where Value == [String] {
    /// Albums whose assets stay on the device when space is freed: none.
    public static var cleanupKeepAlbumIds: Self { UserSetting("cleanupKeepAlbumIds", default: []) }
}
