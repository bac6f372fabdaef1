// The wire protocol of learning material against a local server. Spec/model/learning.md, LRN-40.

import DaybookTestKit
import DownloadHistories
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

@Suite(.verifies("LRN-40")) struct HTTPLearningTests {
    private static let spanish = LanguageCombination(learn: "es", display: "de")

    private static func open(
        _ server: ImageServer, options change: (inout DownloadManager.Options) -> Void = { _ in }
    ) async throws -> (OfflineStore, LearningDownloads) {
        let store = try await OfflineStore.inMemory()
        try await store.learning.selectCombination(spanish, for: "ada/1 é")
        var options = DownloadManager.Options()
        change(&options)
        let downloads = LearningDownloads(
            store, base: try #require(URL(string: server.base)),
            credentials: BearerToken("secret"), user: "ada/1 é",
            reachability: AlwaysReachable(), policy: .iOS, options: options)
        return (store, downloads)
    }

    @Test
    func `sessions and lessons are fetched by their addresses, files with the token to one origin`()
        async throws
    {
        let elsewhere = try ImageServer { request in
            request.headers["authorization"] == nil
                ? .init(200, [], Array("elsewhere".utf8)) : .init(400)
        }
        let server = try ImageServer { request in
            guard request.headers["authorization"] == "Bearer secret" else { return .init(401) }
            switch request.path {
            case "/users/ada%2F1%20%C3%A9/reviews?learnLanguage=es&displayLanguage=de&first=5":
                return .json(
                    #"{"reviews":[{"id":"r","courseId":"c","content":{"a":1.50},"#
                        + #""files":["/media/1.mp3","\#(elsewhere.base)/2.mp3"]},"#
                        + #"{"id":"s","content":{}}],"next":null}"#)
            case "/courses/c/lessons/l%231?learnLanguage=es&displayLanguage=de":
                return .json(#"{"content":{"b":2},"files":[]}"#)
            case "/media/1.mp3": return .init(200, [], [1, 2, 3])
            default: return .init(404)
            }
        }
        let (store, downloads) = try await Self.open(server)
        let reviews = try await downloads.downloadReviews()
        #expect(reviews.map(\.reviewId) == ["r", "s"])
        #expect(reviews.map(\.courseId) == ["c", nil])
        let material = try await downloads.startReview("r")
        #expect(material.content == Array(#"{"a":1.50}"#.utf8))
        #expect(try await store.files.read(material.files[0].file) == [1, 2, 3])
        #expect(
            try await store.files.read(material.files[1].file) == Array("elsewhere".utf8))
        let lesson = try await downloads.downloadLesson("l#1", course: "c")
        #expect(lesson.material.files.isEmpty)
        try await store.close()
    }

    static let answers: [(ImageServer.Reply, DownloadError.Code)] = [
        (.init(404), .refused), (.init(301, [("Location", "/x")]), .refused),
        (.init(401), .unauthorized), (.init(503, [("Retry-After", "7")]), .unavailable),
        (.json("[]"), .badManifest), (.json("{}"), .badManifest),
        (.json(#"{"content":{},"files":[""]}"#), .badManifest),
        (.json(#"{"content":{},"files":["ftp://x.example/1"]}"#), .badManifest),
        (.json(#"{"content":{},"files":["/a","/a"]}"#), .badManifest),
        (
            .init(
                200, [("Content-Digest", "sha-256=:\(Data(count: 32).base64EncodedString()):")],
                Array(#"{"content":{}}"#.utf8)), .wrongContent
        ),
        (.init(200, [], [UInt8](repeating: 32, count: 1_048_577)), .tooLarge),
        // A portal, and a body that is not complete.
        (.init(302, [("Location", "http://login.example/")]), .unavailable),
        (.init(200, [("Content-Type", "text/html")], Array("<p>".utf8)), .unavailable),
        (.init(200, [], Array("<!doctype html>".utf8)), .unavailable), (.init(200), .unavailable),
        (cut(#"{"content":{"#), .unavailable),
    ]

    /// A body whose end only the end of the connection shows.
    private static func cut(_ text: String) -> ImageServer.Reply {
        var reply = ImageServer.Reply(200, [], Array(text.utf8))
        reply.length = nil
        return reply
    }

    @Test(.verifies("LRN-38"), arguments: answers.indices)
    func `an invalid response is a typed error, and stores nothing`(index: Int) async throws {
        let (reply, code) = Self.answers[index]
        let server = try ImageServer { _ in reply }
        let (store, downloads) = try await Self.open(server)
        let error = await #expect(throws: DownloadError.self) {
            try await downloads.downloadLesson("l", course: "c")
        }
        #expect(error?.code == code)
        #expect(error?.detail.contains("secret") == false)
        #expect(store.learning.storedLessons.current.isEmpty)
        if reply.status == 503 { #expect(error?.retryAfterSeconds == 7) }
        try await store.close()
    }

    @Test(
        .verifies("DL-25"),
        arguments: [
            ("/1.mp3", ImageServer.Reply(200, [("Content-Type", "text/html")], [1]), false),
            ("/1.mp3", .init(200, [], Array(" <html>".utf8)), false), ("/1.mp3", .init(200), false),
            ("/1.mp3", cut("the first half"), false),
            ("/1.mp3", .init(200, [("Content-Type", "x/unknown")], [1]), true),
            ("/1.html", .init(200, [("Content-Type", "text/html")], [1]), true),
        ])
    func `a page, nothing, or a part in the place of a file is not stored, unknown kinds are`(
        path: String, reply: ImageServer.Reply, isStored: Bool
    ) async throws {
        let server = try ImageServer { request in
            guard request.path == path else {
                return .json(#"{"content":{},"files":["\#(path)"]}"#)
            }
            guard request.earlier > 0, reply.length == nil else { return reply }
            return Self.cut("the first half and the second")
        }
        let (store, downloads) = try await Self.open(server)
        if isStored {
            try await downloads.downloadLesson("l", course: "c")
        } else {
            let error = await #expect(throws: DownloadError.self) {
                try await downloads.downloadLesson("l", course: "c")
            }
            #expect(error?.code == .unavailable)
        }
        #expect(store.learning.storedLessons.current.count == (isStored ? 1 : 0))
        try await store.close()
    }

    @Test(.verifies("LRN-30"))
    func `a session that cannot be read keeps no other off the device, and removes none`()
        async throws
    {
        let server = try ImageServer { request in
            let good = #"{"id":"r","content":{"a":1}},{"id":"s","content":{}}"#
            let bad = #"7,{"id":"t"},{"content":{}},{"id":"u","content":{},"files":[1]}"#
            return .json(
                #"{"reviews":[\#(request.earlier == 0 ? good : bad),{"id":"v","content":{}}]}"#)
        }
        let (store, downloads) = try await Self.open(server)
        #expect(try await downloads.downloadReviews().map(\.reviewId) == ["r", "s", "v"])
        let error = await #expect(throws: DownloadError.self) {
            try await downloads.downloadReviews()
        }
        #expect(error?.code == .badManifest)
        // A prefetch, which removes the sessions that the answer does not have.
        try await downloads.run(untilIdle: true)
        let reviews = store.learning.reviews(of: "ada/1 é").current
        #expect(Set(reviews.map(\.reviewId)) == ["r", "s", "v"])
        try await store.close()
    }

    @Test func `an id that cannot be part of a URL is refused`() async throws {
        let server = try ImageServer { _ in .init(500) }
        let (store, downloads) = try await Self.open(server)
        await #expect(throws: DownloadError.self) {
            try await downloads.downloadLesson("..", course: "c")
        }
        try await store.close()
    }
}
