// The settings of each user: one register for each field. Spec/model/views.md.

import Daybook
import HashTreeCollections

/// A user's settings for offline behaviour.
public struct OfflinePreferences: Hashable, Sendable {
    /// Whose settings.
    public let userId: String
    /// Download saved cities by themselves. Off unless asked for.
    public var autoDownloadEnabled = false
    /// Download on Wi-Fi only.
    public var wifiOnlyDownload = true
    /// Most storage for cached cities, in bytes: 50 to 500 MB of 1,048,576 bytes.
    public var maxStorageLimit = 100 * 1_048_576
    /// Synchronise when online.
    public var autoSync = true
    /// Warn about data older than 30 days.
    public var showStaleDataWarning = true
    /// Days after which a city that was not looked at is deleted: 1 to 90.
    public var pruneAfterDays = 7
    /// When a setting was changed last; nil if none ever was.
    public internal(set) var updatedAt: Timestamp?

    /// What `maxStorageLimit` may be.
    public static let storageLimits = 50 * 1_048_576...500 * 1_048_576
    /// What `pruneAfterDays` may be.
    public static let pruneDays = 1...90

    /// The defaults.
    public init(userId: String) { self.userId = userId }
}

/// The settings of all users.
public struct PreferencesView: ListableView {
    public static let name = "preferences"
    public static let version = 1
    public static let eventTypes: Set<String>? = [PreferencesUpdated.type]

    private struct Registers: Sendable {
        var autoDownloadEnabled: Register<Bool>?
        var wifiOnlyDownload: Register<Bool>?
        var maxStorageLimit: Register<Int>?
        var autoSync: Register<Bool>?
        var showStaleDataWarning: Register<Bool>?
        var pruneAfterDays: Register<Int>?

        /// The newest event: it holds at least one register, since it set one.
        var newest: Stamp? {
            [
                autoDownloadEnabled?.stamp, wifiOnlyDownload?.stamp, maxStorageLimit?.stamp,
                autoSync?.stamp, showStaleDataWarning?.stamp, pruneAfterDays?.stamp,
            ].compactMap(\.self).max()
        }
    }

    private var users: TreeDictionary<EntityID, Registers> = [:]
    /// Events whose data no rule can make sense of.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        guard event.type == PreferencesUpdated.type else { return }
        guard let update = try? event.payload(as: PreferencesUpdated.self)
        else { return ignored += 1 }
        let stamp = event.stamp
        let id = EntityID(update.userId)
        var user = users[id] ?? Registers()
        let changes = update.changes
        if let value = changes.autoDownloadEnabled { user.autoDownloadEnabled.set(value, stamp) }
        if let value = changes.wifiOnlyDownload { user.wifiOnlyDownload.set(value, stamp) }
        if let value = changes.maxStorageLimit { user.maxStorageLimit.set(value, stamp) }
        if let value = changes.autoSync { user.autoSync.set(value, stamp) }
        if let value = changes.showStaleDataWarning { user.showStaleDataWarning.set(value, stamp) }
        if let value = changes.pruneAfterDays { user.pruneAfterDays.set(value, stamp) }
        users[id] = user
    }

    /// A user's settings, defaults included. O(1).
    public subscript(userId: String) -> OfflinePreferences {
        var result = OfflinePreferences(userId: userId)
        guard let user = users[EntityID(userId)] else { return result }
        if let value = user.autoDownloadEnabled?.value { result.autoDownloadEnabled = value }
        if let value = user.wifiOnlyDownload?.value { result.wifiOnlyDownload = value }
        if let value = user.maxStorageLimit?.value { result.maxStorageLimit = value }
        if let value = user.autoSync?.value { result.autoSync = value }
        if let value = user.showStaleDataWarning?.value { result.showStaleDataWarning = value }
        if let value = user.pruneAfterDays?.value { result.pruneAfterDays = value }
        result.updatedAt = user.newest?.time
        return result
    }

    /// The users who changed a setting, sorted. O(users).
    public var userIDs: [String] { users.keys.sorted().map(\.string) }

    public func rows() -> [ViewRow] {
        userIDs.map { userId in
            let preferences = self[userId]
            var row = ViewRow()
            row.add("userId", userId)
            row.add("autoDownloadEnabled", preferences.autoDownloadEnabled)
            row.add("wifiOnlyDownload", preferences.wifiOnlyDownload)
            row.add("maxStorageLimit", preferences.maxStorageLimit)
            row.add("autoSync", preferences.autoSync)
            row.add("showStaleDataWarning", preferences.showStaleDataWarning)
            row.add("pruneAfterDays", preferences.pruneAfterDays)
            row.add("updatedAt", preferences.updatedAt?.description)
            return row
        }
    }
}

