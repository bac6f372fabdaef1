// The views of the content cache: folding and retention.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

private let noon = ZonedTime(Timestamp(milliseconds: 43_200_000))

private func page(
    _ path: String, _ kind: PageKind = .category, parent: String? = nil, order: Int? = nil
) -> ContentPage {
    var page = ContentPage(
        path: path, kind: kind, title: "Title of \(path)", content: "<p>\(path)</p>",
        lastUpdate: noon)
    page.parentPath = parent
    page.order = order
    return page
}

/// Events with given times, in the order in which they were added.
private struct Bench {
    var history = EventHistory()
    var pages = PagesView()
    var content = ContentView()

    @discardableResult
    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws -> Event {
        let event = history.addOwn(
            try EventDraft(payload, time: Timestamp(milliseconds: milliseconds)))
        pages.fold(event)
        content.fold(event)
        return event
    }

    @discardableResult
    mutating func add(
        _ pages: ContentPage..., language: String = "en", at milliseconds: Int64
    ) throws -> [Event] {
        try pages.map {
            try add(PageStored(city: "augsburg", language: language, page: $0), at: milliseconds)
        }
    }

    mutating func resource(
        _ path: String, _ url: String, _ byte: UInt8, at milliseconds: Int64
    ) throws {
        try add(
            ResourceStored(
                city: "augsburg", language: "en", path: path, url: url, file: FileID(of: [byte]),
                size: 1, lastUpdate: noon), at: milliseconds)
    }

    func paths(_ kind: PageKind, language: String = "en") -> [String] {
        pages.pages(kind, city: "augsburg", language: language).map(\.path)
    }
}

@Suite struct ContentViewTests {
    @Test(.verifies("CONT-4", "VIEW-16"))
    func `a path has the page that was stored last, and none after its removal`() throws {
        var bench = Bench()
        var changed = page("/a/")
        changed.title = "Newer"
        try bench.add(changed, at: 2_000)
        try bench.add(page("/a/"), at: 1_000)
        try bench.add(page("/b/"), at: 1_000)
        try bench.add(page("/a/"), language: "de", at: 5_000)
        #expect(bench.pages.page("/a/", city: "augsburg", language: "en")?.title == "Newer")
        try bench.add(
            PageRemoved(city: "augsburg", language: "en", path: "/a/"), at: 1_500)
        #expect(bench.paths(.category) == ["/a/", "/b/"])
        try bench.add(
            PageRemoved(city: "augsburg", language: "en", path: "/a/"), at: 3_000)
        #expect(bench.paths(.category) == ["/b/"])
        #expect(bench.paths(.category, language: "de") == ["/a/"])
        #expect(bench.pages.languages(of: "augsburg") == ["de", "en"])
    }

    @Test(.verifies("CONT-2"))
    func `pages are sorted by order, then start, then path; each kind separately`() throws {
        var bench = Bench()
        var (early, late) = (page("/z/", .event), page("/y/", .event))
        for (hour, update) in [(1, \ContentPage.date), (2, \ContentPage.date)] {
            let start = ZonedTime(Timestamp(milliseconds: Int64(hour)))
            let date = ContentPage.EventDate(start: start, end: start)
            if hour == 1 { early[keyPath: update] = date } else { late[keyPath: update] = date }
        }
        try bench.add(
            page("/c/", order: 2), page("/b/", order: 2), page("/d/"), page("/a/", order: -1),
            late, early, page("/x/", .event), page("/p/", .poi), at: 1)
        #expect(bench.paths(.category) == ["/a/", "/b/", "/c/", "/d/"])
        #expect(bench.paths(.event) == ["/z/", "/y/", "/x/"])
        #expect(bench.paths(.poi) == ["/p/"])
    }

    @Test(.verifies("CONT-2"))
    func `the tree follows a page that moves, and a page that changes its kind`() throws {
        var bench = Bench()
        func children(_ path: String) -> [String] {
            bench.pages.children(of: path, city: "augsburg", language: "en").map(\.path)
        }
        try bench.add(
            page("/a/", parent: ""), page("/a/2/", parent: "/a/", order: 2),
            page("/a/1/", parent: "/a/", order: 9), page("/b/", parent: ""), at: 1)
        #expect(children("") == ["/a/", "/b/"])
        #expect(children("/a/") == ["/a/2/", "/a/1/"])
        try bench.add(page("/a/1/", .poi, parent: "/b/"), at: 2)
        #expect(children("/a/") == ["/a/2/"])
        #expect(children("/b/") == ["/a/1/"])
        #expect(bench.paths(.poi) == ["/a/1/"])
        try bench.add(PageRemoved(city: "augsburg", language: "en", path: "/a/2/"), at: 2)
        #expect(children("/a/") == [])
    }

