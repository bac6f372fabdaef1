// Folders in the shapes of the years in which the app of the document wrote them, and folders that are older
// than the log. Spec/model/content.md, CONT-35 and CONT-38.

import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import TestSupport
import Testing

@testable import DaybookOffline

private let time = "2019-08-12T00:03:19.457Z"

private func openStore(_ files: InMemoryFileSystem) async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
}

/// Writes a folder, with the parents of its files.
private func put(_ folder: [String: String], at root: String, _ files: InMemoryFileSystem) {
    for (path, text) in folder {
        var parent = ""
        for part in (root + "/" + path).split(separator: "/").dropLast() {
            parent += "/\(part)"
            try? files.createDirectory(parent)
        }
        files[root + "/" + path] = Array(text.utf8)
    }
}

@Suite struct OlderFolderTests {
    /// As in 2021: a folder for the version, languages with underscores, coordinates as text, points of
    /// interest in camel case.
    private static let of2021: [String: String] = [
        "cities-meta.json": """
        {"ahaus":{"languages":{"en":{"last_update":"\(time)"}},"last_usage":"\(time)"}}
        """,
        "cities.json": """
        [{"name":"Stadt Ahaus","live":true,"code":"ahaus","prefix":null,"extras_enabled":true,
        "events_enabled":true,"pois_enabled":true,"sorting_name":"Ahaus","longitude":null}]
        """,
        "content/v1/ahaus/languages.json": #"[{"_code":"en","_name":"English"}]"#,
        "content/v1/ahaus/en/categories.json": """
        [{"root":true,"path":"/ahaus/en","title":"Ahaus","content":"","last_update":"\(time)",
        "thumbnail":"","available_languages":{"de":"/ahaus/de"},"parent_path":"","children":[],
        "order":-1,"hash":""}]
        """,
        "content/v1/ahaus/en/events.json": """
        [{"path":"/ahaus/en/events/0","title":"E","content":"","last_update":"\(time)",
        "available_languages":{},"hash":"","excerpt":"",
        "date":{"start_date":"\(time)","end_date":"\(time)","all_day":false},
        "location":{"address":"a","town":"t","postcode":null,"latitude":"52.0765",
        "longitude":""},"featured_image":null}]
        """,
        "content/v1/ahaus/en/pois.json": """
        [{"path":"/ahaus/en/pois/1","title":"P","content":"","thumbnail":"",
        "availableLanguages":{"de":"/ahaus/de/pois/1"},"excerpt":"",
        "location":{"latitude":"52.0765","longitude":"7"},"lastUpdate":"\(time)","hash":""}]
        """,
        "resource-cache/v1/ahaus/files.json": """
        {"en":{"/ahaus/en":{"https://x.example/t.png":{"file_path":"/data/files/a/t.png",
        "last_update":"2011-02-04T00:00:00.000Z","hash":"2f97"}}}}
        """,
        "resource-cache/v1/ahaus/files/a/t.png": "picture",
    ]

    /// As in 2025: camel case, the languages in the list of cities, no end of an event, files without times.
    private static let of2025: [String: String] = [
        "cities-meta.json": """
        {"ahaus":{"languages":{"en":{"lastUpdate":"2025-09-01T10:00:00.000+02:00"}},
        "lastUsage":"2025-09-01T10:00:00.000+02:00"}}
        """,
        "cities.json": """
        [{"name":"Stadt Ahaus","live":true,"code":"ahaus","prefix":"Stadt","eventsEnabled":true,
        "languages":[{"code":"en","name":"English"}],"sortingName":"Ahaus","chatEnabled":false}]
        """,
        "content/v10/ahaus/en/categories.json": """
        [{"root":true,"path":"/ahaus/en","title":"Ahaus","content":"","lastUpdate":"\(time)",
        "thumbnail":null,"availableLanguages":{"de":"/ahaus/de"},"parentPath":"","children":[],
        "order":-1,"organization":null,"embeddedOffers":[]}]
        """,
        "content/v10/ahaus/en/events.json": """
        [{"path":"/ahaus/en/events/0","title":"E","content":"","lastUpdate":"\(time)",
        "availableLanguages":{},"excerpt":"","date":{"start":"\(time)","end":null,"allDay":false,
        "recurrenceRule":null},"location":null,"poiPath":null}]
        """,
        "content/v10/ahaus/en/pois.json": """
        [{"path":"/ahaus/en/pois/1","title":"P","content":"","availableLanguages":{},"excerpt":"",
        "location":{"id":7,"latitude":52.0765,"longitude":7},"lastUpdate":"\(time)"}]
        """,
        // An earlier version that the app did not delete.
        "content/v9/ahaus/en/categories.json": "[]",
        "content/v9/ahaus/en/events.json": "[]",
        "resource-cache/v1/ahaus/files.json": """
        {"en":{"/ahaus/en":{"https://x.example/t.png":{"filePath":"/data/files/a/t.png",
        "hash":"2f97"}}}}
        """,
        "resource-cache/v1/ahaus/files/a/t.png": "picture",
    ]

