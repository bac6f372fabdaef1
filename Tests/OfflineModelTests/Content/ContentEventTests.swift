// The rules of the content cache's events, as recording and importing check them. Spec/model/events.md.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private func normalised(_ type: String, _ data: String) throws(EventError) -> EventDraft {
    var draft = EventDraft(type: "daybook.\(type)", data: .json(Array(data.utf8)))
    try OfflineModel.catalogue.normalise(&draft)
    return draft
}

private let time = "2023-11-20T14:06:57.863+01:00"
private let file = String(repeating: "0a", count: 32)

@Suite(.verifies("EVT-7")) struct ContentEventTests {
    private static let page = #""path":"/a/","title":"","content":"","lastUpdate":"\#(time)""#
    private static let place = #""city":"c","language":"en""#
    private static let resource =
        #""path":"/a/","url":"https://x.example/1","file":"\#(file)","size":0,"lastUpdate":"\#(time)""#
    private static let listed =
        #"{"name":"n","code":"a","live":true,"extrasEnabled":false,"eventsEnabled":true,"sortingName":"s"}"#

    @Test(
        .verifies("EVT-2", "CONT-1"),
        arguments: [
            ("cities.listed", #"{"cities":[]}"#, nil),
            ("cities.listed", #"{"cities":[\#(listed)]}"#, nil),
            ("languages.listed", #"{"city":"c","languages":[{"code":"en"}]}"#, "c"),
            ("page.stored", "{\(place),\(page)}", "/a/"),
            ("page.stored", #"{\#(place),\#(page),"kind":"poi","order":-3,"location":{}}"#, "/a/"),
            ("page.removed", #"{\#(place),"path":"/a/"}"#, "/a/"),
            ("resource.stored", "{\(place),\(resource)}", "/a/"),
            ("resource.removed", #"{\#(place),"path":"/a/","url":"u"}"#, "/a/"),
            ("content.updated", #"{\#(place),"lastUpdate":"\#(time)"}"#, "c"),
            ("content.used", #"{"city":"c","lastUsage":"\#(time)"}"#, "c"),
            ("content.removed", #"{"city":"c"}"#, "c"),
        ] as [(String, String, String?)])
    func `each type takes its subject from its data and is not shipped`(
        type: String, data: String, subject: String?
    ) throws {
        let draft = try normalised(type, data)
        #expect(draft.subject == subject)
        #expect(draft.lane == nil)
        #expect(OfflineModel.catalogue[draft.type]?.action == nil)
    }

    @Test(
        .verifies("EVT-1", "CONT-3"),
        arguments: [
            ("cities.listed", "{}"), ("cities.listed", #"{"cities":[\#(listed),\#(listed)]}"#),
            ("cities.listed", #"{"cities":[{"code":"a"}]}"#), ("cities.listed", #"{"cities":{}}"#),
            ("cities.listed", #"{"cities":[\#(listed.replacing("\"n\"", with: "\"\""))]}"#),
            ("cities.listed", #"{"cities":[\#(listed.replacing("\"a\"", with: "\"\""))]}"#),
            ("cities.listed", #"{"cities":[\#(listed.replacing("\"s\"", with: "\"\""))]}"#),
            ("languages.listed", #"{"city":"","languages":[]}"#),
            ("languages.listed", #"{"city":"c","languages":[{"code":"en","name":null}]}"#),
            ("languages.listed", #"{"city":"c","languages":[{"code":"en"},{"code":"\u0065n"}]}"#),
            ("page.stored", "{\(page)}"), ("page.stored", #"{\#(place),\#(page),"kind":"news"}"#),
            ("page.stored", #"{\#(place),"path":"/a/","title":"","content":""}"#),
            (
                "page.stored",
                #"{\#(place),"path":"/a/","title":"","content":"","lastUpdate":"2023-11-20"}"#
            ),
            ("page.stored", #"{\#(place),\#(page),"order":1.5}"#),
            ("page.stored", #"{\#(place),\#(page),"order":1e30}"#),
            ("page.stored", #"{\#(place),\#(page),"parentPath":null}"#),
            ("page.stored", #"{\#(place),\#(page),"children":[""]}"#),
            ("page.stored", #"{\#(place),\#(page),"availableLanguages":["de"]}"#),
            ("page.stored", #"{\#(place),\#(page),"availableLanguages":{"de":7}}"#),
            ("page.stored", #"{\#(place),\#(page),"availableLanguages":{"de":"/","\u0064e":"/"}}"#),
            ("page.stored", #"{\#(place),\#(page),"date":{"startDate":"\#(time)"}}"#),
            ("page.stored", #"{\#(place),\#(page),"location":{"latitude":"48"}}"#),
            ("page.stored", #"{\#(place),\#(page),"location":{"latitude":1e999}}"#),
            ("page.removed", #"{\#(place),"path":""}"#),
            ("resource.stored", #"{\#(place),\#(resource.replacing("https:", with: ""))}"#),
            ("resource.stored", #"{\#(place),\#(resource.replacing("0a0a", with: "0A0a"))}"#),
            ("resource.stored", #"{\#(place),\#(resource.replacing("0,", with: "-1,"))}"#),
            ("resource.removed", #"{\#(place),"path":"/a/"}"#),
            ("content.updated", #"{\#(place),"lastUpdate":"2019-008-13T00:03:19.457Z"}"#),
            ("content.used", #"{"city":"c"}"#), ("content.removed", "[]"),
        ])
    func `data that break a rule are refused`(type: String, data: String) {
        #expect { _ = try normalised(type, data) } throws: {
            ($0 as? EventError)?.code == .invalidData
        }
    }

    @Test(.verifies("CONT-2", "CONT-3"))
    func `an encoded event is decoded to the same value, and encoded again to the same bytes`()
        throws
    {
        func check<Payload: EventPayload>(_ payload: Payload) throws {
            let json = try payload.json()
            let read = try Payload(json: json)
            try #require(try read.json() == json)
            try #require(read.subjectText == payload.subjectText)
        }
        try Property.check("json(read(json)) = json", runs: 500) { choices in
            try check(choices.contentPayload())
        }
    }

    @Test(.verifies("CONT-5", "CONT-10"))
    func `the spelling of a page and unknown members do not change it`() throws {
        func digests(_ texts: [String]) throws -> [[UInt8]] {
            try texts.map { try PageStored(json: Array($0.utf8)).json() }
        }
        let same = try digests([
            #"{\#(Self.place),\#(Self.page),"order":100,"availableLanguages":{"de":"/d/","ar":"/a/"}}"#,
            #"{"order":1e2,\#(Self.page),\#(Self.place),"availableLanguages":{"ar":"\/a\/","de":"/d/"},"x":null}"#,
        ])
        #expect(same[0] == same[1])
        let other = try digests([
            #"{\#(Self.place),\#(Self.page)}"#, #"{\#(Self.place),\#(Self.page),"thumbnail":""}"#,
            #"{\#(Self.place),\#(Self.page),"kind":"event"}"#,
            #"{\#(Self.place),\#(Self.page.replacing("+01:00", with: "+02:00"))}"#,
        ])
        #expect(Set(other).count == 4)
    }
}
