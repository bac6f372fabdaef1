// The folder layout of cached content: export, import and errors. Spec/model/content.md, CONT-30 and on.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogStorage
import TestSupport
import Testing

@testable import DaybookOffline

/// Exports the cached content of the store at `/log`, whose events are on the disk.
func exportLayout(
    of store: OfflineStore, to folder: String, _ files: InMemoryFileSystem
) throws -> ContentLayoutWriter.Summary {
    let writer = ContentLayoutWriter(
        store.view(PagesView.self), store.view(ContentView.self), to: folder, files)
    let summary = try writer.write { body in
        try LogReader("/log", fileSystem: files).forEachEvent(catalogue: OfflineModel.catalogue) {
            try body($0)
            return true
        }
    } file: {
        try ContentLayout.content(of: $0, in: "/log", files)
    }
    return try #require(summary)
}

/// A store on its own disk, on which folders are written as well.
private struct Bench {
    let files: InMemoryFileSystem
    let store: OfflineStore

    init(files: InMemoryFileSystem = InMemoryFileSystem()) async throws {
        self.files = files
        store = try await OfflineStore.open(
            at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
    }

    /// Exports a folder.
    @discardableResult
    func export(to folder: String = "/out") async throws -> ContentLayoutWriter.Summary {
        try await store.events.flush()
        return try exportLayout(of: store, to: folder, files)
    }

    /// The files of a folder, by path.
    func folder(_ folder: String = "/out") -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: files.image.filter { $0.key.hasPrefix(folder + "/") }.map {
                (
                    String($0.key.dropFirst(folder.count + 1)),
                    String(decoding: $0.value, as: UTF8.self)
                )
            })
    }

    func bytes() -> [String: [UInt8]] { files.image.filter { $0.key.hasPrefix("/out/") } }

    /// Writes a folder, with the parents of its files.
    func put(_ folder: [String: String], at root: String = "/in") throws {
        for (path, text) in folder {
            var parent = ""
            for part in (root + "/" + path).split(separator: "/").dropLast() {
                parent += "/\(part)"
                try? files.createDirectory(parent)
            }
            files[root + "/" + path] = Array(text.utf8)
        }
        try? files.createDirectory(root)
    }

    @discardableResult
    func importFolder(_ folder: String = "/in") async throws -> ContentImport {
        try await store.content.importFolder(ContentLayoutReader(folder, files))
    }
}

private let time = "2011-02-04T00:00:00.000Z"

@Suite struct ContentLayoutTests {
    /// A folder with every part of the layout, as this project writes it.
    private static let sample: [String: String] = [
        "cities-meta.json": """
        {
        "ahaus":{"languages":{"de":{"last_update":"2019-08-12T00:03:19.457Z"},\
        "en":{"last_update":"2019-08-12T02:03:19+02:00"}},"last_usage":"2019-08-13T00:03:19.457Z"},
        "regensburg":{"languages":{},"last_usage":"2019-08-14T00:03:19.457Z"}
        }

        """,
        "cities.json": """
        [
        {"name":"Stadt Regensburg","live":true,"code":"regensburg","prefix":"Stadt",\
        "extras_enabled":true,"events_enabled":true,"sorting_name":"Regensburg"},
        {"name":"Ahaus","live":false,"code":"ahaus",\
        "extras_enabled":false,"events_enabled":false,"sorting_name":"Ahaus"}
        ]

        """,
        "content/ahaus/languages.json": """
        [
        {"code":"en","name":"English"},
        {"code":"de"}
        ]

        """,
        "content/ahaus/en/categories.json": """
        [
        {"path":"/ahaus/en/donate/","title":"Donate \\"stock\\"","content":"<h1>A sample</h1>\\r\\n",\
        "last_update":"\(time)","thumbnail":"https://x.example/t.png",\
        "available_languages":{"ar":"/ahaus/ar/\u{645}/","de":"/ahaus/de/spenden/"},\
        "parent_path":"/ahaus/en/","children":["/ahaus/en/donate/1/"],"order":100,\
        "hash":"1ebd072de279a714f831526b1861d4ec"},
        {"path":"/ahaus/en/","title":"","content":"","last_update":"\(time)"}
        ]

        """,
        "content/ahaus/en/events.json": """
        [
        {"path":"/ahaus/en/events/0","title":"first","content":"<h1>An event</h1>",\
        "last_update":"2019-10-01T04:07:35.659Z","thumbnail":"",\
        "hash":"93b885adfe0da089cdf634904fd59f71","excerpt":"excerpt",\
        "date":{"start_date":"2020-03-01T00:00:00.000Z","end_date":"2020-03-01T05:07:35.659Z",\
        "all_day":false},"location":{"address":"address","town":"town","postcode":"postcode"}}
        ]

        """,
        "content/ahaus/de/categories.json": "[]\n",
        "content/ahaus/de/events.json": "[]\n",
        "content/ahaus/de/pois.json": """
        [
        {"path":"/ahaus/de/pois/1","title":"B\u{FC}cherei","content":"","last_update":"\(time)",\
        "location":{"latitude":52.0765,"longitude":7.0}}
        ]

        """,
        "resource-cache/ahaus/files.json": """
        {
        "en":{"/ahaus/en/donate/":{"https://x.example/t.png":{"file_path":"resource-cache/ahaus/\
        files/49a3a4f7ca6e2bd9dab25a7b5cf1b3a9/0fdcf84ba3e4b1b2c1f1d2a6e9cbd0b7.png",\
        "last_update":"\(time)","hash":"2f97435138745"}}}
        }

        """,
    ]

