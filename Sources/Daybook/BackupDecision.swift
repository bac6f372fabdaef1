// Whether a backup may start now, by the user's settings. Uploading is the app's. Spec/media.md,
// MED-21.

import EventSourcing
import Foundation
import OfflineModel
import Replay

/// How things are on the device when a backup might start.
public struct BackupConditions: Hashable, Sendable {
    /// The network.
    public var network: NetworkPath
    /// Whether the device is on its charger.
    public var isCharging: Bool
    /// Whether the app is in the background.
    public var isInBackground: Bool

    /// Creates conditions.
    public init(network: NetworkPath, isCharging: Bool, isInBackground: Bool = false) {
        self.network = network
        self.isCharging = isCharging
        self.isInBackground = isInBackground
    }
}

/// Whether a backup may start.
public enum BackupDecision: Hashable, Sendable {
    /// It may.
    case start
    /// It may at this moment, if nothing else changes.
    case wait(until: Timestamp)
    /// It may not, for a reason.
    case no(Reason)

    /// Why a backup may not start.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// `autoBackup` is off or was never put.
        case off
        /// `backgroundBackup` is off or was never put, and the app is in the background.
        case offInBackground
        /// There is no network.
        case noNetwork
        /// `backupRequireWifi` is on, and the network is paid by volume.
        case notOnWiFi
        /// `backupRequireCharging` is on, and the device is not on its charger.
        case notCharging
    }
}

extension DeviceMediaCommands {
    /// Whether a backup may start, by the settings of this store. O(1).
    ///
    /// - Parameters:
    ///   - conditions: how things are.
    ///   - changedAt: when something was changed last that is to be backed up; a backup waits
    ///     `backupTriggerDelay` minutes from then on. nil for one that has waited.
    ///   - now: the moment that is asked about.
    public func backupDecision(
        under conditions: BackupConditions, changedAt: Date? = nil, at now: Date = Date()
    ) -> BackupDecision {
        let settings = store.view(SettingsView.self)
        guard settings[.autoBackup] ?? false else { return .no(.off) }
        guard !conditions.isInBackground || settings[.backgroundBackup] ?? false else {
            return .no(.offInBackground)
        }
        guard conditions.network != .none else { return .no(.noNetwork) }
        guard conditions.network == .wifi || !(settings[.backupRequireWifi] ?? false) else {
            return .no(.notOnWiFi)
        }
        guard conditions.isCharging || !(settings[.backupRequireCharging] ?? false) else {
            return .no(.notCharging)
        }
        guard let changedAt, let minutes = settings[.backupTriggerDelay] else { return .start }
        let start = changedAt.addingTimeInterval(Double(max(0, minutes)) * 60)
        return start <= now ? .start : .wait(until: Timestamp(start))
    }
}