    @Test(.verifies("CONT-4", "VIEW-17"))
    func `the removal of a city voids all earlier events, in any order of arrival`() throws {
        var bench = Bench()
        try bench.add(
            CitiesListed(cities: [ListedCity(name: "A", code: "augsburg", sortingName: "A")]),
            at: 1)
        try bench.add(
            LanguagesListed(city: "augsburg", languages: [ListedLanguage(code: "en")]), at: 1)
        try bench.add(page("/a/"), page("/b/"), at: 1)
        try bench.add(ContentUpdated(city: "augsburg", language: "en", lastUpdate: noon), at: 1)
        try bench.add(ContentUsed(city: "augsburg", lastUsage: noon), at: 1)
        try bench.resource("/a/", "https://x.example/1.png", 1, at: 1)
        try bench.add(page("/b/"), at: 9)
        try bench.add(ContentRemoved(city: "augsburg"), at: 5)
        #expect(bench.paths(.category) == ["/b/"])
        #expect(bench.content.cityList?.map(\.code) == ["augsburg"])
        #expect(bench.content.cityCodes == [])
        #expect(bench.content.languages(of: "augsburg") == nil)
        #expect(bench.content.lastUpdate(of: "augsburg", language: "en") == nil)
        #expect(bench.content.lastUsage(of: "augsburg") == nil)
        #expect(bench.content.resources(city: "augsburg", language: "en") == [])
        #expect(!bench.content.refers(to: FileID(of: [1])))
        // Events older than the removal that arrive later are void.
        try bench.add(page("/c/"), at: 4)
        try bench.add(ContentUsed(city: "augsburg", lastUsage: noon), at: 4)
        try bench.resource("/a/", "https://x.example/1.png", 1, at: 4)
        #expect(bench.paths(.category) == ["/b/"])
        #expect(bench.content.cityCodes == [])
        #expect(!bench.content.refers(to: FileID(of: [1])))
    }

    @Test(.verifies("CONT-1", "VIEW-17"))
    func `lists are in their stored order, and live cities are those shown to users`()
        throws
    {
        var bench = Bench()
        let cities = ["z", "a", "m"].map {
            ListedCity(name: $0, code: $0, isLive: $0 != "a", sortingName: $0)
        }
        try bench.add(CitiesListed(cities: cities), at: 2)
        try bench.add(CitiesListed(cities: []), at: 1)
        #expect(bench.content.cityList == cities)
        #expect(bench.content.liveCities.map(\.code) == ["z", "m"])
        let languages = [ListedLanguage(code: "en", name: "English"), ListedLanguage(code: "de")]
        try bench.add(LanguagesListed(city: "z", languages: languages), at: 1)
        #expect(bench.content.languages(of: "z") == languages)
        #expect(bench.content.languages(of: "a") == nil)
        #expect(
            bench.content.rows().map { String(decoding: $0.json, as: UTF8.self) }[2]
                == #"{"city":"z","name":"z","live":true,"lastUsage":null,"languages":"#
                + #"[{"code":"en","name":"English"},{"code":"de"}],"updates":[],"resources":[]}"#)
    }

