// Puts and deletes settings in a transaction, together with other events. Spec/model/settings.md, SET-1.

import Daybook

extension EventStore.Transaction {
    /// Puts a value, and replaces also one that was put while the clock was ahead. If the value is equal,
    /// nothing is recorded.
    ///
    /// - Throws: `EventError` (`refused`) for an empty key or that of a secret; what the value's
    ///   encoder throws.
    public mutating func put<Value>(_ key: SettingKey<Value>, _ value: Value) throws {
        let put = try SettingPut(key: key.name, value: value)
        let settings = view(SettingsView.self)
        guard settings.json(of: key.name) != put.value else { return }
        try append(put, replacing: settings.lwwTimestamp(of: key.name))
    }

    /// Puts the value of a setting, like the method for keys.
    public mutating func put<Value>(_ setting: UserSetting<Value>, _ value: Value) throws {
        try put(setting.key, value)
    }

    /// Deletes a value. If there is none, nothing is recorded.
    public mutating func delete<Value>(_ key: SettingKey<Value>) throws {
        let settings = view(SettingsView.self)
        guard settings.json(of: key.name) != nil else { return }
        try append(SettingDeleted(key: key.name), replacing: settings.lwwTimestamp(of: key.name))
    }

    /// Deletes the value of a setting, like the method for keys.
    public mutating func delete<Value>(_ setting: UserSetting<Value>) throws {
        try delete(setting.key)
    }
}
