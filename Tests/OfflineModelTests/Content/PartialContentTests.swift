// Folders and lists of which something is missing or cannot be read: what is stored stays. Spec/model/content.md,
// CONT-34, CONT-35, CONT-39 and CONT-40; Spec/model/learning.md, LRN-44.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private let now: Int64 = 1_800_000_000_000
private let day: Int64 = 86_400_000
private func time(_ days: Int64) -> ZonedTime {
    ZonedTime(Timestamp(milliseconds: now - days * day))
}
private let meta = #"{"aa":{"languages":{"de":{"last_update":"\#(time(1).text)"}}}}"#

private struct Bench {
    let files = InMemoryFileSystem()
    let store: OfflineStore

    init() async throws {
        store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: LogEnvironment(fileSystem: files, now: { now }, sleep: noTimers))
    }

    /// Writes a folder and imports it.
    func importFolder(_ folder: [String: String]) async throws -> ContentImport {
        for (path, text) in folder {
            var parent = ""
            for part in ("/in/" + path).split(separator: "/").dropLast() {
                parent += "/\(part)"
                try? files.createDirectory(parent)
            }
            files["/in/" + path] = Array(text.utf8)
        }
        return try await store.content.importFolder(URL(filePath: "/in"))
    }
}

@Suite struct PartialContentTests {
    @Test(
        .verifies("CONT-34", "CONT-35"),
        arguments: [["content/aa/de/events.json": "[]"], ["content/aa/de/pois.json": "[]"], [:]])
    func `a missing file of pages is noted, and neither removes pages nor makes their time newer`(
        files: [String: String]
    ) async throws {
        let bench = try await Bench()
        try await bench.store.content.store(
            city: "aa", language: "de",
            pages: [ContentPage(path: "/aa", title: "t", content: "", lastUpdate: time(9))],
            lastUpdate: time(5))
        let result = try await bench.importFolder(
            files.merging(["cities-meta.json": meta]) { file, _ in file })
        #expect(!result.notes.isEmpty)
        #expect(bench.store.view(PagesView.self).cityCodes == ["aa"])
        #expect(bench.store.content.lastUpdate(of: "aa", language: "de").current == time(5))
    }

    /// The first lacks a member, the second its code as well, the third is about another city.
    @Test(
        .verifies("CONT-34", "CONT-39"),
        arguments: [
            #"[{"name":"A","live":true,"code":"aa","sorting_name":"A"}]"#, "[7]",
            #"[{"name":"B","live":true,"code":"bb","sorting_name":"B"}]"#,
            #"[{"name":"B","live":true,"code":"bb","events_enabled":true,"sorting_name":"B"},{}]"#,
        ])
    func `a list with elements that cannot be read keeps the stored ones`(list: String) async throws
    {
        let bench = try await Bench()
        try await bench.store.content.list([ListedCity(name: "A", code: "aa", sortingName: "A")])
        try await bench.store.content.store(
            city: "aa", language: "de", pages: [], lastUpdate: time(5))
        let result = try await bench.importFolder([
            "cities-meta.json": meta, "cities.json": list, "content/aa/de/categories.json": "[]",
            "content/aa/de/events.json": "[]",
        ])
        #expect(!result.notes.isEmpty)
        #expect(bench.store.content.cities.current?.map(\.code).contains("aa") == true)
    }

    @Test(.verifies("CONT-39", "LRN-44"))
    func `an element that cannot be stored keeps its stored version, and one without an id all`()
        async throws
    {
        let store = try await Bench().store
        func city(_ code: String, _ name: String) -> ListedCity {
            ListedCity(name: name, code: code, sortingName: name)
        }
        try await store.content.list([city("a", "A"), city("b", "B"), city("c", "C")])
        #expect(try await store.content.list([city("b", ""), city("a", "A2")]).count == 1)
        #expect(store.content.cities.current?.map(\.name) == ["B", "A2"])
        #expect(try await store.content.list([city("d", "D"), city("", "E")]).count == 1)
        #expect(store.content.cities.current?.map(\.name) == ["D", "B", "A2"])
        try await store.content.list(
            [ListedLanguage(code: "de", name: "D"), ListedLanguage(code: "en")], of: "a")
        let broken = ListedLanguage(code: "de", properties: Array("7".utf8))
        #expect(
            try await store.content.list([broken, ListedLanguage(code: "fr")], of: "a").count == 1)
        #expect(store.content.languages(of: "a").current?.map(\.code) == ["de", "fr"])
        let spanish = LanguageCombination(learn: "es", display: "de")
        func course(_ id: String, _ lessons: [String]) -> ListedCourse {
            ListedCourse(id: id, lessons: lessons.map { ListedLesson(id: $0) })
        }
        try await store.learning.storeCourses(
            [course("x", ["1"]), course("y", ["2"])], of: spanish)
        let left = try await store.learning.storeCourses(
            [course("x", [""]), course("z", [])], of: spanish)
        #expect(left.map(\.id) == ["x"])
        #expect(store.view(LearningView.self).courses(of: spanish)?.map(\.id) == ["x", "z"])
    }

    @Test(.verifies("CONT-40"))
    func `a folder in capitals is that of the language that has a time`() async throws {
        let bench = try await Bench()
        let page =
            #"[{"path":"/aa","title":"t","content":"","last_update":"\#(time(9).text)","#
            + #""thumbnail":"","available_languages":{},"parent_path":"","children":[],"order":0,"hash":""}]"#
        let result = try await bench.importFolder([
            "cities-meta.json": meta, "content/aa/DE/categories.json": page,
            "content/aa/DE/events.json": "[]",
        ])
        #expect(result.notes == [])
        #expect(bench.store.view(PagesView.self).languages(of: "aa") == ["de"])
        #expect(bench.store.content.lastUpdate(of: "aa", language: "de").current == time(1))
    }
}
