// Reads and writes settings. Secrets are stored in the secret store, all other settings in the log.
// Spec/model/settings.md.

import Daybook

/// The settings of a store.
///
/// ```swift
/// try await store.settings.put(.themeMode, "dark")
/// let mode = store.settings.get(.themeMode)                 // "dark"; "system" if never put
/// let url = store.settings.tryGet(.serverUrl)               // nil if never put
/// try await store.settings.put(.accessToken, AccessToken("…"))  // into the secret store
/// ```
public struct SettingsCommands: Sendable {
    private let store: EventStore
    private let secrets: (any SecretStore)?

    init(_ store: EventStore, _ secrets: (any SecretStore)?) {
        self.store = store
        self.secrets = secrets
    }

    // MARK: Reading

    /// Returns the value of a setting, or its default. O(bytes of the value).
    public func get<Value>(_ setting: UserSetting<Value>) -> Value {
        store.view(SettingsView.self)[setting]
    }

    /// Returns the value of a setting, or `fallback` instead of its default. O(bytes of the value).
    public func get<Value>(_ setting: UserSetting<Value>, _ fallback: Value) -> Value {
        tryGet(setting.key) ?? fallback
    }

    /// Returns the value of a key; the fallback if there is none, or one of another type. O(bytes of the
    /// value).
    public func get<Value>(_ key: SettingKey<Value>, _ fallback: Value) -> Value {
        tryGet(key) ?? fallback
    }

    /// Returns the value of a key; nil if there is none, or one of another type. O(bytes of the value).
    public func tryGet<Value>(_ key: SettingKey<Value>) -> Value? {
        store.view(SettingsView.self)[key]
    }

    /// Returns the value that was put for a setting; nil if its default applies. O(bytes of the value).
    public func tryGet<Value>(_ setting: UserSetting<Value>) -> Value? { tryGet(setting.key) }

    /// The value of a setting, now and as it changes.
    public func value<Value>(_ setting: UserSetting<Value>) -> ViewQuery<Value> {
        store.query(SettingsView.self) { $0[setting] }
    }

    /// The value of a key, now and as it changes; nil while there is none.
    public func value<Value>(_ key: SettingKey<Value>) -> ViewQuery<Value?> {
        store.query(SettingsView.self) { $0[key] }
    }

    // MARK: Writing

    /// Puts a value. If it equals the current one, nothing is recorded. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for an empty key or that of a secret, (`tooLarge`) for a
    ///   value of more than 1 MiB; what the value's encoder throws; `LogError` as
    ///   `EventStore.append`.
    public func put<Value>(_ key: SettingKey<Value>, _ value: Value) async throws {
        try await store.write { try $0.put(key, value) }
    }

    /// Puts the value of a setting, like the method for keys. A value equal to the default is recorded,
    /// too, and remains if a release of the app changes the default.
    public func put<Value>(_ setting: UserSetting<Value>, _ value: Value) async throws {
        try await put(setting.key, value)
    }

    /// Deletes a value. If there is none, nothing is recorded. Durable on return.
    ///
    /// - Throws: `LogError` as `EventStore.append`.
    public func delete<Value>(_ key: SettingKey<Value>) async throws {
        try await store.write(drawingOnReserve: true) { try $0.delete(key) }
    }

    /// Deletes the value of a setting, so that its default applies again. Like the method for keys.
    public func delete<Value>(_ setting: UserSetting<Value>) async throws {
        try await delete(setting.key)
    }

    // MARK: Secrets

    /// Returns the value of a secret; nil if there is none.
    ///
    /// - Throws: `EventError` (`refused`) for a store without a secret store; `SecretStoreError`;
    ///   `LogError` (`closed`, `suspended`).
    public func tryGet<Value>(_ key: SecretKey<Value>) async throws -> Value? {
        try await secretStore(for: key.name).value(of: key)
    }

    /// Writes a secret to the secret store, and nothing to the log. Durable on return. Credentials that have
    /// already read a token do not read the new one.
    ///
    /// - Throws: as `tryGet`.
    public func put<Value>(_ key: SecretKey<Value>, _ value: Value) async throws {
        let secrets = try await secretStore(for: key.name)
        try await secrets.write(value, for: key)
        do { try await store.checkOpen() } catch {
            // The store was closed or erased meanwhile: the secret must not remain.
            try await secrets.delete(key.name)
            throw error
        }
    }

    /// Deletes a secret. Durable on return.
    ///
    /// - Throws: as `tryGet`.
    public func delete<Value>(_ key: SecretKey<Value>) async throws {
        try await secretStore(for: key.name).delete(key.name)
    }

    private func secretStore(for name: String) async throws -> any SecretStore {
        try await store.checkOpen()
        guard let secrets else {
            throw EventError(
                .refused,
                "cannot access the secret \(name): the store was opened without a secret store; "
                    + "open it with one")
        }
        return secrets
    }
}