    @Test(.verifies("CONT-22"))
    func `a file is referred to as long as a resource names it`() throws {
        var bench = Bench()
        let file = FileID(of: [1])
        try bench.resource("/a/", "https://x.example/1.png", 1, at: 1)
        try bench.resource("/b/", "https://x.example/1.png", 1, at: 1)
        try bench.resource("/b/", "https://x.example/1.png", 1, at: 2)
        #expect(bench.content.refers(to: file))
        try bench.resource("/a/", "https://x.example/1.png", 2, at: 3)
        #expect(bench.content.refers(to: file))
        #expect(bench.content.refers(to: FileID(of: [2])))
        try bench.add(
            ResourceRemoved(
                city: "augsburg", language: "en", path: "/b/", url: "https://x.example/1.png"),
            at: 3)
        #expect(!bench.content.refers(to: file))
        // A decoded view refers to the same files.
        let again = try ContentView(encodedState: try #require(try bench.content.encodedState()))
        #expect(!again.refers(to: file))
        #expect(again.refers(to: FileID(of: [2])))
        #expect(again.resources(of: "/a/", city: "augsburg", language: "en").map(\.size) == [1])
    }

    @Test(.verifies("CONT-5")) func `no page's HTML is in memory or in a stored state`() throws {
        var bench = Bench()
        var long = page("/a/")
        long.content = String(repeating: "needle ", count: 50_000)
        let event = try bench.add(long, at: 1)[0]
        let state = try #require(try bench.pages.encodedState())
        #expect(state.count < 200)
        #expect(!String(decoding: state, as: UTF8.self).contains("needle"))
        let stored = try #require(bench.pages.page("/a/", city: "augsburg", language: "en"))
        #expect(stored.event == event.id)
        #expect(stored.contentBytes == long.content.utf8.count)
    }

    @Test(.verifies("CONT-4", "VIEW-1", "VIEW-2", "VIEW-10"))
    func `any permutation of a history of content folds to the same states and rows`() throws {
        func state<View: ListableView>(_ view: View.Type, _ events: [Event]) throws -> [[UInt8]] {
            let view = View(folding: events)
            let state = try #require(try view.encodedState())
            let read = try View(encodedState: state)
            try #require(try read.encodedState() == state)
            try #require(read.rows() == view.rows())
            return [state] + view.rows().map(\.json)
        }
        try Property.check(
            "fold(permutation) = fold", runs: 400, covering: ["removed", "kept", "ignored"]
        ) { choices in
            var history = EventHistory()
            for _ in 0..<choices.int(in: 1...20) {
                var draft = try EventDraft(choices.contentPayload())
                if choices.bool(oneIn: 12) { draft.data = .json(Array("{}".utf8)) }
                draft.id = UUID(integer: UInt128(choices.bits()) << 64 | UInt128(choices.bits()))
                draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...4)))
                if choices.bool() {
                    history.addOwn(draft)
                } else {
                    history.addForeign(draft, source: UUID(integer: 2), sequence: 7)
                }
            }
            var shuffled = history.events
            for index in shuffled.indices.dropLast() {
                shuffled.swapAt(index, choices.int(in: index...shuffled.count - 1))
            }
            choices.note("\(history.events.map { "\($0.type) \($0.lwwTimestamp)" })")
            let pages = try state(PagesView.self, history.events)
            try #require(try state(PagesView.self, shuffled) == pages)
            try #require(
                try state(ContentView.self, shuffled) == state(ContentView.self, history.events))
            // Folding is idempotent.
            try #require(
                try state(PagesView.self, history.events + shuffled).dropFirst()
                    == pages.dropFirst())
            if pages.count > 1 { choices.count("kept") }
            if history.events.contains(where: { $0.type == ContentRemoved.type }) {
                choices.count("removed")
            }
            if PagesView(folding: history.events).ignored > 0 { choices.count("ignored") }
        }
    }

    // MARK: Retention

    @Test(.verifies("CMP-3", "CONT-9"))
    func `pages need the winner of each path and the last removal of each city`() throws {
        var bench = Bench()
        func says() -> [Retention] { bench.history.events.map(bench.pages.retention) }
        func superseded(by index: Int) -> Retention {
            .superseded(by: [bench.history.events[index].lwwTimestamp])
        }
        try bench.add(page("/a/"), page("/b/"), at: 1)
        try bench.add(page("/a/"), at: 2)
        try bench.add(PageRemoved(city: "augsburg", language: "en", path: "/b/"), at: 3)
        #expect(
            says() == [
                superseded(by: 2), superseded(by: 3), .needed(.current), .needed(.current),
            ])
        try bench.add(ContentRemoved(city: "augsburg"), at: 5)
        try bench.add(page("/a/"), at: 7)
        #expect(
            says() == [
                superseded(by: 5), superseded(by: 4), superseded(by: 5), superseded(by: 4),
                .needed(.deletion), .needed(.current),
            ])
        try bench.add(ContentRemoved(city: "augsburg"), at: 9)
        #expect(says()[4...] == [superseded(by: 6), superseded(by: 6), .needed(.deletion)])
        #expect(bench.history.events.map(bench.content.retention)[4...].first == superseded(by: 6))
    }

    @Test(.verifies("CMP-3", "CONT-9"))
    func `the other registers need their winners until their city is removed`() throws {
        var bench = Bench()
        func says() -> [Retention] { bench.history.events.map(bench.content.retention) }
        let listed = [ListedLanguage(code: "en")]
        for time in [1, 2] as [Int64] {
            try bench.add(CitiesListed(cities: []), at: time)
            try bench.add(LanguagesListed(city: "augsburg", languages: listed), at: time)
            try bench.add(
                ContentUpdated(city: "augsburg", language: "en", lastUpdate: noon), at: time)
            try bench.add(ContentUsed(city: "augsburg", lastUsage: noon), at: time)
            try bench.resource("/a/", "https://x.example/1.png", UInt8(time), at: time)
        }
        try bench.add(
            ResourceRemoved(
                city: "augsburg", language: "en", path: "/b/", url: "https://x.example/1"), at: 2)
        for number in 0..<5 {
            #expect(
                says()[number] == .superseded(by: [bench.history.events[number + 5].lwwTimestamp]))
            #expect(says()[number + 5] == .needed(.current))
        }
        #expect(says()[10] == .needed(.current))
        let removed = try bench.add(ContentRemoved(city: "augsburg"), at: 3)
        #expect(says()[5] == .needed(.current))
        for number in 6...10 { #expect(says()[number] == .superseded(by: [removed.lwwTimestamp])) }
        #expect(says()[11] == .needed(.deletion))
    }

    @Test(.verifies("CMP-1", "CONT-9"))
    func `without the events that compaction may remove, any history folds to the same states`()
        throws
    {
        func check<View: CompactableView & ListableView>(
            _ view: View.Type, _ events: [Event], _ later: [Event], _ choices: inout Choices
        ) throws {
            let state = View(folding: events)
            let left = events.filter { event in
                if case .superseded = state.retention(of: event) { return !choices.bool() }
                return true
            }
            if left.count < events.count { choices.count("taken") }
            let (one, other) = (View(folding: left + later), View(folding: events + later))
            try #require(try one.encodedState() == other.encodedState(), "\(View.name)")
        }
        try Property.check("fold(L - R + X) = fold(L + X)", runs: 400, covering: ["taken"]) {
            choices in
            var history = EventHistory()
            for _ in 0..<choices.int(in: 2...24) {
                var draft = try EventDraft(choices.contentPayload())
                draft.id = UUID(integer: UInt128(choices.bits()) << 64 | UInt128(choices.bits()))
                draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...9)))
                history.addOwn(draft)
            }
            let cut = choices.int(in: 1...history.events.count)
            let (events, later) = (history.events[..<cut], history.events[cut...])
            try check(PagesView.self, Array(events), Array(later), &choices)
            try check(ContentView.self, Array(events), Array(later), &choices)
        }
    }

    @Test(.verifies("CMP-4"))
    func `events with invalid data are counted, change nothing and are kept`() throws {
        var history = EventHistory()
        let ofPages = [PageStored.type, PageRemoved.type, ContentRemoved.type]
        let ofContent = [
            CitiesListed.type, LanguagesListed.type, ResourceStored.type, ResourceRemoved.type,
            ContentUpdated.type, ContentUsed.type, ContentRemoved.type,
        ]
        for type in ofPages + ofContent.dropLast() {
            history.addOwn(EventDraft(type: type, data: .json(Array(#"{"city":7}"#.utf8))))
        }
        let (pages, content) = (
            PagesView(folding: history.events), ContentView(folding: history.events)
        )
        #expect(pages.ignored == 3)
        #expect(content.ignored == 7)
        #expect(pages.rows().isEmpty)
        #expect(content.rows().isEmpty)
        for event in history.events {
            #expect(
                pages.retention(of: event)
                    == (ofPages.contains(event.type) ? .needed(.notUnderstood) : .unconcerned))
            #expect(
                content.retention(of: event)
                    == (ofContent.contains(event.type) ? .needed(.notUnderstood) : .unconcerned))
        }
    }
}