extension PreferencesView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        func add(_ register: Register<Bool>?) {
            writer.add(register != nil)
            guard let register else { return }
            writer.add(register.value)
            writer.add(register.stamp)
        }
        func add(_ register: Register<Int>?) {
            writer.add(register != nil)
            guard let register else { return }
            writer.add(count: register.value)
            writer.add(register.stamp)
        }
        writer.add(count: ignored)
        var entries = writer.entries(count: users.count)
        for (userId, user) in users {
            writer.begin(userId, of: &entries)
            add(user.autoDownloadEnabled)
            add(user.wifiOnlyDownload)
            add(user.maxStorageLimit)
            add(user.autoSync)
            add(user.showStaleDataWarning)
            add(user.pruneAfterDays)
        }
        writer.end(entries)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        func flag(_ reader: inout StateReader) throws(EventError) -> Register<Bool>? {
            guard try reader.bool() else { return nil }
            return Register(try reader.bool(), try reader.stamp())
        }
        func number(_ reader: inout StateReader) throws(EventError) -> Register<Int>? {
            guard try reader.bool() else { return nil }
            return Register(try reader.nonNegative(), try reader.stamp())
        }
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var users = self.users
        try reader.entries { (reader, userId) throws(EventError) in
            let user = Registers(
                autoDownloadEnabled: try flag(&reader), wifiOnlyDownload: try flag(&reader),
                maxStorageLimit: try number(&reader), autoSync: try flag(&reader),
                showStaleDataWarning: try flag(&reader), pruneAfterDays: try number(&reader))
            guard user.newest != nil else { throw reader.fault("a user has set nothing") }
            users[userId] = user
        }
        try reader.finish()
        self.users = users
    }
}

extension PreferencesView: CompactableView {
    /// An event is needed while it holds any setting that it names. The user's newest event always
    /// does.
    public func retention(of event: Event) -> Retention {
        guard event.type == PreferencesUpdated.type else { return .unconcerned }
        guard let update = try? event.payload(as: PreferencesUpdated.self)
        else { return .needed(.notUnderstood) }
        return .of(event, heldBy: stamps(of: update.changes, for: update.userId))
    }

    /// The LWW timestamps of the settings that a change names; nil for one that nothing has set.
    func stamps(of changes: PreferencesUpdated.Changes, for userId: String) -> [Stamp?] {
        let user = users[EntityID(userId)]
        var holders: [Stamp?] = []
        if changes.autoDownloadEnabled != nil { holders.append(user?.autoDownloadEnabled?.stamp) }
        if changes.wifiOnlyDownload != nil { holders.append(user?.wifiOnlyDownload?.stamp) }
        if changes.maxStorageLimit != nil { holders.append(user?.maxStorageLimit?.stamp) }
        if changes.autoSync != nil { holders.append(user?.autoSync?.stamp) }
        if changes.showStaleDataWarning != nil { holders.append(user?.showStaleDataWarning?.stamp) }
        if changes.pruneAfterDays != nil { holders.append(user?.pruneAfterDays?.stamp) }
        return holders
    }
}
