// Decides by the user's settings if a backup may start now. The app uploads. Spec/model/media.md, MED-21.

import Daybook
import Foundation

/// The state of the device that decides about a backup.
public struct BackupConditions: Hashable, Sendable {
    /// The network.
    public var network: NetworkPath
    /// True if the device is charging.
    public var isCharging: Bool
    /// True if the app is in the background.
    public var isInBackground: Bool

    /// Creates conditions.
    public init(network: NetworkPath, isCharging: Bool, isInBackground: Bool = false) {
        self.network = network
        self.isCharging = isCharging
        self.isInBackground = isInBackground
    }
}

/// A decision about the start of a backup.
public enum BackupDecision: Hashable, Sendable {
    /// The backup may start now.
    case start
    /// The backup may start at this time, if settings and conditions do not change.
    case wait(until: Timestamp)
    /// The backup may not start.
    case refused(Reason)

    /// The reason why a backup may not start.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// `autoBackup` is off or was never put.
        case off
        /// `backgroundBackup` is off or was never put, and the app is in the background.
        case offInBackground
        /// There is no network.
        case noNetwork
        /// `backupRequireWifi` is on, and the network is metered.
        case metered
        /// `backupRequireCharging` is on, and the device is not charging.
        case notCharging
    }
}

extension DeviceMediaCommands {
    /// Decides by the settings of this store if a backup may start. A value of another type counts as the
    /// one that prevents a backup: `backupRequireWifi` and `backupRequireCharging` as on, the others as
    /// off. O(1).
    ///
    /// - Parameters:
    ///   - conditions: the device's network, charger and app state.
    ///   - changedAt: the time of the last change to back up; the backup waits `backupTriggerDelay` minutes
    ///     from then on. Nil to start without delay.
    ///   - now: the time of the decision.
    public func backupDecision(
        under conditions: BackupConditions, changedAt: Date? = nil, at now: Date = Date()
    ) -> BackupDecision {
        let settings = store.view(SettingsView.self)
        guard settings[.autoBackup] ?? false else { return .refused(.off) }
        guard !conditions.isInBackground || settings[.backgroundBackup] ?? false else {
            return .refused(.offInBackground)
        }
        guard conditions.network != .none else { return .refused(.noNetwork) }
        func isRequired(_ key: SettingKey<Bool>) -> Bool {
            settings[key] ?? settings.isUnreadable(key)
        }
        guard conditions.network == .wifi || !isRequired(.backupRequireWifi) else {
            return .refused(.metered)
        }
        guard conditions.isCharging || !isRequired(.backupRequireCharging) else {
            return .refused(.notCharging)
        }
        guard let changedAt, let minutes = settings[.backupTriggerDelay] else { return .start }
        let delay = Double(max(0, minutes)) * 60
        // The age of a change of a clock that was ahead is unknown: it must not stop backups until that time.
        guard abs(now.timeIntervalSince(changedAt)) < delay else { return .start }
        return .wait(until: Timestamp(changedAt.addingTimeInterval(delay)))
    }
}
