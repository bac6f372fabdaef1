// The code of the article "Settings, migration and reset".

import DaybookOffline
import Foundation

// Settings-3 begins
struct Profile: Codable, Hashable, SettingValue {
    var id: String
    var name: String
}

extension SettingKey where Value == Profile {
    static var profile: Self { SettingKey("profile") }
}

extension UserSetting where Value == Int {
    static var fontSize: Self { UserSetting("fontSize", default: 12) }
}
// Settings-3 ends

package enum Settings {
    package static func use(
        _ store: OfflineStore, _ token: String
    ) async throws -> (String, String?) {
        // Settings-1 begins
        try await store.settings.put(.themeMode, "dark")
        let mode = store.settings.get(.themeMode)  // "dark"; "system" if it was never put
        let server = store.settings.tryGet(.serverUrl)  // nil if it was never put
        try await store.settings.delete(.themeMode)
        try await store.settings.put(.accessToken, AccessToken(token))  // not in the log
        // Settings-1 ends
        try await store.settings.put(.profile, Profile(id: "u", name: "Ada"))
        guard store.settings.get(.fontSize) == 12 else { return ("", nil) }
        return (mode, server)
    }

    package static func follow(_ store: OfflineStore) async {
        // Settings-2 begins
        for await columns in store.settings.value(.tilesPerRow).changes {
            print(columns)  // now, and after every change
            break
        }
        // Settings-2 ends
    }

    private struct Unfinished: Error {}

    package static func migrate(_ store: OfflineStore) async throws -> MigrationReport {
        // Settings-4 begins
        let darkMode = SettingKey<Bool>("darkMode")
        let plan = MigrationPlan([
            .init(to: 2) { transaction in
                let settings = transaction.view(SettingsView.self)
                guard let isDark = settings[darkMode] else { return .done }
                let mode = isDark ? "dark" : "light"
                try transaction.put(.themeMode, mode)
                try transaction.delete(darkMode)
                return .done
            } verify: { transaction in
                let settings = transaction.view(SettingsView.self)
                guard settings[darkMode] == nil else { throw Unfinished() }
            }
        ])
        let report = try await store.migrate(plan)
        // Settings-4 ends
        return report
    }

    package static func reset(_ home: URL, _ secrets: any SecretStore) async throws {
        // Settings-5 begins
        let storage = DeviceStorage(.iOS(home: home), secrets: [secrets])
        if try await storage.prepare() { print("a reset was completed: show the login screen") }
        let store = try await OfflineStore.open(
            at: storage.database.appending(path: "user-456"), cache: storage.cache,
            account: "user-456", secrets: secrets)
        try await storage.reset([store])
        // Settings-5 ends
    }
}
