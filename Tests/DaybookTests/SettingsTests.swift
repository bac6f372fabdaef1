// Settings as an app uses them: all listed keys with their types and defaults, changes, secrets.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

/// A user as a Codable value of an app.
private struct Profile: Codable, Hashable, SettingValue {
    var id: String
    var isAdmin: Bool
}

extension SettingKey where Value == String {
    fileprivate static var homeAirport: Self { SettingKey("homeAirport") }
}

@Suite struct SettingsTests {
    /// Sets a value that is missing, and deletes it again.
    private func check<Value>(
        _ key: SettingKey<Value>, _ value: Value, in store: OfflineStore
    ) async throws {
        #expect(store.settings.tryGet(key) == nil)
        try await store.settings.put(key, value)
        #expect(store.settings.tryGet(key) == value)
        try await store.settings.delete(key)
        #expect(store.settings.tryGet(key) == nil)
        #expect(store.settings.get(key, value) == value)
    }

    /// A setting has its default before it is set and after it was deleted.
    private func check<Value>(
        _ setting: UserSetting<Value>, _ expected: Value, _ other: Value, in store: OfflineStore
    ) async throws {
        #expect(store.settings.get(setting) == expected)
        #expect(store.settings.get(setting, other) == other)
        #expect(store.settings.tryGet(setting) == nil)
        try await store.settings.put(setting, other)
        #expect(store.settings.get(setting) == other)
        #expect(store.settings.get(setting, expected) == other)
        try await store.settings.delete(setting)
        #expect(store.settings.get(setting) == expected)
    }