    /// The sample with the correct name of its file, and the file.
    private static func complete() throws -> [String: String] {
        let name = try ResourceName(path: "/ahaus/en/donate/", url: "https://x.example/t.png")
        var folder = sample
        let list = "resource-cache/ahaus/files.json"
        folder[list] = folder[list]?.replacing(/files\/[0-9a-f]+\/[0-9a-f]+\.png/) { _ in
            "files/\(name)"
        }
        folder["resource-cache/ahaus/files/\(name)"] = "picture"
        return folder
    }

    @Test(.verifies("CONT-30", "CONT-33", "CONT-35"))
    func `a complete folder is exported as imported, and a repeated import records nothing`()
        async throws
    {
        let bench = try await Bench()
        let folder = try Self.complete()
        try bench.put(folder)
        let first = try await bench.importFolder()
        #expect(first.notes == [])
        // Two lists, the pages, the file, two updates, two uses.
        #expect(first.events == 2 + 4 + 1 + 2 + 2)
        #expect(first.cities == 2)
        #expect(first.pages == 4)
        #expect(first.resources == 1)
        let summary = try await bench.export()
        #expect(summary.leftOut == [])
        #expect(summary.languages == 2)
        #expect(summary.pages == 4)
        let written = bench.folder()
        for (path, text) in folder { #expect(written[path] == text, "\(path)") }
        #expect(Set(written.keys) == Set(folder.keys))
        #expect(try await bench.importFolder().events == 0)
        #expect(try await bench.importFolder("/out").events == 0)
        // The app's queries.
        let content = bench.store.content
        #expect(content.liveCities.current.map(\.code) == ["regensburg"])
        let page = try #require(
            try await content.page("/ahaus/en/donate/", city: "ahaus", language: "en"))
        #expect(page.availableLanguages?.map(\.language) == ["ar", "de"])
        #expect(page.content == "<h1>A sample</h1>\r\n")
        let event = try await content.page("/ahaus/en/events/0", city: "ahaus", language: "en")
        #expect(event?.date?.isAllDay == false)
        #expect(event?.location?.postcode == "postcode")
        let file = content.resources(of: page.path, city: "ahaus", language: "en").current[0].file
        #expect(try await bench.store.files.read(file) == Array("picture".utf8))
        try await bench.store.close()
    }

