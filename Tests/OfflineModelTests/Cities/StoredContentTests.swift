// Content that an app has fetched itself: one bad element keeps no city off the device, and what a portal or a server has
// sent in the place of an image or a file is not stored. Spec/model/cities.md, CITY-16; Spec/model/downloads.md, DL-10.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private let page = Array("<?xml version=\"1.0\"?><!DOCTYPE html><html>login</html>".utf8)

private func openStore() async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), compaction: nil,
        environment: LogEnvironment(fileSystem: InMemoryFileSystem(), sleep: noTimers))
}

/// A city with an attraction, a category and a related city that break a rule, one each.
private let json =
    #"{"id":"c","name":"n","country":"x","description":"d","costOfLiving":1,"internetSpeed":1,"#
    + #""safetyRating":1,"climate":"c","touristAttractions":[{"id":"1","name":"n","description":"d","#
    + #""location":{"lat":1,"lng":2}},{"id":"2","name":"n","description":"d","location":{"lat":1}}],"#
    + #""categories":[7,{"id":"k","name":"n"}],"relatedCities":["",  "e"],"more":[1]}"#

private func image(
    _ id: String, _ content: [UInt8], width: Int = 1, file: String? = nil
) -> CityImage {
    CityImage(
        id: id, url: "https://x.example/\(file ?? id).jpg", kind: .hero, width: width, height: 1,
        content: content)
}

@Suite struct StoredContentTests {
    @Test(.verifies("CITY-16", "DL-10"))
    func `a city is stored without the elements of its lists that break a rule`() async throws {
        let url = try #require(URL(string: "https://x.example/"))
        let manifest = try CityManifest(
            json: Array(#"{"city":\#(json),"images":[]}"#.utf8), cityId: "c", from: url)
        #expect(manifest.notes.count == 3)
        #expect(manifest.notes[0].contains("touristAttractions[1]"))
        let store = try await openStore()
        try await store.cities.cache(json: Array(json.utf8), isExplicit: true, for: "u")
        let data = try await store.cities.read("c")?.data
        #expect(data?.touristAttractions.map(\.id) == ["1"])
        #expect(data?.categories.map(\.id) == ["k"])
        #expect(data?.relatedCities == ["e"])
    }

    @Test(.verifies("CITY-16"))
    func `a bad image of a city is one that the copy lacks, or keeps the stored one`() async throws
    {
        let store = try await openStore()
        let json = Array(json.utf8)
        try await store.cities.cache(
            json: json, images: [image("a", [1])], isExplicit: true, for: "u")
        let city = try await store.cities.cache(
            json: json,
            images: [
                image("a", page), image("b", page), image("c", []), image("d", [2], width: -1),
                image("", [3]), image("e", [4]),
            ], isExplicit: true, for: "u")
        #expect(city.images.map(\.id) == ["a", "e"])
        #expect(city.images[0].file == FileID(of: [1]))
        #expect(city.missingImages.map(\.id) == ["b", "c", "d", "images[4]"])
    }

    @Test(.verifies("DL-27"))
    func `images of one URL stay each for itself, and one that is renamed gets its new id`()
        async throws
    {
        let store = try await openStore()
        func cache(_ images: [CityImage]) async throws -> OfflineCity {
            try await store.cities.cache(
                json: Array(json.utf8), images: images, isExplicit: true, for: "u")
        }
        _ = try await cache([image("a", [1], file: "x"), image("b", [1], file: "x")])
        let kept = try await cache([image("a", page, file: "x"), image("b", page, file: "x")])
        #expect(kept.images.map(\.id) == ["a", "b"])
        #expect(kept.missingImages == [])
        let renamed = try await cache([image("a", [2], file: "y"), image("c", page, file: "x")])
        #expect(renamed.images.map(\.id) == ["a", "c"])
        #expect(renamed.images.map(\.file) == [FileID(of: [2]), FileID(of: [1])])
        #expect(renamed.missingImages == [])
    }

    @Test(.verifies("IMG-12"))
    func `a page in the place of an image is returned and not stored`() async throws {
        let store = try await openStore()
        for (id, content) in [("page", page), ("empty", [])] {
            #expect(try await store.images.image(.preview, id) { content } == content)
            #expect(await store.images.image(.preview, id) == nil)
            await #expect(throws: EventError.self) {
                try await store.images.store(content, .preview, id)
            }
        }
    }

    @Test(.verifies("LRN-44"))
    func `a page in the place of a lesson's file keeps the stored lesson`() async throws {
        let opened = try await openStore()
        func store(_ content: [UInt8], _ url: String) async throws {
            try await opened.learning.storeLesson(
                "l", course: "k", content: Array("{}".utf8),
                files: [LearningFileContent(url: url, content: content)], isExplicit: true)
        }
        try await store([1], "a.mp3")
        for content in [page, []] {
            await #expect(throws: EventError.self) { try await store(content, "a.mp3") }
        }
        #expect(
            try await opened.learning.readLesson("l", course: "k")?.files[0].file == FileID(of: [1])
        )
        try await store(page, "a.html")
    }
}
