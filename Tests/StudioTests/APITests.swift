// The JSON interface: every address, for logs of all states.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@testable import Studio

@Suite(.verifies("STU-12")) struct APITests {
    /// The addresses that any log answers, for one with an event of an id at position 1.
    private static func addresses(_ id: UUID) -> [String] {
        [
            "log", "events", "events?order=oldest&offset=2&limit=3",
            "events?type=daybook.note.added&status=pending&text=kaffe", "rank?position=1",
            "histogram", "histogram?buckets=7&order=oldest", "events/1", "events/1/story",
            "find?id=\(id)", "views", "outbox", "files", "compaction", "verify",
        ]
            + ViewTimeline.names.flatMap { name in
                [
                    "views/\(name)", "views/\(name)?at=0&text=a&limit=1",
                    "views/\(name)/marks?buckets=10", "views/\(name)/step?at=1&to=next",
                    "views/\(name)/step?at=1&to=previous",
                    "views/\(name)/changes?from=0&to=0",
                ]
            }
    }

    /// Expects that a reply is an object or a complete refusal.
    private func check(_ address: String, _ api: API) throws {
        let reply = api.reply(address)
        let json = try reply.json()
        guard case .object(let members) = json else {
            Issue.record("\(address) is no object")
            return
        }
        guard reply.status != 200 else { return }
        #expect((400...599).contains(reply.status))
        let code = members["error"]?["code"]?.stringValue
        #expect(code?.isEmpty == false, "\(address): \(reply.text)")
        #expect(code != "internal", "\(address): \(reply.text)")
        #expect(members["error"]?["message"]?.stringValue?.isEmpty == false)
        #expect(members["error"]?["remedy"] != nil)
    }

    // MARK: Logs

    @Test func `a log with events of most types answers at every address`() throws {
        let events = try Histories.rich()
        let types = Set(events.map(\.type))
        #expect(types.intersection(OfflineModel.catalogue.types).count > 30)
        let log = try SampleLog(events)
        defer { log.remove() }
        let api = try API(reading: log.directory)
        let waiting = try api.json("outbox").column("entries", "id").compactMap(\.stringValue)
        let id = try #require(waiting.first)
        var addresses = Self.addresses(events[0].id)
        addresses += try log.segments().map { "files/\($0)" }
        addresses += ["outbox/dependents?id=\(id)"]
        addresses += ViewTimeline.names.map {
            "views/\($0)/changes?from=1&to=\(events.count)&limit=5"
        }
        addresses += stride(from: 1, to: events.count, by: 25).map { "events/\($0)" }
        for address in addresses {
            #expect(api.reply(address).status == 200, "\(address): \(api.reply(address).text)")
            try check(address, api)
        }
    }

    @Test(.verifies("COMP-19")) func `files name what waits beside the log`() async throws {
        let log = try SampleLog(Histories.rich())
        defer { log.remove() }
        let companion = try await OfflineStore.openCompanion(
            at: URL(filePath: log.directory), name: "widget", rules: [.of(ValueSet.self)])
        try await companion.append(ValueSet(key: "a", value: "b"))
        let files = try API(reading: log.directory).json("files")
        #expect(files.column("companions", "companion").map(\.stringValue) == ["widget"])
        #expect(files.column("companions", "state").map(\.stringValue) == ["waiting"])
        #expect(files.column("companions", "events").map(\.int) == [1])
    }

    @Test(.verifies("STU-3"), arguments: ["empty", "damaged", "noLog", "notALog", "newer"])
    func `a log that cannot be shown whole says why, and answers at every address`(
        problem: String
    ) async throws {
        let folder = try TemporaryFolder.withProblem(problem)
        defer { folder.remove() }
        let followed = FollowedLog(LogFolder(folder.log))
        defer { followed.stop() }
        try await followed.follow()
        let api = API(followed, isWritable: false)
        let overview = try api.json("log")
        #expect(overview["problem"]?["code"]?.stringValue == problem)
        #expect(overview["problem"]?["message"]?.stringValue?.isEmpty == false)
        #expect(overview["complete"] == .bool(true))
        #expect((overview["events"]?.int ?? 0 > 0) == (problem == "damaged"))
        for address in Self.addresses(Histories.id(1)) { try check(address, api) }
    }

    @Test(.verifies("STU-3")) func `the events before the damage are shown, with their statuses`()
        async throws
    {
        let folder = try TemporaryFolder.withProblem("damaged")
        defer { folder.remove() }
        let followed = FollowedLog(LogFolder(folder.log))
        defer { followed.stop() }
        try await followed.follow()
        let api = API(followed, isWritable: false)
        let count = try #require(try api.json("log")["events"]?.int)
        #expect((1..<150).contains(count))
        #expect(try api.positions("events?order=oldest&limit=1000") == Array(1...count))
        // The first events are pending until an answer settles them.
        let outbox = try api.json("outbox")
        let waiting = followed.statuses.count { [.pending, .parked, .conflict].contains($0) }
        #expect(outbox["total"]?.int == waiting)
        #expect(waiting > 0)
        let verification = try api.json("verify")
        #expect(verification["findings"]?.list.isEmpty == false)
        let segments = try #require(try api.json("files")["segments"]?.list)
        #expect(segments[0]["damage"]?.list.isEmpty == false)
        #expect(segments.last?["damage"]?.list.isEmpty == true)
    }

    // MARK: Refusals

    private func statusesAPI() throws -> (log: SampleLog, api: API) {
        let log = try SampleLog(Histories.statuses())
        return (log, try API(reading: log.directory))
    }

    @Test func `an address that does not exist is 404`() throws {
        let (log, api) = try statusesAPI()
        defer { log.remove() }
        for address in [
            "", "nothing", "log/x", "events/1/causes", "events/1/story/x", "events/12",
            "views/none",
            "views/none/marks", "views/notes/other", "outbox/other", "files/none", "files/lock",
            "files/..%2Flock", "files/" + SegmentName.of(Position(99)), "find?id=\(UUID())",
            "outbox/dependents?id=\(Histories.id(1))",
        ] {
            #expect(api.reply(address).status == 404, "\(address): \(api.reply(address).text)")
            try check(address, api)
        }
    }

    @Test func `a parameter that is not valid is 400`() throws {
        let (log, api) = try statusesAPI()
        defer { log.remove() }
        for address in [
            "events?limit=0", "events?limit=1001", "events?limit=x", "events?offset=-1",
            "events?order=up", "events?status=lost", "events?from=x", "events?to=-1",
            "events?since=yesterday", "events?until=1", "events/0", "events/x", "events/-1",
            "events/18446744073709551615", "rank", "rank?position=x", "histogram?buckets=0",
            "histogram?buckets=1001", "find", "find?id=7", "views/notes?at=x",
            "views/notes?at=18446744073709551615", "views/notes/marks?buckets=5001",
            "views/notes/step", "views/notes/changes?from=1", "views/notes/changes?to=1",
            "outbox/dependents", "export?format=xml", "export?status=lost",
        ] {
            let reply = api.reply(address)
            #expect(reply.status == 400, "\(address): \(reply.text)")
            #expect(try reply.json()["error"]?["code"]?.stringValue == "badRequest")
        }
    }

    @Test func `positions after the end of the log are answered`() throws {
        let (log, api) = try statusesAPI()
        defer { log.remove() }
        #expect(try api.json("rank?position=99")["offset"] == .null)
        #expect(try api.json("views/notes/step?at=99&to=next")["position"] == .null)
        #expect(try api.json("views/notes/step?at=99&to=previous")["position"]?.int == 7)
        #expect(try api.positions("events?from=99").isEmpty)
        #expect(try api.positions("events?from=10&to=18446744073709551615") == [11, 10])
        #expect(api.reply("views/notes/changes?from=1&to=99").status == 422)
        #expect(try api.positions("events?offset=4294967295").isEmpty)
    }

    // MARK: Content

    @Test func `a list is paged in both orders, and a rank is an offset in it`() throws {
        let log = try SampleLog(Histories.rich())
        defer { log.remove() }
        let api = try API(reading: log.directory)
        for filter in [
            "", "status=pending&", "order=oldest&", "order=oldest&type=daybook.note.updated&",
        ] {
            let all = try api.positions("events?\(filter)limit=1000")
            #expect(try api.json("events?\(filter)limit=1")["total"]?.int == all.count)
            #expect(all == (filter.contains("oldest") ? all.sorted() : all.sorted().reversed()))
            for offset in stride(from: 0, to: all.count, by: 17) {
                let page = try api.positions("events?\(filter)offset=\(offset)&limit=5")
                #expect(page == Array(all[offset...].prefix(5)))
                let rank = try api.json("rank?\(filter)position=\(all[offset])")
                #expect(rank["offset"]?.int == offset)
            }
        }
    }

    @Test(.verifies("STU-7")) func `the histogram counts every selected event once`() throws {
        let log = try SampleLog(Histories.rich())
        defer { log.remove() }
        let api = try API(reading: log.directory)
        for filter in ["", "status=pending&", "type=daybook.note.added&", "subject=missing&"] {
            let total = try api.json("events?\(filter)limit=1")["total"]?.int
            let reply = try api.json("histogram?\(filter)buckets=9")
            let buckets = try #require(reply["buckets"]?.list)
            let types = try #require(reply["types"]?.list)
            #expect(buckets.count == 9)
            #expect(types.count <= 8)
            #expect(buckets.allSatisfy { $0.list.isEmpty || $0.list.count == types.count })
            #expect(buckets.flatMap { $0.list.compactMap(\.int) }.reduce(0, +) == total)
        }
    }

    @Test func `an event is shown as stored, with its location and what it is connected to`() throws
    {
        let (log, api) = try statusesAPI()
        defer { log.remove() }
        for event in try Histories.statuses() {
            let reply = try api.json("events/\(event.position)")
            let line = event.storedLine.dropLast()
            #expect(reply["eventText"]?.stringValue == String(decoding: line, as: UTF8.self))
            #expect(try reply["event"] == JSONValue(text: line))
            #expect(reply["row"]?["id"]?.stringValue == event.id.text)
            #expect(reply["place"]?["lineBytes"]?.int == event.lineBytes)
            let story = try api.json("events/\(event.position)/story")
            #expect(story["steps"]?.list.first?["what"]?.stringValue == "recorded")
            #expect(
                story["status"]?.stringValue
                    == Histories.expectedStatuses[Int(event.position.rawValue) - 1].rawValue)
            let found = try api.json("find?id=\(event.id)")
            #expect(found["position"]?.int == Int(event.position.rawValue))
        }
        #expect(try api.json("events/5").column("causes", "position").map(\.int) == [1])
        #expect(try api.json("events/1").column("effects", "position").map(\.int) == [5, 10])
        #expect(try api.json("events/3").column("effects", "position").map(\.int) == [10])
        let retracted = try api.json("events/6")
        #expect(retracted.column("effects", "detail").map(\.stringValue) == ["retracted"])
    }

    @Test func `the outbox has its entries, held ones first, and the server's answers`() throws {
        let (log, api) = try statusesAPI()
        defer { log.remove() }
        let outbox = try api.json("outbox")
        #expect(outbox.column("entries", "position").map(\.int) == [3, 5, 2, 4])
        #expect(outbox["total"]?.int == 4)
        let held = Histories.id(3).text
        #expect(outbox.column("entries", "heldBy").map(\.stringValue) == [nil, nil, nil, held])
        #expect(outbox.column("entries", "behind").map(\.int) == [1, 0, 0, 0])
        #expect(outbox["counts"]?[OutboxEntry.Status.pending.rawValue]?.int == 2)
        #expect(outbox.column("batches", "position").map(\.int) == [10])
        #expect(outbox.column("batches", "applied").map(\.int) == [1])
        let dependents = try api.json("outbox/dependents?id=\(held)")
        #expect(dependents.column("dependents", "position").map(\.int) == [4])
    }

    @Test(.verifies("STU-9"))
    func `the marks and the steps of a view are the events that changed it`() throws {
        let events = try Histories.rich()
        let log = try SampleLog(events)
        defer { log.remove() }
        let api = try API(reading: log.directory)
        for (number, name) in ViewTimeline.names.enumerated() {
            let changes = try SampleLog.naiveChanges(of: number, in: log.directory)
            let buckets = try #require(
                try api.json("views/\(name)/marks?buckets=10")["buckets"]?.list)
            #expect(buckets.count == 10)
            #expect(buckets.compactMap(\.int).reduce(0, +) == changes.count)
            for at in stride(from: 0, through: events.count, by: 50) {
                let next = try api.json("views/\(name)/step?at=\(at)&to=next")
                #expect(next["position"]?.int == changes.first { $0 > at })
                let previous = try api.json("views/\(name)/step?at=\(at)&to=previous")
                #expect(previous["position"]?.int == changes.last { $0 < at })
            }
        }
    }

    @Test(.verifies("STU-9")) func `a change has its rows and its cause`() throws {
        let (log, api) = try statusesAPI()
        defer { log.remove() }
        // The order of the two positions does not matter.
        for range in ["from=3&to=5", "from=5&to=3"] {
            let reply = try api.json("views/notes/changes?\(range)")
            #expect(reply["changed"]?.int == 2)
            #expect(reply["added"]?.int == 0)
            #expect(reply.column("rows", "cause").map { $0["position"]?.int } == [5, 4])
            let members = reply.column("rows", "members").map { $0.list.map(\.stringValue) }
            #expect(members == [["content", "updatedAt"], ["content", "updatedAt"]])
        }
    }

    @Test(.verifies("STU-10")) func `a view of the app is shown as stored last`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await EventStore.open(
            at: folder.log, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self, Visits.self])
        try await store.append(EventDraft(type: "com.example.visit", subject: "bergen"))
        try await store.checkpoint()
        try await store.append(EventDraft(type: "com.example.visit", subject: "oslo"))
        try await store.close()
        let api = try API(reading: folder.log)
        let views = try api.json("views")
        let stored = try #require(
            views["views"]?.list.first { $0["name"]?.stringValue == Visits.name })
        #expect(stored["kind"]?.stringValue == "stored")
        let at = try #require(stored["at"]?.int)
        let reply = try api.json("views/\(Visits.name)")
        #expect(reply["kind"]?.stringValue == "stored")
        #expect(reply["at"]?.int == at)
        #expect((1...2).contains(at))
        #expect(reply["state"]?["count"]?.int == at)
    }

    /// A view that only the app of the test knows.
    private struct Visits: Projection {
        static let name = "visits"
        static let version = 1
        private var count = 0

        init() {}

        init(encodedState: [UInt8]) throws {
            count = try JSONValue(text: encodedState)["count"]?.int ?? 0
        }

        func encodedState() -> [UInt8]? { Array("{\"count\":\(count)}".utf8) }

        mutating func fold(_ event: Event) { if event.type == "com.example.visit" { count += 1 } }
    }

    // MARK: Exports

    @Test func `an export has the lines that logtool export writes`() throws {
        let log = try SampleLog(Histories.rich())
        defer { log.remove() }
        let api = try API(reading: log.directory)
        for types in [nil, ["daybook.note.added", "daybook.note.updated"] as Set<String>] {
            var export = EventExport()
            export.types = types
            var (expected, summary) = ([UInt8](), ExportSummary())
            try export.write(LogReader(log.directory), &summary) { line, _ in expected += line }
            let filter = (types ?? []).map { "&type=\($0)" }.joined()
            let reply = api.reply("export?format=ndjson\(filter)")
            #expect(reply.body == expected)
            #expect(summary.events > 0)
            #expect(reply.fileName == "events.ndjson")
        }
    }

    /// The cells of a CSV text of RFC 4180, as a spreadsheet reads them.
    private func cells(_ csv: [UInt8]) -> [[String]] {
        var (rows, row, cell): ([[String]], [String], [UInt8]) = ([], [], [])
        var (isQuoted, index) = (false, 0)
        while index < csv.count {
            let byte = csv[index]
            let next = index + 1 < csv.count ? csv[index + 1] : 0
            index += 1
            switch byte {
            case UInt8(ascii: "\"") where isQuoted && next == byte:
                cell.append(byte)
                index += 1
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: ",") where !isQuoted, UInt8(ascii: "\n") where !isQuoted:
                if byte == UInt8(ascii: "\n"), cell.last == UInt8(ascii: "\r") { cell.removeLast() }
                row.append(String(decoding: cell, as: UTF8.self))
                cell = []
                guard byte == UInt8(ascii: "\n") else { continue }
                rows.append(row)
                row = []
            default: cell.append(byte)
            }
        }
        return rows
    }

    @Test(arguments: [
        "plain", "a,b", "a\"b", "line\nbreak", "line\r\nbreak", "\rfirst", "\n=1", "=1+1", "+1",
        "-1", "@a",
        "=\u{301}1", "x,\"\u{301}y", "x=1", "\"=1\"", "\u{2028}",
    ])
    func `a cell of a CSV export is read as its text, and not as a formula`(text: String) throws {
        var history = EventHistory()
        history.addOwn(
            EventDraft(
                id: Histories.id(1), type: "com.example.visit", subject: text, lane: "l",
                data: .json(JSONObjectWriter.object("text", text))))
        let log = try SampleLog(history.events.stored)
        defer { log.remove() }
        let reply = try API(reading: log.directory).reply("export?format=csv")
        #expect(reply.fileName == "events.csv")
        #expect(reply.contentType.hasPrefix("text/csv"))
        let rows = cells(reply.body)
        try #require(rows.count == 2)
        try #require(rows.allSatisfy { $0.count == 9 })
        #expect(rows[0][4] == "subject")
        #expect(rows[0][8] == "data")
        let isFormula = text.utf8.first.map { Array("=+-@\t\r\n".utf8).contains($0) } ?? false
        #expect(Array(rows[1][4].utf8) == Array(((isFormula ? "'" : "") + text).utf8))
        #expect(rows[1][8].hasPrefix("{\"text\":"))
    }

    @Test func `a parameter is decoded as a form writes it`() {
        let parameters = Parameters(query: "a=1+2%2B3&b=%C3%A9&b=&c&d=x=y")
        #expect(parameters.string("a") == "1 2+3")
        #expect(parameters.all.map(\.value) == ["1 2+3", "é", "", "", "x=y"])
        #expect(parameters.string("b") == nil)
        #expect(parameters.string("c") == nil)
    }
}
