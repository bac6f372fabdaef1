// Events of the content cache about few cities, languages, paths and files, so that they affect each other;
// and pages with all possible members. For RandomEvents and the tests of the folder layout.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    private static let times = [
        "2023-11-20T14:06:57.863+01:00", "2019-08-12T00:03:19.457Z", "2020-03-01T00:00:00Z",
        "2011-02-04t23:59:60.5-11:30",
    ]

    /// Draws a time in a format that another program may write.
    package mutating func zonedTime() -> ZonedTime {
        ZonedTime(element(of: Self.times)) ?? ZonedTime(Timestamp(milliseconds: 0))
    }

    /// Draws a text that JSON must escape, that is long, or that is empty.
    private mutating func contentText() -> String {
        element(of: [
            "", "plain", "<p>\u{2713} \"quoted\"\\\r\n\t</p>", "\u{0}\u{1F}", "caf\u{E9}",
            "cafe\u{301}", String(repeating: "<li>long</li>", count: 40),
        ])
    }

    /// Draws unknown members, as a server may send them.
    private mutating func properties() -> [UInt8]? {
        guard bool(oneIn: 3) else { return nil }
        return Array(
            element(of: [
                #"{"id":7}"#, #"{"url":"https:\/\/x","organization":{"name":null,"b":[1e5,{}]}}"#,
                #"{"\u00e9":"caf\u00e9","e\u0301":1.50,"":[]}"#, #"{"kind":"poi","city":"x"}"#,
            ]).utf8)
    }

    /// Draws a page with a path.
    package mutating func contentPage(path: String) -> ContentPage {
        var page = ContentPage(
            path: path, kind: element(of: PageKind.allCases), title: contentText(),
            content: contentText(), lastUpdate: zonedTime())
        if bool() { page.order = int(in: -2...3) }
        if bool() { page.parentPath = element(of: ["", "/a/", entityID()]) }
        page.properties = properties()
        guard bool() else { return page }
        if bool() { page.thumbnail = contentText() }
        if bool() { page.hash = contentText() }
        if bool() { page.excerpt = contentText() }
        if bool() { page.children = array(0...2) { $0.entityID() } }
        if bool() {
            page.availableLanguages = ["de", "EN", "caf\u{E9}"].filter { _ in bool() }
                .map { .init(language: $0, path: "/\($0)/") }
        }
        if bool() {
            page.date = .init(
                start: zonedTime(), end: zonedTime(), isAllDay: bool(), properties: properties())
        }
        if bool() {
            page.location = .init(
                address: bool() ? contentText() : nil, town: bool() ? contentText() : nil,
                latitude: bool() ? Double(int(in: -900...900)) / 7 : nil,
                longitude: bool() ? 1e-7 : nil, properties: properties())
        }
        return page
    }

    /// Draws an entry of a list of cities.
    package mutating func listedCity(code: String) -> ListedCity {
        ListedCity(
            name: "Stadt \(code)", code: code, prefix: bool() ? contentText() : nil,
            isLive: bool(), extrasEnabled: bool(), eventsEnabled: bool(), sortingName: code,
            properties: properties())
    }

    /// Draws the data of any event of the content cache.
    package mutating func contentPayload() -> any EventPayload {
        let city = element(of: ["augsburg", "AHAUS", "caf\u{E9}", "cafe\u{301}"])
        let language = element(of: ["de", "en"])
        let path = element(of: ["/a/", "/b/", "/caf\u{E9}/"])
        let url = element(of: ["https://x.example/1.png", "http://y.example/2"])
        switch int(in: 0...11) {
        case 0, 1, 2:
            return PageStored(city: city, language: language, page: contentPage(path: path))
        case 3: return PageRemoved(city: city, language: language, path: path)
        case 4, 5:
            return ResourceStored(
                city: city, language: language, path: path, url: url,
                file: FileID(of: [UInt8(int(in: 0...2))]), size: int(in: 0...9),
                lastUpdate: zonedTime(), hash: bool() ? "2f97435138745" : nil,
                properties: properties())
        case 6: return ResourceRemoved(city: city, language: language, path: path, url: url)
        case 7:
            return ContentUpdated(city: city, language: language, lastUpdate: zonedTime())
        case 8: return ContentUsed(city: city, lastUsage: zonedTime())
        case 9:
            let codes = ["de", "en", "\u{E9}"].filter { _ in bool() }
            return LanguagesListed(
                city: city,
                languages: codes.map {
                    ListedLanguage(code: $0, name: bool() ? $0 : nil, properties: properties())
                })
        case 10:
            let codes = ["augsburg", "AHAUS", "kein"].filter { _ in bool() }
            return CitiesListed(cities: codes.map { listedCity(code: $0) })
        default: return ContentRemoved(city: city)
        }
    }
}
