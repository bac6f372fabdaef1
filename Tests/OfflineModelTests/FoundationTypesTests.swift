// Dates, data and Codable types where an app meets them. Spec/model/settings.md, SET-2.

import DaybookTestKit
import EventGenerators
import Foundation
import Testing

@testable import DaybookOffline

private struct Exif: Codable, Equatable {
    var camera: String
}

extension SettingKey where Value == Date {
    fileprivate static var lastOpened: Self { SettingKey("com.example.lastOpened") }
}

extension SettingKey where Value == Data {
    fileprivate static var avatar: Self { SettingKey("com.example.avatar") }
}

@Suite struct FoundationTypesTests {
    @Test(.verifies("SET-2")) func `a date and data are values of settings`() async throws {
        let store = try await OfflineStore.inMemory()
        // A millisecond that no Double has exactly.
        let date = try #require(Timestamp("2026-02-22T10:30:14.425Z")).date
        try await store.settings.put(.lastOpened, date)
        try await store.settings.put(.avatar, Data([0, 255]))
        #expect(store.settings.tryGet(.lastOpened) == date)
        #expect(store.settings.tryGet(.avatar) == Data([0, 255]))
        let view = store.view(SettingsView.self)
        func text(_ name: String) -> String? {
            view.json(of: name).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(text("com.example.lastOpened") == #""2026-02-22T10:30:14.425Z""#)
        #expect(text("com.example.avatar") == #""AP8=""#)
        #expect(Date(settingJSON: Array("7".utf8)) == nil)
        #expect(Data(settingJSON: Array(#""*""#.utf8)) == nil)
        try await store.close()
    }

    @Test func `a time with its text is a date, and a date is a time in UTC`() throws {
        let time = try #require(ZonedTime("2023-11-20T14:06:57.863+01:00"))
        #expect(ZonedTime(time.date).text == "2023-11-20T13:06:57.863Z")
        #expect(ZonedTime(time.date).moment == time.moment)
    }

    @Test func `content of an app's own types and of data is stored and read back`() async throws {
        let store = try await OfflineStore.inMemory()
        let file = try await store.files.storeRetained([1, 2, 3])
        #expect(try await store.files.data(of: file) == Data([1, 2, 3]))
        #expect(LearningFileContent(url: "u", data: Data([7])).content == [7])
        #expect(
            CityImage(id: "i", url: "u", kind: .hero, width: 1, height: 1, data: Data([7]))
                .content == [7])
        let unit = try LearningUnit(encoding: Exif(camera: "x"), files: ["f"])
        #expect(unit == LearningUnit(content: Array(#"{"camera":"x"}"#.utf8), files: ["f"]))
        #expect(throws: EventError.self) { try LearningUnit(encoding: [1]) }
        var choices = Choices(seed: 1)
        let asset = choices.asset(id: "a")
        try await store.assets.put(asset, encoding: Exif(camera: "y"))
        #expect(try await store.assets.properties(of: "a", as: Exif.self) == Exif(camera: "y"))
        #expect(try await store.assets.properties(of: "b", as: Exif.self) == nil)
        try await store.close()
    }
}
