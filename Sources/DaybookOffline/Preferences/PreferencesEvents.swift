// The event that changes a user's settings for offline behaviour. Spec/model/events.md.

import Daybook

/// Some settings of a user were changed.
public struct PreferencesUpdated: DeclaredPayload, Hashable {
    public static let type = "daybook.preferences.updated"
    /// The user of the settings.
    public var userId: String
    /// The changed settings.
    public var changes: Changes  // .changes(Changes.self)

    /// New values of some settings; nil leaves a setting unchanged.
    public struct Changes: DeclaredObject, Hashable {
        /// Download saved cities automatically. False by default.
        public var autoDownloadEnabled: Bool?
        /// Download on Wi-Fi only.
        public var wifiOnlyDownload: Bool?
        /// The storage limit for cached cities, in bytes: 50 to 500 MiB.
        public var maxStorageLimit: Int?
        /// Synchronise when online.
        public var autoSync: Bool?
        /// Warn about data older than 30 days.
        public var showStaleDataWarning: Bool?
        /// The days without access after which a cached city is deleted: 1 to 90.
        public var pruneAfterDays: Int?

        /// Creates empty changes.
        public init() {}

        /// The settings of a user who has changed none. Each has a value.
        public static let defaults: Changes = {
            var defaults = Changes()
            defaults.autoDownloadEnabled = false
            defaults.wifiOnlyDownload = true
            defaults.maxStorageLimit = 100 * 1_048_576
            defaults.autoSync = true
            defaults.showStaleDataWarning = true
            defaults.pruneAfterDays = 7
            return defaults
        }()

        /// Returns the settings whose values differ from those of `other`, with the values of this instance.
        func differences(from other: Changes) throws(EventError) -> Changes {
            let (new, old) = (
                try JSONFields(try memberJSON()), try JSONFields(try other.memberJSON())
            )
            var changed = JSONObjectWriter()
            for name in new.names {
                guard let value = new.raw(named: name), value != old.raw(named: name) else {
                    continue
                }
                changed.appendMember(name, raw: value)
            }
            return try Changes(members: try JSONFields(changed.finished()))
        }
    }

    public var subject: String? { userId }
    public var lane: String? { "preferences:\(userId)" }
}
