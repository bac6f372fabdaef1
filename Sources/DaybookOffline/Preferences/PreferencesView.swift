// The settings of each user: one register for each field. Spec/model/views.md.

import Daybook

/// A user's settings for offline behaviour: `autoDownloadEnabled`, `wifiOnlyDownload`, `maxStorageLimit`,
/// `autoSync`, `showStaleDataWarning` and `pruneAfterDays` of `PreferencesUpdated.Changes`, each with its
/// value or its default.
@dynamicMemberLookup
public struct OfflinePreferences: Hashable, Sendable {
    /// The user's id.
    public let userId: String
    /// The time of the last change; nil if there was none.
    public internal(set) var updatedAt: Timestamp?
    /// The values; none is nil.
    private(set) var values = PreferencesUpdated.Changes.defaults

    /// The accepted values of `maxStorageLimit`.
    public static let storageLimits = 50 * 1_048_576...500 * 1_048_576
    /// The accepted values of `pruneAfterDays`.
    public static let pruneDays = 1...90

    /// Creates the defaults.
    public init(userId: String) { self.userId = userId }

    init(userId: String, _ registers: MemberRegisters<PreferencesUpdated.Changes>) {
        self.userId = userId
        values = registers.values
        updatedAt = registers.newest?.time
    }

    /// The bytes that cached cities may have: `maxStorageLimit`, or the greatest accepted value if an imported
    /// event has set one that is not accepted. Such a value must not delete cities.
    var storageLimit: Int {
        Self.storageLimits.contains(self.maxStorageLimit)
            ? self.maxStorageLimit : Self.storageLimits.upperBound
    }

    /// The days without access after which a city is deleted: `pruneAfterDays`, or the greatest accepted value
    /// likewise.
    var daysUntilPruning: Int {
        Self.pruneDays.contains(self.pruneAfterDays)
            ? self.pruneAfterDays : Self.pruneDays.upperBound
    }

    /// The value of a setting.
    public subscript<Value>(
        dynamicMember setting: WritableKeyPath<PreferencesUpdated.Changes, Value?>
    ) -> Value {
        get {
            guard let value = values[keyPath: setting] else {
                preconditionFailure("a setting without a default")
            }
            return value
        }
        set { values[keyPath: setting] = newValue }
    }
}

/// The settings of all users.
public struct PreferencesView: RegisterView {
    public static let name = "preferences"
    public static let version = 1
    public static let eventTypes: Set<String>? = [PreferencesUpdated.type]
    public static let keyNames = ["userId"]
    public var registers = RegisterTable(initial: PreferencesUpdated.Changes.defaults)

    public init() {}

    public static func change(
        in event: Event
    ) throws -> RegisterChange<PreferencesUpdated.Changes> {
        let update = try event.payload(as: PreferencesUpdated.self)
        return RegisterChange(of: [update.userId], to: update.changes)
    }

    /// A user's settings, defaults included. O(1).
    public subscript(userId: String) -> OfflinePreferences {
        registers[userId].map { OfflinePreferences(userId: userId, $0) }
            ?? OfflinePreferences(userId: userId)
    }

    /// The ids of the users who changed a setting, sorted. O(users · log users).
    public var userIDs: [String] { keys.map { $0[0] } }

    /// The number of events with invalid data.
    public var ignored: Int { registers.ignored }
}