    @Test(.verifies("SET-2", "SET-3"))
    func `every key of the document that has no default can be put, read and deleted`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        try await check(.version, 3, in: store)
        try await check(.assetETag, "\"e\"", in: store)
        try await check(
            .currentUser(as: Profile.self), Profile(id: "u", isAdmin: true), in: store)
        try await check(.deviceId, "d", in: store)
        try await check(.deviceIdHash, -77, in: store)
        try await check(.serverUrl, "https://photos.example", in: store)
        try await check(.serverEndpoint, "https://photos.example/api", in: store)
        try await check(.autoBackup, true, in: store)
        try await check(.backgroundBackup, false, in: store)
        try await check(.backupRequireWifi, true, in: store)
        try await check(.backupRequireCharging, false, in: store)
        try await check(.backupTriggerDelay, 30, in: store)
        try await check(.backupFailedSince, Timestamp(milliseconds: 1_771_756_214_425), in: store)
        try await check(.homeAirport, "LIS", in: store)
        #expect(store.view(SettingsView.self).rows() == [])
    }

    @Test(.verifies("SET-2", "SET-3"))
    func `every user setting of the document has its type and its default`() async throws {
        let store = try await OfflineStore.inMemory()
        try await check(.loadPreview, true, false, in: store)
        try await check(.loadOriginal, false, true, in: store)
        try await check(.themeMode, "system", "dark", in: store)
        try await check(.primaryColor, "default", "teal", in: store)
        try await check(.dynamicTheme, false, true, in: store)
        try await check(.colorfulInterface, true, false, in: store)
        try await check(.tilesPerRow, 4, 6, in: store)
        try await check(.dynamicLayout, false, true, in: store)
        try await check(.groupAssetsBy, 0, 2, in: store)
        try await check(.storageIndicator, true, false, in: store)
        try await check(.loopVideo, true, false, in: store)
        try await check(.autoPlayVideo, true, false, in: store)
        try await check(.enableHapticFeedback, true, false, in: store)
        try await check(.thumbnailCacheSize, 10_000, 1, in: store)
        try await check(.imageCacheSize, 350, 1, in: store)
        try await check(.albumThumbnailCacheSize, 200, 1, in: store)
        try await check(.cleanupKeepFavorites, true, false, in: store)
        try await check(.cleanupKeepMediaType, "none", "videos", in: store)
        try await check(.cleanupKeepAlbumIds, [], ["a", "b"], in: store)
        try await check(.cleanupCutoffDaysAgo, 0, 7, in: store)
    }

    @Test(.verifies("SET-1"))
    func `an equal value is not recorded again, and a missing one not deleted`() async throws {
        let store = try await OfflineStore.inMemory()
        for _ in 0..<3 { try await store.settings.put(.themeMode, "dark") }
        #expect(await store.events.lastDurable.rawValue == 1)
        for _ in 0..<3 { try await store.settings.delete(.themeMode) }
        #expect(await store.events.lastDurable.rawValue == 2)
        try await store.settings.delete(.serverUrl)
        #expect(await store.events.lastDurable.rawValue == 2)
    }

    @Test(.verifies("SET-1"))
    func `a change takes effect also after one that was made while the clock was a year ahead`()
        async throws
    {
        let files = InMemoryFileSystem()
        let now: Int64 = 1_771_756_214_425
        for (ahead, mode) in [(31_536_000_000, "dark"), (0, "light"), (0, "system")] {
            let store = try await OfflineStore.open(
                at: URL(filePath: "/log"),
                environment: LogEnvironment(fileSystem: files, now: { now + Int64(ahead) }))
            try await store.settings.put(.themeMode, mode)
            #expect(store.settings.get(.themeMode) == mode)
            try await store.close()
        }
    }

    @Test(.verifies("SET-1", "SET-2"))
    func `a value of each type is the same after reopening`() async throws {
        let files = InMemoryFileSystem()
        func open() async throws -> OfflineStore {
            try await OfflineStore.open(
                at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
        }
        let user = SettingKey<Profile>.currentUser(as: Profile.self)
        let places = SettingKey<[String]>("places")
        let profile = Profile(id: "u", isAdmin: true)
        let moment = Timestamp(milliseconds: 1_771_756_214_425)
        var store = try await open()
        try await store.settings.put(.homeAirport, "LIS")
        try await store.settings.put(.deviceIdHash, -77)
        try await store.settings.put(.backgroundBackup, false)
        try await store.settings.put(.backupFailedSince, moment)
        try await store.settings.put(places, ["caf\u{E9}", ""])
        try await store.settings.put(user, profile)
        try await store.close()
        store = try await open()
        #expect(store.settings.tryGet(.homeAirport) == "LIS")
        #expect(store.settings.tryGet(.deviceIdHash) == -77)
        #expect(store.settings.tryGet(.backgroundBackup) == false)
        #expect(store.settings.tryGet(.backupFailedSince) == moment)
        #expect(store.settings.tryGet(places) == ["caf\u{E9}", ""])
        #expect(store.settings.tryGet(user) == profile)
        try await store.close()
    }

    @Test(.verifies("SET-2"))
    func `a value of another type is ignored and stays`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.settings.put(SettingKey<String>("tilesPerRow"), "four")
        #expect(store.settings.get(.tilesPerRow) == 4)
        #expect(store.settings.tryGet(SettingKey<String>("tilesPerRow")) == "four")
        try await store.settings.put(SettingKey<Int>("backupFailedSince"), 7)
        #expect(store.settings.tryGet(.backupFailedSince) == nil)
    }

    @Test(.verifies("SET-2"))
    func `null, an empty key and a value that cannot be written are refused`() async throws {
        let store = try await OfflineStore.inMemory()
        await #expect(throws: EventError.self) {
            try await store.settings.put(SettingKey<String>(""), "x")
        }
        await #expect(throws: EncodingError.self) {
            try await store.settings.put(SettingKey<Limit>("limit"), Limit(value: .infinity))
        }
        for data in [#"{"key":"k","value":null}"#, #"{"key":"k"}"#, #"{"key":"","value":1}"#] {
            await #expect(throws: EventError.self) {
                try await store.events.append(contentsOf: [
                    EventDraft(type: SettingPut.type, data: .json(Array(data.utf8)))
                ])
            }
        }
        #expect(await store.events.lastDurable.rawValue == 0)
    }

    private struct Limit: Codable, Hashable, SettingValue { var value: Double }

    @Test(.verifies("SET-5"))
    func `a value can be followed`() async throws {
        let store = try await OfflineStore.inMemory()
        var modes = store.settings.value(.themeMode).changes.makeAsyncIterator()
        var urls = store.settings.value(.serverUrl).changes.makeAsyncIterator()
        #expect(await modes.next() == "system")
        #expect(await urls.next() == .some(nil))
        try await store.settings.put(.themeMode, "dark")
        #expect(await modes.next() == "dark")
        try await store.settings.put(.serverUrl, "https://photos.example")
        #expect(await urls.next() == "https://photos.example")
        try await store.settings.delete(.themeMode)
        #expect(await modes.next() == "system")
        try await store.close()
    }

    // MARK: Secrets

    @Test(.verifies("SEC-17", "SET-4"))
    func `the headers of the secret store are sent with a store's requests`() async throws {
        let server = try LocalServer { _ in .reply(200, body: Array("[]".utf8)) }
        let store = try await OfflineStore.inMemory(secrets: InMemorySecretStore())
        #expect(try await store.httpOptions().headers.isEmpty)
        try await store.settings.put(.customHeaders, ["X-Proxy": "s3cret"])
        let certificate = ClientCertificate(pkcs12: [1], password: "")
        try await store.settings.put(.clientCertificate, certificate)
        var http = try await store.httpOptions()
        #expect(http.certificate == certificate)
        http.certificate = nil
        let endpoint = try #require(URL(string: server.base + "/v1/events"))
        try await store.sync(to: endpoint, http: http)
        #expect(server.requests.map { $0.values("X-Proxy") } == [["s3cret"]])
        try await store.close()
        let bare = try await OfflineStore.inMemory()
        #expect(try await bare.httpOptions().headers.isEmpty)
        try await bare.close()
    }

    @Test(.verifies("SET-4", "SEC-21"))
    func `secrets are stored in the secret store, and never in the log`() async throws {
        let (files, secrets) = (InMemoryFileSystem(), InMemorySecretStore())
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"), secrets: secrets,
            environment: LogEnvironment(fileSystem: files))
        let token = AccessToken("tok3n", expiresAt: Timestamp(milliseconds: 77))
        let certificate = ClientCertificate(pkcs12: [1, 2, 255], password: "passw0rd")
        try await store.settings.put(.accessToken, token)
        try await store.settings.put(.clientCertificate, certificate)
        try await store.settings.put(.customHeaders, ["X-Proxy": "s3cret", "A": "\""])
        try await store.settings.put(.text("pin"), "1234")
        #expect(try await store.settings.tryGet(.accessToken) == token)
        #expect(try await store.settings.tryGet(.clientCertificate) == certificate)
        #expect(
            try await store.settings.tryGet(.customHeaders) == ["X-Proxy": "s3cret", "A": "\""])
        #expect(try await store.settings.tryGet(.text("pin")) == "1234")
        // The credentials return this token.
        let credentials = RefreshingCredentials(store: secrets) { _ in nil }
        #expect(try await credentials.token() == token)
        #expect(try await ClientCertificate.load(from: secrets) == certificate)
        #expect(await store.events.lastDurable.rawValue == 0)
        try await store.settings.delete(.accessToken)
        #expect(try await store.settings.tryGet(.accessToken) == nil)
        try await store.close()
    }

    @Test(.verifies("SET-4"))
    func `the key of a secret is refused as a setting, also on import`() async throws {
        let store = try await OfflineStore.inMemory(secrets: InMemorySecretStore())
        for key in SettingPut.secretKeys {
            await #expect { try await store.settings.put(SettingKey<String>(key), "x") } throws: {
                ($0 as? EventError)?.code == .refused
            }
            await #expect(throws: EventError.self) {
                try await store.events.append(contentsOf: [
                    EventDraft(
                        type: SettingPut.type,
                        data: .json(Array(#"{"key":"\#(key)","value":"x"}"#.utf8)))
                ])
            }
        }
        #expect(await store.events.lastDurable.rawValue == 0)
    }

    @Test(.verifies("SET-4", "SEC-21"))
    func `a store without a secret store refuses secrets, and damaged ones are reported`()
        async throws
    {
        let plain = try await OfflineStore.inMemory()
        await #expect(throws: EventError.self) {
            try await plain.settings.put(.accessToken, AccessToken("t"))
        }
        await #expect(throws: EventError.self) { try await plain.settings.tryGet(.accessToken) }
        let secrets = InMemorySecretStore()
        try secrets.write([7], for: "daybook.token")
        try secrets.write(Array(#"{"a":1}"#.utf8), for: "daybook.custom-headers")
        let store = try await OfflineStore.inMemory(secrets: secrets)
        await #expect { try await store.settings.tryGet(.accessToken) } throws: {
            ($0 as? SecretStoreError)?.code == .damaged
        }
        await #expect { try await store.settings.tryGet(.customHeaders) } throws: {
            ($0 as? SecretStoreError)?.code == .damaged
        }
    }

    @Test(.verifies("SET-4", "ACC-8"))
    func `a store that is closed, suspended or erased stores no secrets`() async throws {
        let secrets = InMemorySecretStore()
        let store = try await OfflineStore.inMemory(secrets: secrets)
        try await store.suspend()
        await #expect(throws: LogError.self) {
            try await store.settings.put(.accessToken, AccessToken("t"))
        }
        try await store.resume()
        try await store.erase()
        await #expect(throws: LogError.self) {
            try await store.settings.put(.accessToken, AccessToken("t"))
        }
        #expect(secrets.values == [:])
    }

    @Test(.verifies("ACC-8"))
    func `erasing deletes the secrets, and where that fails the next opening does it`()
        async throws
    {
        let (files, secrets) = (InMemoryFileSystem(), InMemorySecretStore())
        func open() async throws -> OfflineStore {
            try await OfflineStore.open(
                at: URL(filePath: "/log"), secrets: secrets,
                environment: LogEnvironment(fileSystem: files))
        }
        var store = try await open()
        try await store.settings.put(.accessToken, AccessToken("t"))
        try await store.cities.save("c", by: "u")
        await #expect(throws: UnsyncedError(count: 1)) { try await store.erase() }
        #expect(secrets.values.count == 1)
        secrets.fail(with: SecretStoreError(.locked, location: "here", "locked"))
        await #expect(throws: SecretStoreError.self) {
            try await store.erase(discardingUnsynced: true)
        }
        await #expect(throws: LogError.self) { try await store.cities.save("d", by: "u") }
        // While the secrets cannot be deleted, no new log is created.
        await #expect(throws: SecretStoreError.self) { try await open() }
        secrets.fail(with: nil)
        store = try await open()
        #expect(secrets.values == [:])
        #expect(store.view(CitiesView.self).cityIDs == [])
        try await store.settings.put(.accessToken, AccessToken("t"))
        try await store.close()
        // An ordinary opening deletes nothing.
        store = try await open()
        #expect(secrets.values.count == 1)
        try await store.erase()
        #expect(secrets.values == [:])
        #expect(try files.list("/log") == [])
    }
}
