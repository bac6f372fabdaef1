// Settings with few keys, so that they affect each other. Part of RandomEvents.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    /// Draws the data of any event about a setting.
    package mutating func settingPayload() throws -> any EventPayload {
        let key = entityID()
        switch int(in: 0...4) {
        case 0: return SettingDeleted(key: key)
        case 1: return try SettingPut(key: key, value: bool())
        case 2: return try SettingPut(key: key, value: int(in: -3...3))
        case 3: return try SettingPut(key: key, value: array(0...2) { $0.entityID() })
        default: return try SettingPut(key: key, value: entityID())
        }
    }
}