    @Test(.verifies("CONT-38"), arguments: [of2021, of2025])
    func `a folder of the app's own years is read whole, and exported in the document's form`(
        folder: [String: String]
    ) async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        put(folder, at: "/in", files)
        let result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.notes == [])
        #expect(result.pages == 3)
        #expect(result.resources == 1)
        #expect(try await store.content.importFolder(URL(filePath: "/in")).events == 0)
        let content = store.content
        #expect(content.cities.current?.map(\.sortingName) == ["Ahaus"])
        #expect(content.languages(of: "ahaus").current?.map(\.name) == ["English"])
        #expect(content.lastUsage(of: "ahaus").current != nil)
        let poi = try await content.page("/ahaus/en/pois/1", city: "ahaus", language: "en")
        #expect(poi?.location?.latitude == 52.0765)
        #expect(poi?.location?.longitude == 7)
        #expect(poi?.lastUpdate.text == time)
        let event = try await content.page("/ahaus/en/events/0", city: "ahaus", language: "en")
        #expect(event?.date?.end.text == time)
        #expect(content.children(of: "", city: "ahaus", language: "en").current.count == 1)
        // A second log, from the export of the first, is equal.
        try await store.events.flush()
        #expect(try exportLayout(of: store, to: "/out", files).leftOut == [])
        let written = String(
            decoding: files["/out/content/ahaus/en/categories.json"] ?? [], as: UTF8.self)
        #expect(written.contains(#""last_update":"\#(time)","#))
        #expect(!written.contains("lastUpdate"))
        let other = try await OfflineStore.open(
            at: URL(filePath: "/other"), environment: LogEnvironment(fileSystem: files))
        #expect(try await other.content.importFolder(URL(filePath: "/out")).notes == [])
        #expect(try await other.content.importFolder(URL(filePath: "/in")).events == 0)
        try await other.close()
        try await store.close()
    }

    @Test(.verifies("CONT-35"))
    func `a login page or a bad page leaves the stored pages and the time of the update`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        var folder = Self.of2021
        folder["content/v1/ahaus/en/categories.json"] = "<html>Please log in</html>"
        put(folder, at: "/in", files)
        let result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.notes.count == 1)
        #expect(
            result.notes[0].hasPrefix("content/v1/ahaus/en/categories.json, line 1, byte 0:"))
        #expect(result.pages == 2)
        // The app must update: the folder does not have all of the server's content.
        let lastUpdate = store.content.lastUpdate(of: "ahaus", language: "en")
        #expect(lastUpdate.current == nil)
        put(Self.of2021, at: "/in", files)
        #expect(try await store.content.importFolder(URL(filePath: "/in")).events == 2)
        #expect(lastUpdate.current?.text == time)
        // A bad page next to others removes none.
        put(
            ["content/v1/ahaus/en/categories.json": #"[{"path":"/ahaus/en"}]"#], at: "/in", files)
        #expect(try await store.content.importFolder(URL(filePath: "/in")).events == 0)
        #expect(store.content.children(of: "", city: "ahaus", language: "en").current.count == 1)
        try await store.close()
    }

    @Test(.verifies("CONT-34", "CONT-38"))
    func `a language or a page of a list that cannot be read is left out alone`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        var folder = Self.of2025
        folder["cities.json"] = folder["cities.json"]?.replacing(
            #""name":"English"}"#, with: #""name":"English"},7,{"code":""},{"code":"de"}"#)
        folder["resource-cache/v1/ahaus/files.json"] = folder[
            "resource-cache/v1/ahaus/files.json"]?.replacing(
                #"{"/ahaus/en":"#, with: #"{"https://x.example/u.png":"/data/u.png","/ahaus/en":"#)
        put(folder, at: "/in", files)
        let result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.resources == 1)
        #expect(store.content.languages(of: "ahaus").current?.map(\.code) == ["en", "de"])
        let places = [
            "cities.json: ahaus.languages[1]", "cities.json: ahaus.languages[2]",
            "resource-cache/v1/ahaus/files.json.en.https://x.example/u.png",
        ]
        for place in places {
            #expect(result.notes.contains { $0.hasPrefix(place) }, "\(place): \(result.notes)")
        }
        try await store.close()
    }

    @Test(.verifies("CONT-35"))
    func `a folder that is older than the log replaces no page, file, list or time`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        let content = store.content
        let newer = try #require(ZonedTime("2020-01-01T00:00:00.000Z"))
        let page = ContentPage(path: "/ahaus/en", title: "New", content: "", lastUpdate: newer)
        try await content.list([ListedCity(name: "New", code: "ahaus", sortingName: "New")])
        try await content.list([ListedLanguage(code: "fr")], of: "ahaus")
        try await content.store(
            city: "ahaus", language: "en", pages: [page], resources: [], lastUpdate: newer)
        try await content.use("ahaus")
        try await store.events.flush()
        put(Self.of2021, at: "/in", files)
        let result = try await content.importFolder(URL(filePath: "/in"))
        #expect(result.events == 0)
        #expect(result.notes.count == 1)
        #expect(result.notes.first?.contains("2020-01-01") == true)
        // A newer folder with an older page: the page stays, the others are imported.
        var folder = Self.of2021
        folder["cities-meta.json"] = folder["cities-meta.json"]?.replacing("2019", with: "2021")
        put(folder, at: "/in", files)
        #expect(try await content.importFolder(URL(filePath: "/in")).notes == [])
        #expect(content.cities.current?.first?.name == "Stadt Ahaus")
        #expect(
            content.storedPage("/ahaus/en", city: "ahaus", language: "en").current?.title == "New")
        #expect(
            content.storedPage("/ahaus/en/pois/1", city: "ahaus", language: "en").current != nil)
        try await store.close()
    }

    /// A folder of a city and a language outside ASCII, whose names a file system or an archive has changed.
    private static func renamed(city: String, language: String, file: String) -> [String: String] {
        [
            "cities-meta.json": """
            {"m\u{FC}nchen":{"languages":{"pt-br":{"last_update":"\(time)"}}}}
            """,
            "content/\(city)/languages.json": #"[{"code":"pt-br"}]"#,
            "content/\(city)/\(language)/categories.json": """
            [{"path":"/p","title":"P","content":"","last_update":"\(time)"}]
            """,
            "resource-cache/\(city)/files.json": """
            {"pt-br":{"/p":{"https://x.example/t.png":{"file_path":"/data/files/a/\u{E9}.png",
            "last_update":"\(time)"}}}}
            """,
            "resource-cache/\(city)/files/a/\(file)": "picture",
        ]
    }

    @Test(
        .verifies("CONT-40"),
        arguments: [
            ("mu\u{308}nchen", "pt-br", "e\u{301}.png"), ("M\u{DC}NCHEN", "pt-br", "\u{C9}.PNG"),
        ])
    func `names in another case or Unicode form are those of the folder's lists`(
        city: String, language: String, file: String
    ) async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        put(Self.renamed(city: city, language: language, file: file), at: "/in", files)
        let result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.notes == [])
        #expect(result.cities == 1)
        #expect(result.resources == 1)
        let code = "m\u{FC}nchen"
        #expect(store.content.storedPage("/p", city: code, language: "pt-br").current != nil)
        #expect(store.content.lastUpdate(of: code, language: "pt-br").current?.text == time)
        try await store.close()
    }

    @Test(.verifies("CONT-40"))
    func `of names that differ in case alone, a list decides only if it has exactly one`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        var folder = Self.renamed(city: "m\u{FC}nchen", language: "pt-br", file: "\u{E9}.png")
        let page = folder["content/m\u{FC}nchen/pt-br/categories.json"]
        // The city of the list has a folder of its own, so this one is another city.
        folder["content/M\u{DC}NCHEN/pt-br/categories.json"] = page
        put(folder, at: "/in", files)
        #expect(try await store.content.importFolder(URL(filePath: "/in")).cities == 2)
        try await store.close()
    }

    @Test(.verifies("CONT-34"))
    func `what the system cannot read is left out alone, and its time is not recorded`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        put(
            Self.renamed(city: "m\u{FC}nchen", language: "pt-br", file: "\u{E9}.png"), at: "/in",
            files)
        for unreadable in ["categories.json", "languages.json", "files.json", "/a", "\u{FC}nchen"] {
            files.failing { operation, path in
                path.hasPrefix("/in") && path.hasSuffix(unreadable)
                    ? FileError(.io, operation: operation, path: path, reason: "it is broken") : nil
            }
            let result = try await store.content.importFolder(URL(filePath: "/in"))
            #expect(result.notes.contains { $0.contains("it is broken") }, "\(unreadable)")
            if unreadable == "categories.json" {
                let lastUpdate = store.content.lastUpdate(of: "m\u{FC}nchen", language: "pt-br")
                #expect(lastUpdate.current == nil)
            }
        }
        files.failing(nil)
        #expect(try await store.content.importFolder(URL(filePath: "/in")).notes == [])
        #expect(
            store.content.lastUpdate(of: "m\u{FC}nchen", language: "pt-br").current?.text == time)
        try await store.close()
    }

    @Test(.verifies("CONT-31"))
    func `the time of an update whose pages cannot be written is not written`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        let update = try #require(ZonedTime(time))
        let page = ContentPage(path: "/p", title: "P", content: "", lastUpdate: update)
        // Too long for the name of a folder.
        let long = String(repeating: ".", count: 86)
        for (city, language) in [(long, "en"), ("a", long), ("a", "en")] {
            try await store.content.store(
                city: city, language: language, pages: [page], lastUpdate: update)
        }
        // The server has no page in it: that is an update.
        try await store.content.store(city: "a", language: "fr", pages: [], lastUpdate: update)
        try await store.events.flush()
        #expect(try exportLayout(of: store, to: "/out", files).leftOut.count == 2)
        let other = try await OfflineStore.open(
            at: URL(filePath: "/other"), environment: LogEnvironment(fileSystem: files))
        #expect(try await other.content.importFolder(URL(filePath: "/out")).notes == [])
        let view = other.view(ContentView.self)
        #expect(view.cityCodes == ["a"])
        #expect(view.lastUpdates(of: "a").map(\.language) == ["en", "fr"])
        try await other.close()
        try await store.close()
    }

    private static let pois = "content/v1/ahaus/en/pois.json"

    @Test(.verifies("CONT-34"))
    func `a fault in the bytes of one page costs that page alone`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        func page(_ number: String, _ content: String) -> String {
            #"{"path":"/ahaus/en/\#(number)","title":"\#(content)","content":"","lastUpdate":"\#(time)"}"#
        }
        put(Self.of2021, at: "/in", files)
        let nested = String(repeating: "[", count: 9_000) + String(repeating: "]", count: 9_000)
        let pages = [
            page("0", "a"), page("1", "tab\tand\nline"), page("2", "caf\u{FF}"),
            #"{"path":"/ahaus/en/3","title":"","x":\#(nested)}"#, page("4", #"bad \x escape"#),
            page("5", #"[}, \" ]"#),
        ]
        let text = Array("[\n\(pages.joined(separator: ",\n"))\n]\n".utf8)
        files["/in/\(Self.pois)"] = text
        var result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.pages == 2 + 4)
        #expect(result.notes.count == 2, "\(result.notes)")
        for place in ["pois.json[3]", "pois.json[4]"] {
            #expect(result.notes.contains { $0.contains(place) }, "\(result.notes)")
        }
        let stored = store.content.storedPage("/ahaus/en/1", city: "ahaus", language: "en")
        #expect(stored.current?.title == "tab\tand\nline")
        // A byte that is not UTF-8 is read as U+FFFD.
        files["/in/\(Self.pois)"] = text.map { $0 == 0xC3 ? 0xE9 : $0 }
        result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.pages == 2 + 4)
        #expect(result.notes.contains { $0.contains("pois.json is not UTF-8") })
        // The folder does not have all of the server's content.
        #expect(store.content.lastUpdate(of: "ahaus", language: "en").current == nil)
        // Control characters alone lose nothing.
        files["/in/\(Self.pois)"] = Array("[\(page("1", "tab\tand\nline"))]".utf8)
        result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.notes == [])
        #expect(store.content.lastUpdate(of: "ahaus", language: "en").current?.text == time)
        try await store.close()
    }

    @Test(.verifies("CONT-34"))
    func `a fault in the bytes of one entry of the list of files costs that file alone`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        var folder = Self.of2021
        let list = "resource-cache/v1/ahaus/files.json"
        folder[list] = folder[list]?.replacing(
            #"{"https://x.example/t.png":"#,
            with: #"{"https://x.example/u.png":{"file_path":tru},"https://x.example/t.png":"#)
        put(folder, at: "/in", files)
        let result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.resources == 1)
        #expect(result.notes.count == 1)
        #expect(result.notes[0].contains("files.json.en./ahaus/en.https://x.example/u.png"))
        try await store.close()
    }

    @Test(.verifies("CONT-11", "CONT-35"), arguments: ["", " <!DOCTYPE html><title>Login</title>"])
    func `a web page or nothing in the place of a file is left out, and the stored file stays`(
        content: String
    ) async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        put(Self.of2021, at: "/in", files)
        try await store.content.importFolder(URL(filePath: "/in"))
        func file() -> FileID? {
            store.view(ContentView.self).resource(
                "https://x.example/t.png", of: "/ahaus/en", city: "ahaus", language: "en")?.file
        }
        let stored = try #require(file())
        put(["resource-cache/v1/ahaus/files/a/t.png": content], at: "/in", files)
        let result = try await store.content.importFolder(URL(filePath: "/in"))
        #expect(result.resources == 0)
        #expect(result.notes.count == 1)
        #expect(result.notes[0].contains("https://x.example/t.png"))
        #expect(file() == stored)
        // An app's own download likewise.
        files["/download"] = Array(content.utf8)
        let update = try #require(ZonedTime(time))
        for source in [
            ContentResource.Content.bytes(Array(content.utf8)), .file(URL(filePath: "/download")),
        ] {
            let changes = try await store.content.store(
                city: "ahaus", language: "en", pages: [],
                resources: [
                    ContentResource(
                        path: "/ahaus/en", url: "https://x.example/t.png", lastUpdate: update,
                        content: source)
                ], lastUpdate: update)
            #expect(changes.leftOut.count == 1)
            #expect(file() == stored)
        }
        try await store.close()
    }

    @Test(.verifies("CONT-35"))
    func `a file that is older than the stored one stays out, also after an incomplete import`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        func folder(_ year: String, _ picture: String) -> [String: String] {
            var folder = Self.of2021.mapValues { $0.replacing("2019", with: year) }
            folder["resource-cache/v1/ahaus/files.json"] = Self.of2021[
                "resource-cache/v1/ahaus/files.json"]?.replacing("2011", with: year)
            folder["resource-cache/v1/ahaus/files/a/t.png"] = picture
            return folder
        }
        func resource() -> CachedResource? {
            store.view(ContentView.self).resource(
                "https://x.example/t.png", of: "/ahaus/en", city: "ahaus", language: "en")
        }
        var newer = folder("2021", "new")
        // A page that cannot be read: the time of the update is not recorded.
        newer[Self.pois] = "[7]"
        put(newer, at: "/in", files)
        try await store.content.importFolder(URL(filePath: "/in"))
        #expect(store.content.lastUpdate(of: "ahaus", language: "en").current == nil)
        let stored = try #require(resource())
        put(folder("2018", "old"), at: "/old", files)
        try await store.content.importFolder(URL(filePath: "/old"))
        #expect(resource() == stored)
        #expect(stored.lastUpdate.text.hasPrefix("2021"))
        try await store.close()
    }

    @Test(.verifies("CONT-35"))
    func `a time that is ahead of the clock keeps no folder out`() async throws {
        let files = InMemoryFileSystem()
        let clock = VirtualClock(milliseconds: 1_700_000_000_000)
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: LogEnvironment(fileSystem: files, now: { clock.milliseconds }))
        let content = store.content
        let ahead = try #require(ZonedTime("2099-01-01T00:00:00.000Z"))
        let pages = ["/ahaus/en", "/other"].map {
            ContentPage(path: $0, title: "Wrong", content: "", lastUpdate: ahead)
        }
        try await content.list([ListedCity(name: "Wrong", code: "ahaus", sortingName: "W")])
        try await content.store(
            city: "ahaus", language: "en", pages: pages, resources: [], lastUpdate: ahead)
        put(Self.of2021, at: "/in", files)
        #expect(try await content.importFolder(URL(filePath: "/in")).notes == [])
        #expect(content.cities.current?.map(\.name) == ["Stadt Ahaus"])
        func page(_ path: String) -> StoredPage? {
            content.storedPage(path, city: "ahaus", language: "en").current
        }
        #expect(page("/ahaus/en")?.title == "Ahaus")
        // Which of both is newer is not known, so nothing is removed.
        #expect(page("/other") != nil)
        #expect(content.lastUpdate(of: "ahaus", language: "en").current?.text == time)
        // A folder that is ahead itself replaces nothing.
        let wrong = Self.of2021.mapValues {
            $0.replacing("2019", with: "2099").replacing("Ahaus", with: "Wrong")
        }
        put(wrong, at: "/wrong", files)
        #expect(try await content.importFolder(URL(filePath: "/wrong")).events == 0)
        #expect(content.lastUsage(of: "ahaus").current?.text == time)
        try await store.close()
    }
}
