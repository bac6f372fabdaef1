// The pages, and the file with the pages and a log's data.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Studio

/// The disk, with the number of files that are open at once.
private final class OpenFileCounter: ForwardingFileSystem {
    let base: any FileSystem = POSIXFileSystem()
    private let opened = Mutex((now: 0, most: 0))

    /// The most files that were open at once.
    var most: Int { opened.withLock { $0.most } }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let file = Counted(try base.open(path, mode), self)
        count(1)
        return file
    }

    private func count(_ change: Int) {
        opened.withLock { opened in
            opened.now += change
            opened.most = max(opened.most, opened.now)
        }
    }

    private final class Counted: ForwardingFile {
        let file: any File
        private let counter: OpenFileCounter

        init(_ file: any File, _ counter: OpenFileCounter) {
            (self.file, self.counter) = (file, counter)
        }

        deinit { counter.count(-1) }
    }
}

@Suite(.verifies("STU-11")) struct MailedPageTests {
    // MARK: The pages

    private static let folder = Logtool.root.appending(path: "Tools/studio/Pages")

    private func lines(_ name: String) throws -> [String] {
        try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test func `all files of the pages are part of the executable`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(names) == Set(StudioPages.files.keys))
        for name in names {
            let text = try String(
                contentsOf: Self.folder.appending(path: name), encoding: .utf8)
            #expect(StudioPages.files[name] == text, "\(name)")
        }
        #expect(Set(StudioPages.modules) == Set(names.filter { $0.hasSuffix(".js") }))
        #expect(StudioPages.modules.count == Set(StudioPages.modules).count)
        #expect(StudioPages.page("/")?.contentType.hasPrefix("text/html") == true)
        #expect(StudioPages.page("/nowhere.js") == nil)
    }

    /// Modules are joined to one, without their imports and exports: each must come after those that it
    /// imports, rename nothing, and no two may declare a name.
    @Test func `the modules can be joined`() throws {
        let imported = #/import \{ ([\w$, ]+) \} from '\./([a-z]+\.js)';/#
        let declared = #/(?:export )?(?:async )?(?:function\*?|class|const|let|var) ([\w$]+).*/#
        var owners: [String: String] = [:]
        var earlier: Set<String> = []
        for name in StudioPages.modules {
            for line in try lines(name) {
                if line.hasPrefix("import") {
                    let match = try #require(line.wholeMatch(of: imported), "\(name): \(line)")
                    #expect(earlier.contains(String(match.2)), "\(name): \(line)")
                    #expect(!match.1.contains(" as "), "\(name): \(line)")
                } else if let match = line.wholeMatch(of: declared) {
                    let other = owners.updateValue(name, forKey: String(match.1))
                    #expect(other == nil, "\(match.1) of \(name) is declared in \(other ?? "")")
                } else {
                    #expect(!line.hasPrefix("export"), "\(name): \(line)")
                }
            }
            earlier.insert(name)
        }
        #expect(owners.count > StudioPages.modules.count)
    }

    @Test(.verifies("STU-6"))
    func `the pages have no inline script, and load nothing from elsewhere`() throws {
        let page = try lines("index.html").joined(separator: "\n")
        let scripts = page.matches(of: #/<script[^>]*>(.*?)</script>/#.dotMatchesNewlines())
        #expect(scripts.count == 1)
        #expect(scripts.allSatisfy { $0.1.isEmpty })
        #expect(page.firstMatch(of: #/\son\w+=|javascript:|style=/#) == nil)
        let links = page.matches(of: #/(?:src|href)="([^"]*)"/#).map { String($0.1) }
        #expect(links.allSatisfy { $0.hasPrefix("#") || StudioPages.files[$0] != nil })
        let forbidden =
            #/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/#
        for name in StudioPages.modules {
            for line in try lines(name) {
                #expect(line.firstMatch(of: forbidden) == nil, "\(name): \(line)")
            }
        }
        let style = try lines("studio.css").joined()
        #expect(!style.contains("@import"))
        #expect(!style.contains("http"))
    }

    // MARK: The file

    /// The text of the file of a log.
    private func html(_ page: MailedPage, in folder: TemporaryFolder) throws -> String {
        let path = folder.appending("studio.html").path
        try page.write(to: path)
        return try String(contentsOfFile: path, encoding: .utf8)
    }

    /// The data in the file.
    private func data(_ html: String) throws -> JSONValue {
        let start = "<script type=\"application/json\" id=\"daybook-data\">"
        let parts = html.components(separatedBy: start)
        try #require(parts.count == 2)
        let text = try #require(parts[1].components(separatedBy: "</script>").first)
        return try JSONValue(text: text.utf8)
    }

    @Test func `the file is complete in itself, and of its owner only`() throws {
        let log = try SampleLog(Histories.statuses())
        defer { log.remove() }
        let page = try MailedPage(of: log.directory, account: nil)
        let html = try html(page, in: log.folder)
        let path = log.folder.appending("studio.html").path
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(html.utf8.count == page.byteCount)
        #expect(throws: LogError.self) { try page.write(to: path) }
        #expect(throws: LogError.self) { try page.write(to: log.directory + "/studio.html") }
        #expect(try log.folder.names(in: ".") == ["log", "studio.html"])
        let policy =
            "content=\"default-src 'none'; script-src 'unsafe-inline'; "
            + "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\""
        #expect(html.contains(policy))
        let links = html.matches(of: #/(?:src|href)=["']([^"']*)/#).map { String($0.1) }
        #expect(links.allSatisfy { $0.hasPrefix("#") }, "\(links)")
        #expect(!html.contains("<link"))
        let parts = html.components(separatedBy: "<script type=\"module\">\n")
        try #require(parts.count == 2)
        let script = try #require(parts[1].components(separatedBy: "\n</script>").first)
        let lines = script.split(separator: "\n")
        #expect(lines.count > 1_000)
        #expect(!lines.contains { $0.hasPrefix("import") || $0.hasPrefix("export") })
        #expect(parts[1].hasSuffix("</html>\n"))
    }

    @Test func `a log of 300 segments is read with 128 of them open`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = try Log(at: folder.log)
        for position in UInt64(1)...300 {
            var line: [UInt8] = []
            // A UUID of version 4.
            let id = 0x4000_8000_0000_0000_0000 + UInt128(position)
            LinePrefix(own: id, source: 7, at: Position(position)).append(to: &line)
            try log.append(
                line
                    + Array(
                        (#"x","partitionkey":"l","time":"2026-02-22T10:30:14.425Z","data":{}}"#
                            + "\n")
                            .utf8))
            try log.roll()
        }
        try log.close()
        let files = OpenFileCounter()
        let snapshot = try LogSnapshot(of: folder.log, files)
        #expect(files.most <= LogSnapshot.openSegmentsMax + 4)
        let reader = LogFolder(folder.log, snapshot)
        #expect(try reader.segments().allSatisfy { try reader.open($0).size() > 0 })
        #expect(files.most <= LogSnapshot.openSegmentsMax + 4)
        #expect(throws: Never.self) { try MailedPage(of: folder.log, account: nil) }
        // One that was closed, and replaced since.
        let first = folder.log + "/" + SegmentName.of(Position(1))
        let bytes = try Data(contentsOf: URL(filePath: first))
        try bytes.write(to: URL(filePath: first), options: .atomic)
        #expect(throws: FileError.self) {
            try snapshot.open(first, .read).read(at: 0, count: 1)
        }
    }

    @Test func `the content of an event cannot end the element of the data`() throws {
        let text = "</script><script>alert(1)</script><!--"
        let log = try SampleLog(Histories.statuses(text: text))
        defer { log.remove() }
        let html = try html(MailedPage(of: log.directory, account: nil), in: log.folder)
        #expect(!html.contains("alert(1)<"))
        #expect(!html.contains("<script>alert"))
        let lines = try data(html).column("lines", "line").compactMap(\.stringValue)
        #expect(lines.count { $0.contains(text) } == 4)
    }

    @Test func `the file has the log's data`() throws {
        let events = try Histories.rich()
        let log = try SampleLog(events)
        defer { log.remove() }
        let page = try MailedPage(of: log.directory, account: nil)
        #expect(page.events == events.count)
        #expect(page.leftOut == 0)
        let data = try data(html(page, in: log.folder))
        guard case .object(let members) = data else { throw POSIXError(.EINVAL) }
        #expect(
            Set(members.keys) == [
                "form", "log", "lines", "views", "stories", "outbox", "files", "segments",
                "compaction", "verify",
            ])
        let lines = data.column("lines", "line").map(\.stringValue)
        #expect(
            lines == events.map { String(decoding: $0.storedLine.dropLast(), as: UTF8.self) })
        let api = try API(reading: log.directory)
        let statuses = api.log.statuses.map(\.rawValue)
        #expect(data.column("lines", "status").map(\.stringValue) == statuses)
        #expect(try data["outbox"]?["total"] == api.json("outbox")["total"])
        #expect(try data["segments"]?[log.segments()[0]]?["frames"] != nil)
        guard case .object(let stories)? = data["stories"] else { throw POSIXError(.EINVAL) }
        #expect(stories.count == min(200, data["outbox"]?["total"]?.int ?? 0))
        #expect(data.column("views", "name").map(\.stringValue) == ViewTimeline.names)
        for (number, view) in (data["views"]?.list ?? []).enumerated() {
            var rows: [EntityID: JSONValue] = [:]
            for step in view["history"]?.list ?? [] { Self.apply(step, to: &rows) }
            let expected = try api.views.rows(of: number, at: Position(UInt64(events.count)))
            #expect(
                try Set(rows.values) == Set(expected.map { try JSONValue(text: $0.json) }),
                "\(ViewTimeline.names[number])")
        }
    }

    /// Applies a step of a view's history to the rows before it.
    private static func apply(_ step: JSONValue, to rows: inout [EntityID: JSONValue]) {
        if case .object(let set)? = step["set"] {
            for (key, row) in set { rows[EntityID(key)] = row }
        }
        for key in step["removed"]?.list ?? [] { rows[EntityID(key.stringValue ?? "")] = nil }
    }

    /// Every step of every history, against the rows of a fold of its own.
    @Test func `the histories have the rows at every position, also of a compacted log`()
        async throws
    {
        let (whole, compacted) = (try SampleLog(Histories.rich()), try await CompactedLog())
        defer {
            whole.remove()
            compacted.folder.remove()
        }
        for folder in [whole.folder, compacted.folder] {
            let api = try API(reading: folder.log)
            let path = folder.appending("page.html").path
            try MailedPage(of: folder.log, account: nil).write(to: path)
            let data = try data(String(contentsOfFile: path, encoding: .utf8))
            for (number, view) in (data["views"]?.list ?? []).enumerated() {
                var rows: [EntityID: JSONValue] = [:]
                for step in view["history"]?.list ?? [] {
                    Self.apply(step, to: &rows)
                    let position = Position(UInt64(step["position"]?.int ?? 0))
                    let expected = try api.views.rows(of: number, at: position)
                    #expect(
                        try Set(rows.values) == Set(expected.map { try JSONValue(text: $0.json) }),
                        "\(ViewTimeline.names[number]) at \(position)")
                }
            }
        }
    }

    @Test func `the history of a view with many rows has fewer steps, and the same end`() throws {
        let log = try SampleLog(Histories.settings(Array(0..<5_000)), commit: 500)
        defer { log.remove() }
        let data = try data(html(MailedPage(of: log.directory, account: nil), in: log.folder))
        let settings = try #require(ViewTimeline.names.firstIndex(of: SettingsView.name))
        let history = data["views"]?.list[settings]["history"]?.list ?? []
        #expect((1_000...2_000).contains(history.count))
        #expect(history.last?["position"]?.int == 5_000)
    }

    @Test func `a copy of a log stays as it is while the log is written and compacted`()
        async throws
    {
        let events = try Histories.rich()
        let log = try SampleLog(Array(events[..<200]))
        defer { log.remove() }
        let folder = LogFolder(log.directory, try LogSnapshot(of: log.directory))
        func lines(_ folder: LogFolder) throws -> [String] {
            var lines: [String] = []
            try folder.reader.forEachLine { _, line in
                lines.append(String(decoding: line.array, as: UTF8.self))
                return true
            }
            return lines
        }
        let before = try lines(folder)
        #expect(before.count == 200)
        try log.append(events[200...])
        try log.close()
        #expect(try lines(folder) == before)
        try await CompactedLog.compact(log.directory)
        #expect(try lines(LogFolder(log.directory)) != before)
        #expect(try lines(folder) == before)
    }

    @Test func `a log that does not exist has no file`() throws {
        #expect(throws: LogError.self) { try MailedPage(of: "/nowhere/at-all", account: nil) }
    }
}
