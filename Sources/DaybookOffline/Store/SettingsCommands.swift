// Settings as an app reads and writes them, secret ones included: those go to the secret store, all
// others to the log. Spec/model/settings.md.

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

    /// The value of a setting, or its default. O(bytes of the value).
    public func get<Value>(_ setting: UserSetting<Value>) -> Value {
        store.view(SettingsView.self)[setting]
    }

    /// The value of a setting, or another one than its default. O(bytes of the value).
    public func get<Value>(_ setting: UserSetting<Value>, _ fallback: Value) -> Value {
        tryGet(setting.key) ?? fallback
    }

    /// The value of a key; the fallback where there is none, or one of another type. O(bytes of the
    /// value).
    public func get<Value>(_ key: SettingKey<Value>, _ fallback: Value) -> Value {
        tryGet(key) ?? fallback
    }

    /// The value of a key; nil where there is none, or one of another type. O(bytes of the value).
    public func tryGet<Value>(_ key: SettingKey<Value>) -> Value? {
        store.view(SettingsView.self)[key]
    }

    /// What was put for a setting; nil where its default counts. O(bytes of the value).
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

    /// Puts a value. If it is there already, nothing is recorded. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for an empty key or that of a secret, (`tooLarge`) for a
    ///   value of more than 1 MiB; what the value's encoder throws; `LogError` as
    ///   `EventStore.append`.
    public func put<Value>(_ key: SettingKey<Value>, _ value: Value) async throws {
        try await store.write { try $0.put(key, value) }
    }

    /// Puts the value of a setting; its default as well, which then stays if the app's default
    /// becomes another. As the one for keys.
    public func put<Value>(_ setting: UserSetting<Value>, _ value: Value) async throws {
        try await put(setting.key, value)
    }

    /// Deletes a value. If there is none, nothing is recorded. Durable on return.
    ///
    /// - Throws: `LogError` as `EventStore.append`.
    public func delete<Value>(_ key: SettingKey<Value>) async throws {
        try await store.write(drawingOnReserve: true) { try $0.delete(key) }
    }

    /// Deletes what was put for a setting: its default counts again. As the one for keys.
    public func delete<Value>(_ setting: UserSetting<Value>) async throws {
        try await delete(setting.key)
    }

    // MARK: Secrets

    /// The value of a secret; nil if there is none.
    ///
    /// - Throws: `EventError` (`refused`) for a store without a secret store; `SecretStoreError`;
    ///   `LogError` (`closed`, `suspended`).
    public func tryGet<Value>(_ key: SecretKey<Value>) async throws -> Value? {
        try await kept(key.name).value(of: key)
    }

    /// Keeps a secret in the secret store. Durable on return. The log gets nothing of it. Credentials
    /// that have read a token before do not notice that there is another.
    ///
    /// - Throws: as `tryGet`.
    public func put<Value>(_ key: SecretKey<Value>, _ value: Value) async throws {
        let secrets = try await kept(key.name)
        try await secrets.write(value, for: key)
        do { try await store.checkOpen() } catch {
            // It was closed, or erased, meanwhile: nothing must stay behind.
            try await secrets.delete(key.name)
            throw error
        }
    }

    /// Forgets a secret. Durable on return.
    ///
    /// - Throws: as `tryGet`.
    public func delete<Value>(_ key: SecretKey<Value>) async throws {
        try await kept(key.name).delete(key.name)
    }

    private func kept(_ name: String) async throws -> any SecretStore {
        try await store.checkOpen()
        guard let secrets else {
            throw EventError(
                .refused,
                "there is nowhere to keep the secret \(name): open the store with a secret store")
        }
        return secrets
    }
}