    /// The complete sample with members that no type names, in every object of the server.
    private static func enriched() throws -> [String: String] {
        var folder = try complete()
        func insert(_ members: String, after end: String, in path: String) throws {
            let text = try #require(folder[path])
            try #require(text.contains(end))
            folder[path] = text.replacing(end, with: end + members)
        }
        try insert(
            #","id":7,"url":"https:\/\/x","\u00e9":null"#, after: #""sorting_name":"Regensburg""#,
            in: "cities.json")
        try insert(#","dir":"ltr""#, after: #""code":"de""#, in: "content/ahaus/languages.json")
        try insert(
            #","organization":{"name":"Diakonie","n":[1.50,1e2]},"city":"x","kind":"poi""#,
            after: #""hash":"1ebd072de279a714f831526b1861d4ec""#,
            in: "content/ahaus/en/categories.json")
        let events = "content/ahaus/en/events.json"
        try insert(#","rrule":null"#, after: #""all_day":false"#, in: events)
        try insert(#","country":"DE","\#u{E9}":1"#, after: #""postcode":"postcode""#, in: events)
        try insert(
            #","mime":"image\/png""#, after: #""hash":"2f97435138745""#,
            in: "resource-cache/ahaus/files.json")
        return folder
    }

    @Test(.verifies("CONT-37"))
    func `members that no type names are exported as they were imported, also after a reopening`()
        async throws
    {
        let bench = try await Bench()
        // First without the properties, so that they are changes afterwards.
        try bench.put(try Self.complete(), at: "/less")
        try await bench.importFolder("/less")
        let folder = try Self.enriched()
        try bench.put(folder)
        // The lists of cities and languages, two pages, a file.
        #expect(try await bench.importFolder().events == 5)
        #expect(try await bench.importFolder().events == 0)
        let page = try await bench.store.content.page(
            "/ahaus/en/donate/", city: "ahaus", language: "en")
        #expect(
            page?.properties.map { String(decoding: $0, as: UTF8.self) }
                == #"{"organization":{"name":"Diakonie","n":[1.50,1e2]},"city":"x","kind":"poi"}"#)
        try await bench.store.close()
        let again = try await Bench(files: bench.files)
        try await again.export()
        let written = again.folder()
        for (path, text) in folder { #expect(written[path] == text, "\(path)") }
        #expect(try await again.importFolder("/out").events == 0)
        try await again.store.close()
    }

    @Test(.verifies("CONT-37"))
    func `a member whose escaped name equals one of the type is left out without an error`()
        async throws
    {
        let bench = try await Bench()
        let city =
            #"{"name":"A","n\u0061me":"other","live":true,"code":"a","extras_enabled":false,"#
            + #""events_enabled":false,"sorting_name":"A","id":7}"#
        try bench.put(["cities.json": "[\(city)]"])
        #expect(try await bench.importFolder().events == 1)
        let listed = try #require(bench.store.content.cities.current?.first)
        #expect(listed.name == "A")
        #expect(listed.properties == Array(#"{"id":7}"#.utf8))
        try await bench.store.close()
    }

    @Test(.verifies("CONT-37"))
    func `properties that are no object, or contain a member of the page itself, are refused`()
        async throws
    {
        let bench = try await Bench()
        let moment = try #require(ZonedTime(time))
        for properties in [#"{"title":"other"}"#, #"{"last_update":1}"#, "[]", "7", "{", ""] {
            var page = ContentPage(path: "/a/", title: "", content: "", lastUpdate: moment)
            page.properties = Array(properties.utf8)
            let changes = try await bench.store.content.store(
                city: "a", language: "de", pages: [page], lastUpdate: moment)
            #expect(changes.leftOut.count == 1, "\(properties)")
            var city = ListedCity(name: "A", code: "a", sortingName: "A")
            city.properties = Array(properties.replacing("title", with: "code").utf8)
            if properties == #"{"last_update":1}"# { continue }
            await #expect(throws: EventError.self, "\(properties)") {
                try await bench.store.content.list([city])
            }
        }
        #expect(bench.store.view(PagesView.self).cityCodes == [])
        #expect(bench.store.content.cities.current == nil)
        try await bench.store.close()
    }

    @Test(.verifies("CONT-37"), arguments: ["7", "null", "[]", "{}", #""x""#, #"{"title":"t"}"#])
    func `a meaningless member "properties" of an event changes nothing`(value: String)
        throws
    {
        let json =
            #"{"city":"c","language":"de","path":"/a/","title":"","content":"","lastUpdate":"\#(time)""#
        let plain = try PageStored(json: Array("\(json)}".utf8))
        let other = try PageStored(json: Array("\(json),\"properties\":\(value)}".utf8))
        #expect(other == plain)
        #expect(other.page.properties == nil)
    }

    @Test(.verifies("CONT-35", "CONT-37"), arguments: ["\n", "\r\n"])
    func `an indented folder with members of its own is recorded once, and an indented answer too`(
        lineBreak: String
    ) async throws {
        let bench = try await Bench()
        var folder = try Self.complete()
        let own = ["", "\"x\": {", "  \"a\": [", "    1,", "    2", "  ]", "},", ""]
            .joined(separator: lineBreak)
        let markers = [
            "cities.json": "{", "content/ahaus/languages.json": "{",
            "content/ahaus/en/categories.json": "{",
            "content/ahaus/en/events.json": "\"location\":{",
            "resource-cache/ahaus/files.json": "t.png\":{",
        ]
        for (path, before) in markers {
            let text = try #require(folder[path])
            let place = try #require(text.range(of: before)).upperBound
            folder[path] = text[..<place] + own + text[place...]
        }
        try bench.put(folder)
        let first = try await bench.importFolder()
        #expect(first.notes == [])
        #expect(first.events == 2 + 4 + 1 + 2 + 2)
        #expect(try await bench.importFolder().events == 0)
        let cities = try #require(bench.store.content.cities.current)
        let indented = Array("{\(own)\"y\":2}".utf8)
        let answer = cities.map {
            var city = $0
            city.properties = indented
            return city
        }
        try await bench.store.content.list(answer)
        let position = await bench.store.events.lastDurable
        try await bench.store.content.list(answer)
        #expect(await bench.store.events.lastDurable == position)
        try await bench.store.close()
    }

    @Test(.verifies("CONT-35"))
    func `a language becomes the content of the folder, and a language without a folder stays`()
        async throws
    {
        let bench = try await Bench()
        try bench.put(try Self.complete())
        try await bench.importFolder()
        var folder = try Self.complete()
        folder["content/ahaus/en/categories.json"] = "[]"
        for kind in ["categories", "events", "pois"] {
            folder["content/ahaus/de/\(kind).json"] = nil
        }
        folder["cities.json"] = nil
        try bench.put(folder, at: "/less")
        // The removal of the two categories.
        #expect(try await bench.importFolder("/less").events == 2)
        let pages = bench.store.view(PagesView.self)
        #expect(pages.pages(.category, city: "ahaus", language: "en") == [])
        #expect(pages.pages(.event, city: "ahaus", language: "en").count == 1)
        #expect(pages.pages(.poi, city: "ahaus", language: "de").count == 1)
        #expect(bench.store.content.cities.current?.count == 2)
        #expect(bench.store.content.lastUsage(of: "ahaus").current != nil)
        try await bench.store.close()
    }

    @Test(.verifies("CONT-30", "CONT-35"))
    func `any content is exported from a second log as from the first`() async throws {
        var foundFiles = 0
        var foundPages = 0
        for seed in 0..<20 {
            var choices = Choices(seed: UInt64(seed) &+ 0xC0)
            let (one, other) = (try await Bench(), try await Bench())
            for byte in 0...2 { _ = try await one.store.files.storeRetained([UInt8(byte)]) }
            for _ in 0..<choices.int(in: 1...40) {
                var draft = try EventDraft(choices.contentPayload())
                draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...99)))
                try await one.store.events.append(contentsOf: [draft])
            }
            let first = try await one.export()
            try one.files.image.filter { $0.key.hasPrefix("/out/") }.forEach { path, bytes in
                try other.put([:], at: "/in")
                var parent = "/in"
                let parts = path.split(separator: "/").dropFirst()
                for part in parts.dropLast() {
                    parent += "/\(part)"
                    try? other.files.createDirectory(parent)
                }
                other.files["/in/" + parts.joined(separator: "/")] = bytes
            }
            try await other.importFolder()
            try await other.export()
            // Compares bytes, because Swift compares canonically equivalent strings as equal.
            #expect(one.bytes() == other.bytes(), "seed \(seed)")
            #expect(try await other.importFolder().events == 0, "seed \(seed)")
            foundFiles += first.resources
            foundPages += first.pages
            try await one.store.close()
            try await other.store.close()
        }
        #expect(foundFiles > 10)
        #expect(foundPages > 40)
    }

    @Test(.verifies("CONT-31"))
    func `no code leads out of the folder, and every code is read back`() async throws {
        let codes = [
            "..", ".", "../../etc", "/etc/passwd", "a/b", "a\\b", "languages.json", "files",
            "%2e", "%", "caf\u{E9}", "cafe\u{301}", "A", "a", " ", "con.", "\n", "~",
        ]
        let one = try await Bench()
        var page = ContentPage(
            path: "/../../x/", title: "", content: "", lastUpdate: try #require(ZonedTime(time)))
        page.kind = .poi
        for code in codes {
            try await one.store.content.store(
                city: code, language: code, pages: [page],
                resources: [
                    ContentResource(
                        path: "/../x", url: "https://x.example/../../..%2f.png",
                        lastUpdate: page.lastUpdate, content: .bytes([1]))
                ], lastUpdate: page.lastUpdate)
        }
        let before = Set(one.files.image.keys)
        try await one.export()
        for path in Set(one.files.image.keys).subtracting(before) {
            #expect(path.hasPrefix("/out/"))
            for part in path.dropFirst().split(separator: "/").map(String.init) {
                #expect(part.wholeMatch(of: /[A-Za-z0-9_%.\-]+/) != nil)
                #expect(part != "..")
                #expect(part != ".")
            }
        }
        var reader = try ContentLayoutReader("/out", one.files)
        var missing: [PageKind] = []
        #expect(Set(reader.cities.map(EntityID.init)) == Set(codes.map(EntityID.init)))
        for code in codes {
            #expect(reader.languages(of: code).map(EntityID.init) == [EntityID(code)])
            let pages = try reader.pages(of: code, language: code, missing: &missing)
            #expect(pages?.map(\.path) == ["/../../x/"])
        }
        // The code is too long for the name of a folder: the city is left out.
        let long = String(repeating: ".", count: 86)
        try await one.store.content.store(
            city: long, language: "en", pages: [page],
            lastUpdate: page.lastUpdate)
        #expect(try await one.export(to: "/other").leftOut.count == 1)
        reader = try ContentLayoutReader("/other", one.files)
        #expect(Set(reader.cities.map(EntityID.init)) == Set(codes.map(EntityID.init)))
        try await one.store.close()
    }

    @Test(
        .verifies("CONT-34"),
        arguments: [
            ("cities.json", "[", "cities.json, line 1, byte 1:"),
            ("cities.json", "[\n{}\n,\n7 8", "cities.json, line 4, byte 9:"),
            ("cities.json", "[\n{}\n,\n7 8]", "cities.json[1] is not a JSON object"),
            ("cities.json", "{}", "cities.json is not an array"),
            ("cities.json", "[{}]", "cities.json[0].name is missing"),
            ("cities.json", "[7]", "cities.json[0] is not a JSON object"),
            ("cities-meta.json", "[]", "cities-meta.json is not a JSON object"),
            ("cities-meta.json", #"{"a":7}"#, "cities-meta.json.a is not a JSON object"),
            (
                "cities-meta.json", #"{"":{}}"#,
                "cities-meta.json has a member whose name is not an identifier"
            ),
            (
                "cities-meta.json", #"{"a":{"last_usage":7}}"#,
                "cities-meta.json.a.last_usage is not a string"
            ),
            (
                "content/a/languages.json", #"[{"code":"en"},{"code":"en"}]"#,
                "content/a/languages.json: the language en occurs twice"
            ),
            (
                "content/a/en/events.json",
                #"[{"path":"/","title":"","content":"","last_update":"2019-008-13T00:00:00Z"}]"#,
                "content/a/en/events.json[0].last_update is not a time"
            ),
            (
                "content/a/en/categories.json",
                #"[{"path":"/","title":"","content":"","last_update":"2019-08-13T00:00:00Z","thumbnail":7}]"#,
                "content/a/en/categories.json[0].thumbnail is not a string"
            ),
            (
                "content/a/en/pois.json",
                #"[{"path":"/","title":"","content":"","last_update":"2019-08-13T00:00:00Z","location":{"latitude":1e999}}]"#,
                "content/a/en/pois.json[0].location.latitude is not a finite number"
            ),
            ("content/%4/en/pois.json", "[]", "%4 is not the name of a city or a language"),
            ("content/%41/en/pois.json", "[]", "%41 is not the name of a city or a language"),
            ("content/%00/en/pois.json", "[]", "%00 is not the name of a city or a language"),
            (
                "resource-cache/a/files.json",
                #"{"en":{"/":{"a.png":{"file_path":"x","last_update":"2019-08-13T00:00:00Z"}}}}"#,
                "is not an absolute URL"
            ),
            (
                "resource-cache/a/files.json",
                #"{"en":{"/":{"https://x.example/a":{"last_update":"2019-08-13T00:00:00Z"}}}}"#,
                "file_path is missing"
            ),
        ])
    func `malformed data are noted with their file and path, and the rest is imported`(
        path: String, text: String, expected: String
    ) async throws {
        let bench = try await Bench()
        var folder = try Self.complete()
        folder[path] = text
        try bench.put(folder)
        let result = try await bench.importFolder()
        #expect(result.notes.contains { $0.contains(expected) }, "\(result.notes)")
        #expect(result.pages == 4)
        #expect(result.resources == 1)
        #expect(bench.store.view(PagesView.self).cityCodes == ["ahaus"])
        try await bench.store.close()
    }

    @Test(.verifies("CONT-34"))
    func `a folder with any bytes is read, with a note of what is not`() async throws {
        let bench = try await Bench()
        let sample = try Self.complete()
        try bench.put(sample)
        let files = bench.files
        let names = sample.keys.filter { $0.hasSuffix(".json") }.sorted()
        try Property.check("no bytes trap", runs: 300, covering: ["read", "noted"]) { choices in
            let name = choices.element(of: names)
            let good = Array(sample[name, default: ""].utf8)
            var bad = good
            for _ in 0...choices.int(in: 0...3) {
                let index = choices.int(in: 0...bad.count - 1)
                switch choices.int(in: 0...2) {
                case 0: bad[index] ^= 1 << UInt8(choices.int(in: 0...7))
                case 1: bad.remove(at: index)
                default: bad.insert(choices.element(of: Array(#""{}[],:\%0/"#.utf8)), at: index)
                }
            }
            files["/in/\(name)"] = bad
            defer { files["/in/\(name)"] = good }
            var folder = try ContentLayoutReader("/in", files)
            var missing: [PageKind] = []
            for city in folder.cities {
                _ = try folder.languageList(of: city)
                _ = try folder.resources(of: city)
                for language in folder.languages(of: city) {
                    _ = try folder.pages(of: city, language: language, missing: &missing)
                }
            }
            choices.count(folder.notes.isEmpty ? "read" : "noted")
        }
        try await bench.store.close()
    }

    @Test(.verifies("CONT-14", "CONT-15", "CONT-35"))
    func `all four cities of a folder are imported, and a use of one keeps three`() async throws {
        let bench = try await Bench()
        var folder = [
            "cities-meta.json": """
            {"a":{"last_usage":"2019-08-12T00:00:00Z"},"b":{"last_usage":"2019-08-13T00:00:00Z"},
            "c":{"last_usage":"2019-08-14T00:00:00Z"}}
            """
        ]
        for city in ["a", "b", "c", "d"] {
            folder["content/\(city)/en/pois.json"] =
                #"[{"path":"/\#(city)/","title":"","content":"","last_update":"\#(time)"}]"#
        }
        try bench.put(folder)
        let taken = try await bench.importFolder()
        #expect(taken.cities == 4)
        #expect(taken.pages == 4)
        #expect(bench.store.view(PagesView.self).cityCodes == ["a", "b", "c", "d"])
        // The city that was never used is evicted first.
        #expect(try await bench.store.content.use("a") == ["d"])
        #expect(bench.store.view(PagesView.self).cityCodes == ["a", "b", "c"])
        try await bench.store.close()
    }

    @Test(.verifies("CONT-35"))
    func `an app imports a folder itself, and gets an error if there is none`()
        async throws
    {
        let bench = try await Bench()
        try bench.put(Self.sample)
        let taken = try await bench.store.content.importFolder(URL(filePath: "/in"))
        #expect(taken.pages > 0)
        #expect(taken.events > 0)
        #expect(try await bench.store.content.importFolder(URL(filePath: "/in")).events == 0)
        await #expect {
            try await bench.store.content.importFolder(URL(filePath: "/nowhere"))
        } throws: {
            ($0 as? FileStoreError)?.code == .missing
        }
    }

    @Test(.verifies("CONT-35"))
    func `an optional member that is null counts as missing`() async throws {
        let bench = try await Bench()
        try bench.put([
            "cities.json": #"""
            [{"name":"A","code":"a","prefix":null,"live":true,"extras_enabled":false,
              "events_enabled":false,"sorting_name":"A","own":null}]
            """#,
            "content/a/en/categories.json": #"""
            [{"path":"/a/en/p/","title":"P","content":"","last_update":"2020-01-01T00:00:00Z",
              "thumbnail":null,"available_languages":{},"parent_path":"","children":[],"order":1,
              "hash":null}]
            """#,
        ])
        let taken = try await bench.store.content.importFolder(URL(filePath: "/in"))
        #expect(taken.cities > 0)
        #expect(taken.pages == 1)
        #expect(bench.store.content.cities.current?.first?.prefix == nil)
        #expect(
            bench.store.content.cities.current?.first?.properties == Array(#"{"own":null}"#.utf8))
        try bench.put(
            ["cities.json": #"[{"name":null,"code":"a","live":true,"sorting_name":"A"}]"#],
            at: "/bad")
        let bad = try await bench.store.content.importFolder(URL(filePath: "/bad"))
        #expect(bad.notes == ["cities.json[0].name is missing"])
    }

    @Test(.verifies("CONT-34"))
    func `text that is not UTF-8 is noted, and a byte order mark is skipped`() async throws {
        let bench = try await Bench()
        let folder = try Self.complete()
        try bench.put(folder)
        let list = "content/ahaus/languages.json"
        bench.files["/in/\(list)"] = Array("[\"".utf8) + [0xFF] + Array("\"]".utf8)
        #expect(
            try await bench.importFolder().notes.first?.hasPrefix("\(list) is not UTF-8") == true)
        bench.files["/in/\(list)"] = [0xEF, 0xBB, 0xBF] + Array(folder[list, default: ""].utf8)
        #expect(try await bench.importFolder().notes == [])
        #expect(bench.store.content.languages(of: "ahaus").current?.map(\.code) == ["en", "de"])
        try await bench.store.close()
    }

    @Test(.verifies("CONT-34"))
    func `an invalid time is skipped with a note, and the other content is imported`() async throws
    {
        let bench = try await Bench()
        // The example of the layout's own documentation has this invalid time.
        try bench.put([
            "cities-meta.json": """
            {"regensburg": {"languages": {"de": {"last_update": "2019-08-12T00:03:19.457Z"},
            "en": {"last_update": "yesterday"}, "fr": {}},
            "last_usage": "2019-008-13T00:03:19.457Z"}}
            """,
            "content/regensburg/de/categories.json": "[]",
        ])
        let result = try await bench.importFolder()
        #expect(
            result.notes == [
                #"cities-meta.json.regensburg.last_usage: "2019-008-13T00:03:19.457Z" is not a time as of RFC 3339"#,
                #"cities-meta.json.regensburg.languages.en.last_update: "yesterday" is not a time as of RFC 3339"#,
            ])
        #expect(result.events == 1)
        #expect(
            bench.store.content.lastUpdate(of: "regensburg", language: "de").current?.text
                == "2019-08-12T00:03:19.457Z")
        #expect(bench.store.content.lastUsage(of: "regensburg").current == nil)
        try await bench.store.close()
    }

    @Test(.verifies("CONT-34"))
    func `a file is found by the tail of its path, whatever precedes it`() async throws {
        let bench = try await Bench()
        let paths = [
            "resource-cache/a/files/one/1.png": "1", "/data/user/0/app/cache/a/one/2.png": "2",
            "one/3.png": "3", "/data/user/0/test.jpg": "test", "../../../secret": nil,
            "/etc/passwd": nil, "one/..": nil, "": nil, "/": nil, "one/missing.png": nil,
            "../one": nil,
        ]
        var folder = [
            "secret": "s", "resource-cache/a/secret": "s",
            "resource-cache/a/files/test.jpg": "test",
        ]
        for number in 1...3 { folder["resource-cache/a/files/one/\(number).png"] = "\(number)" }
        let urls = paths.keys.sorted()
        let entries = urls.enumerated().map { number, path in
            #""https://x.example/\#(number)":{"file_path":"\#(path)","last_update":"\#(time)"}"#
        }
        folder["resource-cache/a/files.json"] =
            #"{"en":{"/":{\#(entries.joined(separator: ","))}}}"#
        try bench.put(folder)
        let result = try await bench.importFolder()
        #expect(result.notes.count == paths.values.filter { $0 == nil }.count)
        let stored = bench.store.view(ContentView.self).resources(city: "a", language: "en")
        #expect(stored.count == 4)
        for resource in stored {
            let number = try #require(Int(resource.url.split(separator: "/").last ?? ""))
            let text = try #require(paths[urls[number]] ?? nil)
            #expect(try await bench.store.files.read(resource.file) == Array(text.utf8))
        }
        try await bench.store.close()
    }

    @Test(.verifies("CONT-34", "CONT-35"))
    func `a resource whose file is missing in the folder is not changed`() async throws {
        let bench = try await Bench()
        var folder = try Self.complete()
        try bench.put(folder)
        try await bench.importFolder()
        folder = folder.filter { !$0.key.hasPrefix("resource-cache/ahaus/files/") }
        let french = #""fr":{"last_update":"\#(time)"},"de":"#
        folder["cities-meta.json"] = folder["cities-meta.json"]?.replacing(#""de":"#, with: french)
        try bench.put(folder, at: "/less")
        let result = try await bench.importFolder("/less")
        // The time of an update in a language without pages is not recorded.
        #expect(result.events == 0)
        #expect(result.notes.count == 2)
        #expect(result.resources == 0)
        let resources = bench.store.view(ContentView.self).resources(city: "ahaus", language: "en")
        #expect(resources.count == 1)
        let kept = try #require(resources.first?.file)
        #expect(try await bench.store.files.read(kept) == Array("picture".utf8))
        // A file that the list does not name is removed, also in a language that only the log has.
        let lastUpdate = try #require(ZonedTime(time))
        try await bench.store.content.store(
            city: "ahaus", language: "fr", pages: [],
            resources: [
                ContentResource(
                    path: "/f/", url: "https://x.example/f.png", lastUpdate: lastUpdate,
                    content: .bytes([1]))
            ], lastUpdate: lastUpdate)
        #expect(try await bench.importFolder("/less").events == 1)
        #expect(bench.store.view(ContentView.self).resources(city: "ahaus", language: "fr") == [])
        try bench.put(
            [
                "resource-cache/ahaus/files.json": "{}",
                "cities-meta.json": folder["cities-meta.json", default: ""],
            ], at: "/none")
        #expect(try await bench.importFolder("/none").events == 1)
        #expect(bench.store.view(ContentView.self).resources(city: "ahaus", language: "en") == [])
        #expect(bench.files.image.keys.filter { $0.hasPrefix("/log/files/") } == [])
        try await bench.store.close()
    }

    @Test(.verifies("CONT-35"))
    func `invalid data of one city are noted, and the other cities are imported`() async throws {
        let long = String(repeating: "x", count: 1_048_576)
        let (url, date) = ("https://x.example/t.png", #""last_update":"\#(time)""#)
        let bad: [[String: String]] = [
            [
                "content/z/en/pois.json":
                    #"[{"path":"/","title":"","content":"\#(long)",\#(date)}]"#
            ],
            ["content/z/languages.json": #"[{"code":"de","name":"\#(long)"}]"#],
            [
                "cities.json": """
                [{"name":"\(long)","live":true,"code":"z","extras_enabled":true,\
                "events_enabled":true,"sorting_name":"z"}]
                """
            ],
            [
                "resource-cache/z/files.json":
                    #"{"en":{"/a":{"\#(url)":{"file_path":"a/b",\#(date)}},"/\u0061":{"\#(url)":{"file_path":"a/b",\#(date)}}}}"#,
                "resource-cache/z/files/a/b": "b",
            ],
            [
                "resource-cache/z/files.json":
                    #"{"en":{"/a":{"\#(url)":{"file_path":"a/b","hash":"\#(long)",\#(date)}}}}"#,
                "resource-cache/z/files/a/b": "b",
            ],
            ["resource-cache/z/files.json": #"{"en":{},"\u0065n":{}}"#],
            ["cities-meta.json": #"{"z":{"languages":{"\#(long)":{\#(date)}}}}"#],
            ["cities-meta.json": #"{"z":{},"\u007a":{}}"#],
            ["cities-meta.json": #"{"z":{"languages":{"en":{},"\u0065n":{}}}}"#],
            // Two folder names for one code.
            ["content/a b/en/pois.json": "[]", "content/a%20b/en/pois.json": "[]"],
            ["content/z/a b/pois.json": "[]", "content/z/a%20b/pois.json": "[]"],
            ["resource-cache/a b/files.json": "{}", "resource-cache/a%20b/files.json": "{}"],
        ]
        for (number, bad) in bad.enumerated() {
            let bench = try await Bench()
            try bench.put(try Self.complete().merging(bad) { $1 })
            let result = try await bench.importFolder()
            #expect(result.notes.count == 1, "\(number): \(result.notes)")
            #expect(result.pages == 4, "\(number)")
            #expect(bench.store.view(PagesView.self).cityCodes == ["ahaus"], "\(number)")
            try await bench.store.close()
        }
    }

    @Test(.verifies("CONT-35"))
    func `a file that is deleted while the folder is read is left out, and no empty one stored`()
        async throws
    {
        let bench = try await Bench()
        try bench.put(try Self.complete())
        let name = try ResourceName(path: "/ahaus/en/donate/", url: "https://x.example/t.png")
        var reader = try ContentLayoutReader("/in", bench.files)
        let resource = try #require(try reader.resources(of: "ahaus")?[EntityID("en")]?.first)
        bench.files["/in/resource-cache/ahaus/files/\(name)"] = nil
        let changes = try await bench.store.content.store(
            city: "ahaus", language: "en", pages: [], resources: [resource],
            lastUpdate: resource.lastUpdate)
        #expect(changes.leftOut.map(\.url) == [resource.url])
        #expect(bench.store.view(ContentView.self).resources(city: "ahaus", language: "en") == [])
        try await bench.store.close()
    }

    @Test(.verifies("CONT-33"))
    func `a missing or damaged file is left out with a note`() async throws {
        let bench = try await Bench()
        let lastUpdate = try #require(ZonedTime(time))
        try await bench.store.content.store(
            city: "a", language: "en", pages: [],
            resources: (1...3).map {
                ContentResource(
                    path: "/p/", url: "https://x.example/\($0)", lastUpdate: lastUpdate,
                    content: .bytes([UInt8($0)]))
            }, lastUpdate: lastUpdate)
        bench.files["/log/files/\(FileID(of: [1]))"] = nil
        bench.files["/log/files/\(FileID(of: [2]))"] = [7]
        let summary = try await bench.export()
        #expect(summary.resources == 1)
        #expect(summary.leftOut.count == 2)
        #expect(summary.leftOut[0].contains("https://x.example/1 of the page /p/"))
        let list = try #require(bench.folder()["resource-cache/a/files.json"])
        #expect(list.contains("https://x.example/3"))
        #expect(!list.contains("https://x.example/2"))
        try await bench.store.close()
    }

    @Test(.verifies("CONT-33"))
    func `of two files with one path and URL in two languages one is left out with a note`()
        async throws
    {
        let bench = try await Bench()
        let (url, lastUpdate) = ("https://x.example/t.png", try #require(ZonedTime(time)))
        for (language, file) in [("de", "one"), ("en", "other"), ("fr", "one")] {
            try await bench.store.content.store(
                city: "a", language: language, pages: [],
                resources: [
                    ContentResource(
                        path: "/p/", url: url, lastUpdate: lastUpdate,
                        content: .bytes(Array(file.utf8)))
                ], lastUpdate: lastUpdate)
        }
        let summary = try await bench.export()
        #expect(summary.resources == 2)
        #expect(summary.leftOut.count == 1)
        let note = try #require(summary.leftOut.first)
        #expect(note.contains("\(url) of the page /p/"))
        #expect(note.contains("another language"))
        let written = bench.folder()
        let list = try #require(written["resource-cache/a/files.json"])
        #expect(list.contains(#""de":"#))
        #expect(list.contains(#""fr":"#))
        #expect(!list.contains(#""en":"#))
        let name = try ResourceName(path: "/p/", url: url)
        #expect(written["resource-cache/a/files/\(name)"] == "one")
        try await bench.store.close()
    }

    @Test(.verifies("CONT-32"))
    func `an event that was compacted meanwhile is detected, and disk errors are thrown`()
        async throws
    {
        let bench = try await Bench()
        try bench.put(try Self.complete())
        try await bench.importFolder()
        let writer = ContentLayoutWriter(
            bench.store.view(PagesView.self), bench.store.view(ContentView.self), to: "/out",
            bench.files)
        #expect(
            try writer.write { _ in
            } file: { _ in
                []
            } == nil)
        for operation in ["create", "write", "sync"] {
            bench.files.failing { name, path in
                guard name == operation, path.hasPrefix("/broken-\(operation)") else { return nil }
                return FileError(.io, operation: name, path: path, reason: "broken")
            }
            await #expect(throws: FileError.self) {
                try await bench.export(to: "/broken-\(operation)")
            }
        }
        bench.files.failing(nil)
        try await bench.store.close()
    }
}
