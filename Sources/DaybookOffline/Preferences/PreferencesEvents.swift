// A user changes some of the settings that steer offline behaviour. Spec/model/events.md.

import Daybook

/// Some settings of a user were changed.
public struct PreferencesUpdated: DeclaredPayload, Hashable {
    public static let type = "daybook.preferences.updated"
    /// Whose settings.
    public var userId: String
    /// What changed.
    public var changes: Changes

    /// New values of some settings; nil leaves a setting as it is.
    public struct Changes: DeclaredObject, Hashable {
        /// Download saved cities by themselves. Off unless asked for.
        public var autoDownloadEnabled: Bool?
        /// Download on Wi-Fi only.
        public var wifiOnlyDownload: Bool?
        /// Most storage for cached cities, in bytes: 50 to 500 MB of 1,048,576 bytes.
        public var maxStorageLimit: Int?
        /// Synchronise when online.
        public var autoSync: Bool?
        /// Warn about data older than 30 days.
        public var showStaleDataWarning: Bool?
        /// Days after which a city that was not looked at is deleted: 1 to 90.
        public var pruneAfterDays: Int?

        /// No changes.
        public init() {}

        /// The settings of a user without a change. Each has a value.
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

        public static var example: Self { Self() }

        public mutating func declareMembers(
            _ members: inout some MemberVisitor
        ) throws(EventError) {
            try members.optional("autoDownloadEnabled", &autoDownloadEnabled, .flag)
            try members.optional("wifiOnlyDownload", &wifiOnlyDownload, .flag)
            try members.optional("maxStorageLimit", &maxStorageLimit, .count)
            try members.optional("autoSync", &autoSync, .flag)
            try members.optional("showStaleDataWarning", &showStaleDataWarning, .flag)
            try members.optional("pruneAfterDays", &pruneAfterDays, .count)
        }

        /// The settings that have another value here.
        func differences(from other: Changes) throws(EventError) -> Changes {
            let (new, old) = (
                try JSONFields(try memberJSON()), try JSONFields(try other.memberJSON())
            )
            var changed = JSONObjectWriter()
            for name in new.names {
                guard let value = new.raw(named: name), value != old.raw(named: name) else {
                    continue
                }
                changed.add(name, raw: value)
            }
            return try Changes(members: try JSONFields(changed.finished()))
        }
    }

    /// Creates the event's data.
    public init(userId: String, changes: Changes) {
        self.userId = userId
        self.changes = changes
    }

    public static var example: Self {
        Self(userId: "-", changes: Changes())
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("changes", &changes, .changes(Changes.self))
    }

    public var subject: String? { userId }
    public var lane: String? { "preferences:\(userId)" }
}
