// A user changes some of the settings that steer offline behaviour. Spec/model/events.md.

import Daybook

/// Some settings of a user were changed.
public struct PreferencesUpdated: EventPayload, Hashable {
    public static let type = "daybook.preferences.updated"
    /// Whose settings.
    public var userId: String
    /// What changed.
    public var changes: Changes

    /// New values of some settings; nil leaves a setting as it is.
    public struct Changes: Hashable, Sendable {
        /// Download saved cities by themselves.
        public var autoDownloadEnabled: Bool?
        /// Download on Wi-Fi only.
        public var wifiOnlyDownload: Bool?
        /// Most storage for cached cities, in bytes.
        public var maxStorageLimit: Int?
        /// Synchronise when online.
        public var autoSync: Bool?
        /// Warn about data older than 30 days.
        public var showStaleDataWarning: Bool?
        /// Days after which a city that was not looked at is deleted.
        public var pruneAfterDays: Int?

        /// No changes.
        public init() {}
    }

    private static let settings: Set<String> = [
        "autoDownloadEnabled", "wifiOnlyDownload", "maxStorageLimit", "autoSync",
        "showStaleDataWarning", "pruneAfterDays",
    ]

    /// Creates the event's data.
    public init(userId: String, changes: Changes) {
        self.userId = userId
        self.changes = changes
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        guard let raw = fields.raw("changes") else {
            throw EventError(.invalidData, "data.changes is missing")
        }
        let given = try JSONFields(raw)
        guard !given.names.isEmpty else {
            throw EventError(.invalidData, "data.changes changes nothing")
        }
        for name in given.names where !Self.settings.contains(name) {
            throw EventError(.invalidData, "data.changes names an unknown setting, \(name)")
        }
        changes = Changes()
        changes.autoDownloadEnabled = try given.bool("autoDownloadEnabled")
        changes.wifiOnlyDownload = try given.bool("wifiOnlyDownload")
        changes.maxStorageLimit = try given.count("maxStorageLimit")
        changes.autoSync = try given.bool("autoSync")
        changes.showStaleDataWarning = try given.bool("showStaleDataWarning")
        changes.pruneAfterDays = try given.count("pruneAfterDays")
    }

    public var subject: String? { userId }
    public var lane: String? { "preferences:\(userId)" }

    public func json() -> [UInt8] {
        var inner = JSONObjectWriter()
        if let value = changes.autoDownloadEnabled { inner.add("autoDownloadEnabled", value) }
        if let value = changes.wifiOnlyDownload { inner.add("wifiOnlyDownload", value) }
        if let value = changes.maxStorageLimit { inner.add("maxStorageLimit", value) }
        if let value = changes.autoSync { inner.add("autoSync", value) }
        if let value = changes.showStaleDataWarning { inner.add("showStaleDataWarning", value) }
        if let value = changes.pruneAfterDays { inner.add("pruneAfterDays", value) }
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        writer.add("changes", raw: inner.finished())
        return writer.finished()
    }
}
