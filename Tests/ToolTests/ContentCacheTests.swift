// logtool export and import with --layout content-cache.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct ContentCacheTests {
    /// Real pages, if their data are beside the checkout.
    private static let realPages = Tool.root.appending(path: "../shared/data/pages.ndjson").path
    static let hasRealPages = FileManager.default.fileExists(atPath: realPages)

    /// A log with pages of all kinds, files, several languages and cities.
    private static func sample() async throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let store = try await OfflineStore.open(at: URL(filePath: folder.log))
        let time = try #require(ZonedTime("2019-10-01T04:07:35.659+02:00"))
        try await store.content.list([
            ListedCity(name: "Stadt Augsburg", code: "augsburg", prefix: "Stadt", sortingName: "A"),
            ListedCity(name: "Kreis", code: "Kreis \u{C4}", isLive: false, sortingName: "K"),
        ])
        for city in ["augsburg", "Kreis \u{C4}"] {
            try await store.content.list(
                [ListedLanguage(code: "de", name: "Deutsch"), ListedLanguage(code: "en")], of: city)
            for language in ["de", "en"] {
                let pages = PageKind.allCases.flatMap { kind in
                    (1...3).map { number in
                        var page = ContentPage(
                            path: "/\(city)/\(language)/\(kind)/\(number)/", kind: kind,
                            title: "\(kind) \(number)", content: "<p>\"\u{2713}\"</p>\r\n",
                            lastUpdate: time)
                        page.order = 9 - number
                        page.parentPath = ""
                        page.availableLanguages = [.init(language: "ar", path: "/\u{645}/")]
                        if kind == .event { page.date = .init(start: time, end: time) }
                        if kind == .poi { page.location = .init(town: city, latitude: 48.4) }
                        return page
                    }
                }
                let resource = ContentResource(
                    path: pages[0].path, url: "https://x.example/\(language).png",
                    lastUpdate: time, hash: "2f97", content: .bytes(Array("\(city)".utf8)))
                try await store.content.store(
                    city: city, language: language, pages: pages, resources: [resource],
                    lastUpdate: time)
            }
            try await store.content.use(city)
        }
        try await store.close()
        return folder
    }

    /// Every file of a folder, by its path.
    private static func image(_ path: String) -> [String: Data] {
        var image: [String: Data] = [:]
        for case let name as String in FileManager.default.enumerator(atPath: path) ?? .init() {
            image[name] = FileManager.default.contents(atPath: path + "/" + name)
        }
        return image
    }

    private static func export(
        _ log: String, _ folder: String, _ more: String...
    ) throws -> ToolRun {
        try ToolRun.logtool("export", [log, folder, "--layout", "content-cache"] + more)
    }

    private static func importFolder(_ log: String, _ folder: String, _ more: String...) throws
        -> ToolRun
    {
        try ToolRun.logtool("import", [log, folder, "--layout", "content-cache"] + more)
    }

    private static func roundTrip(_ folder: TemporaryFolder) throws -> (files: Int, pages: Int) {
        let (first, second) = (folder.path + "/first", folder.path + "/second")
        let other = folder.path + "/other"
        var run = try export(folder.log, first)
        #expect(run.status == 0, "\(run.messages)")
        #expect(run.messages.isEmpty, "\(run.messages)")
        run = try importFolder(other, first)
        #expect(run.status == 0, "\(run.messages)")
        #expect(run.messages.isEmpty, "\(run.messages)")
        run = try export(other, second)
        #expect(run.status == 0, "\(run.messages)")
        #expect(image(first) == image(second))
        run = try importFolder(other, first)
        #expect(run.output.hasPrefix(#"{"appended":0,"#))
        #expect(try ToolRun.logtool("verify", other).status == 0)
        // No temporary folder is left.
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(Set(names) == ["log", "other", "first", "second"])
        let pages = try ToolRun.logtool("views", other, "pages").output
        return (image(first).count, pages.split(separator: "\n").count)
    }

    @Test(.verifies("CONT-32", "CONT-35", "TOOL-30", "TOOL-31"))
    func `exported content is equal after an import into another log, byte for byte`()
        async throws
    {
        let folder = try await Self.sample()
        defer { folder.remove() }
        let (files, pages) = try Self.roundTrip(folder)
        // Two lists; for each of two cities its languages, pages of three kinds in two languages, and two
        // pictures with their list.
        #expect(files == 22)
        #expect(pages == 36)
        // Both views are equal for both logs, except for the ids of events.
        let other = folder.path + "/other"
        for view in ["pages", "content"] {
            let (one, two) = try (
                ToolRun.logtool("views", folder.log, view).output,
                ToolRun.logtool("views", other, view).output
            )
            #expect(
                one.replacing(/,"event":"[0-9a-f-]+"/, with: "")
                    == two.replacing(/,"event":"[0-9a-f-]+"/, with: ""))
            #expect(!one.isEmpty)
            #expect(!one.contains("<p>"))
        }
    }

    @Test(.verifies("CONT-35", "TOOL-30", "TOOL-31"), .enabled(if: hasRealPages))
    func `exported real pages are equal after an import into another log`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let run = try ToolRun.logtool("import", folder.log, Self.realPages)
        #expect(run.output == "{\"appended\":233,\"skipped\":0,\"lines\":233}\n")
        let pages = try Self.roundTrip(folder).pages
        #expect(pages == 233)
        // The file has the members of the server's answer.
        let data = try #require(
            FileManager.default.contents(
                atPath: folder.path + "/first/content/lkaugsburg/en/categories.json"))
        let written = try #require(
            try JSONSerialization.jsonObject(with: data) as? [[String: Any]])
        var byPath: [String: [String: Any]] = [:]
        for line in try String(contentsOfFile: Self.realPages, encoding: .utf8)
            .split(separator: "\n")
        {
            let event = try #require(
                try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let page = try #require(event["data"] as? [String: Any])
            byPath[try #require(page["path"] as? String)] = page
        }
        #expect(written.count == 233)
        let names = [
            "last_update": "lastUpdate", "available_languages": "availableLanguages",
            "parent_path": "parentPath",
        ]
        for page in written {
            let path = try #require(page["path"] as? String)
            let given = try #require(byPath[path])
            #expect(page.count == given.count - 2)
            for (name, value) in page {
                #expect((value as? NSObject) == (given[names[name] ?? name] as? NSObject))
            }
        }
    }

    @Test(.verifies("TOOL-30", "TOOL-31"))
    func `options that exclude each other are a usage error`()
        async throws
    {
        let folder = try await Self.sample()
        defer { folder.remove() }
        let out = folder.path + "/out"
        for more in [["--from", "1"], ["--to", "1"], ["--type", "daybook.page.stored"]] {
            let run = try ToolRun.logtool(
                "export", [folder.log, out, "--layout", "content-cache"] + more)
            #expect(run.status == 64)
            #expect(run.output.isEmpty)
        }
        #expect(try Self.export(folder.log, "-").status == 64)
        #expect(try ToolRun.logtool("export", folder.log, out, "--layout", "zip").status == 64)
        for more in [["--ack"], ["--batch", "7"]] {
            let run = try ToolRun.logtool(
                "import", [folder.log, out, "--layout", "content-cache"] + more)
            #expect(run.status == 64)
            #expect(run.output.isEmpty)
        }
        #expect(try Self.importFolder(folder.log, "-").status == 64)
        #expect(!FileManager.default.fileExists(atPath: out))
    }

    @Test(.verifies("CONT-32", "TOOL-30"))
    func `only an export's folder is replaced, and only with --force`() async throws {
        let folder = try await Self.sample()
        defer { folder.remove() }
        let files = FileManager.default
        let out = folder.path + "/out"
        // An empty folder is accepted.
        try files.createDirectory(atPath: out, withIntermediateDirectories: false)
        #expect(try Self.export(folder.log, out).status == 0)
        let image = Self.image(out)
        #expect(try Self.export(folder.log, out).status == 74)
        #expect(try Self.export(folder.log, out + "/", "--force").status == 0)
        #expect(Self.image(out) == image)
        _ = try folder.file("out/precious")
        let refused = try Self.export(folder.log, out, "--force")
        #expect(refused.status == 74)
        #expect(refused.messages.contains("precious"))
        #expect(files.fileExists(atPath: out + "/precious"))
        let file = try folder.file("file").path
        try files.createSymbolicLink(
            atPath: folder.path + "/link", withDestinationPath: folder.path + "/empty")
        try files.createDirectory(
            atPath: folder.path + "/empty", withIntermediateDirectories: false)
        for path in [
            file, folder.path + "/link", folder.log, folder.log + "/out", folder.path,
            folder.path + "/none/out",
        ] {
            #expect(
                [66, 74].contains(try Self.export(folder.log, path, "--force").status), "\(path)")
        }
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        #expect(try files.contentsOfDirectory(atPath: folder.path + "/empty").isEmpty)
        let names = try files.contentsOfDirectory(atPath: folder.path)
        #expect(Set(names) == ["log", "out", "file", "link", "empty"])
        var folders = 0
        for case let path as String in files.enumerator(atPath: out) ?? .init()
        where path != "precious" {
            let found = try files.attributesOfItem(atPath: out + "/" + path)
            let isFolder = found[.type] as? FileAttributeType == .typeDirectory
            #expect(found[.posixPermissions] as? Int == (isFolder ? 0o700 : 0o600), "\(path)")
            if isFolder { folders += 1 }
        }
        // Two at the top; for each of two cities its own, two languages, the files, two pages.
        #expect(folders == 2 + 2 * (1 + 2 + 1 + 1 + 2))
    }

    @Test(.verifies("CONT-36"))
    func `a folder that differs from any export is never replaced`()
        async throws
    {
        let folder = try await Self.sample()
        defer { folder.remove() }
        let files = FileManager.default
        let out = folder.path + "/out"
        func refused(_ name: String) throws {
            let before = Self.image(out)
            let run = try Self.export(folder.log, out, "--force")
            #expect(run.status == 74, "\(name): \(run.messages)")
            #expect(run.messages.contains(name), "\(name): \(run.messages)")
            #expect(Self.image(out) == before, "\(name)")
        }
        let hash = String(repeating: "0", count: 32)
        for path in [
            "content/precious", "content/augsburg/precious", "content/augsburg/en/precious.json",
            "content/.git/config", "content/with space/en/pois.json",
            "resource-cache/augsburg/precious", "resource-cache/augsburg/files/test.jpg",
            "resource-cache/augsburg/files/\(hash)/precious",
            "resource-cache/augsburg/files/\(hash)/\(hash).a/b",
        ] {
            try? files.removeItem(atPath: out)
            #expect(try Self.export(folder.log, out).status == 0)
            let url = URL(filePath: out + "/" + path)
            try files.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("precious".utf8).write(to: url)
            try refused("which is not part of a content cache")
        }
        for path in ["cities-meta.json", "content", "resource-cache"] {
            try files.removeItem(atPath: out)
            #expect(try Self.export(folder.log, out).status == 0)
            try files.removeItem(atPath: out + "/" + path)
            try refused("has no \(path)")
        }
        for path in ["content/augsburg/en", "cities.json"] {
            try files.removeItem(atPath: out)
            #expect(try Self.export(folder.log, out).status == 0)
            try? files.removeItem(atPath: folder.path + "/elsewhere")
            try files.moveItem(atPath: out + "/" + path, toPath: folder.path + "/elsewhere")
            try files.createSymbolicLink(
                atPath: out + "/" + path, withDestinationPath: folder.path + "/elsewhere")
            try refused(path)
            #expect(files.fileExists(atPath: folder.path + "/elsewhere"))
        }
    }

    @Test(.verifies("CONT-34", "TOOL-31"))
    func `links are not followed, and what is passed over has its location`() async throws {
        let folder = try await Self.sample()
        defer { folder.remove() }
        let files = FileManager.default
        let (log, source) = (folder.path + "/other", folder.path + "/source")
        func spoiled(_ body: () throws -> Void) throws -> ToolRun {
            try? files.removeItem(atPath: source)
            #expect(try Self.export(folder.log, source).status == 0)
            try body()
            return try Self.importFolder(log, source)
        }
        for path in [
            "content", "content/augsburg", "content/augsburg/en", "cities.json",
            "content/augsburg/en/events.json", "resource-cache/augsburg/files",
        ] {
            let run = try spoiled {
                let elsewhere = folder.path + "/elsewhere"
                try? files.removeItem(atPath: elsewhere)
                try files.moveItem(atPath: source + "/" + path, toPath: elsewhere)
                try files.createSymbolicLink(
                    atPath: source + "/" + path, withDestinationPath: elsewhere)
            }
            #expect(run.status == 0, "\(run.messages)")
            #expect(run.messages.contains(path), "\(run.messages)")
        }
        let events = "content/augsburg/en/events.json"
        var run = try spoiled {
            try Data("[\n{]".utf8).write(to: URL(filePath: source + "/" + events))
        }
        #expect(run.status == 0)
        #expect(run.messages.contains("\(events), line 2, byte 3"))
        run = try spoiled {
            // A sparse file.
            try FileHandle(forWritingTo: URL(filePath: source + "/" + events))
                .truncate(atOffset: 1 << 40)
        }
        #expect(run.status == 0)
        #expect(run.messages.contains("at most 268435456 are read"))
        run = try spoiled {
            let pages = source + "/resource-cache/augsburg/files"
            let name = try #require(
                try files.subpathsOfDirectory(atPath: pages).first {
                    $0.contains("/")
                })
            try FileHandle(forWritingTo: URL(filePath: pages + "/" + name))
                .truncate(atOffset: 1 << 40)
        }
        #expect(run.status == 0)
        #expect(run.messages.contains("at most 268435456 are read"))
        try files.removeItem(atPath: source)
        #expect(try Self.export(folder.log, source).status == 0)
        try Data(#"{"augsburg":{"last_usage":"2019-008-13T00:03:19.457Z"}}"#.utf8)
            .write(to: URL(filePath: source + "/cities-meta.json"))
        run = try Self.importFolder(folder.path + "/fresh", source)
        #expect(run.status == 0)
        #expect(run.messages.contains("2019-008-13"))
        #expect(run.output.contains("\"passedOver\":1"))
        #expect(try Self.importFolder(log, folder.path + "/nowhere").status == 66)
        #expect(try Self.importFolder(log, source + "/cities.json").status == 74)
    }

    @Test(.verifies("CONT-33", "TOOL-30"))
    func `a damaged file is left out, all others are written, and the exit code is 65`()
        async throws
    {
        let folder = try await Self.sample()
        defer { folder.remove() }
        let file = folder.log + "/files/\(FileID(of: Array("augsburg".utf8)))"
        try Data("other".utf8).write(to: URL(filePath: file))
        let run = try Self.export(folder.log, folder.path + "/out")
        #expect(run.status == 65)
        #expect(run.messages.contains("left out: https://x.example/de.png"))
        #expect(run.output.contains("\"resources\":2"))
        #expect(FileManager.default.fileExists(atPath: folder.path + "/out/cities.json"))
    }

    @Test(.verifies("CONT-33", "TOOL-30"))
    func `a complete folder is not replaced by an incomplete one`()
        async throws
    {
        let folder = try await Self.sample()
        defer { folder.remove() }
        let out = folder.path + "/out"
        #expect(try Self.export(folder.log, out).status == 0)
        let image = Self.image(out)
        let file = folder.log + "/files/\(FileID(of: Array("augsburg".utf8)))"
        try Data("other".utf8).write(to: URL(filePath: file))
        var run = try Self.export(folder.log, out, "--force")
        #expect(run.status == 65)
        #expect(run.output.isEmpty)
        #expect(run.messages.contains("left out: https://x.example/de.png"))
        #expect(run.messages.contains("left as it is"))
        #expect(Self.image(out) == image)
        // An unreadable file is an error, not a missing file.
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.createDirectory(
            atPath: file, withIntermediateDirectories: false)
        run = try Self.export(folder.log, folder.path + "/other")
        #expect(run.status == 74, "\(run.messages)")
        #expect(!run.messages.contains("left out"), "\(run.messages)")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(Set(names) == ["log", "out"])
    }

    @Test(.verifies("TOOL-30", "TOOL-31"))
    func `content of a folder or a log does not control the terminal`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let source = folder.path + "/source"
        try FileManager.default.createDirectory(
            atPath: source, withIntermediateDirectories: false)
        func run(_ meta: String) throws -> ToolRun {
            try Data(meta.utf8).write(to: URL(filePath: source + "/cities-meta.json"))
            return try Self.importFolder(folder.path + "/other", source)
        }
        let escape = "\\u001b]0;owned\\u0007\\nlogtool: all is well"
        for meta in [
            #"{"a":{"last_usage":"\#(escape)"}}"#, #"{"\#(escape)":{"last_usage":7}}"#,
        ] {
            let messages = try run(meta).messages
            #expect(messages.contains("owned"))
            #expect(messages.filter { $0 == "\n" }.count == 1, "\(messages)")
            #expect(!messages.dropLast().utf8.contains { $0 < 0x20 || $0 == 0x7F })
        }
    }
}
