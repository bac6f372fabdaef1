// Manifests of cities, and the recipients of the token.

import DaybookTestKit
import DownloadHistories
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// Credentials that count their renewals.
private actor Tokens: Credentials {
    private(set) var refreshed = 0
    func token() -> AccessToken? { AccessToken("old") }
    func refresh(_ old: AccessToken?) -> AccessToken? {
        refreshed += 1
        return AccessToken("new")
    }
}

/// A token that expires, and an issuer that may be unreachable.
private actor EndingTokens: Credentials {
    private let end: Timestamp
    private var current: AccessToken
    private(set) var refreshed = 0
    var isReachable = true

    init(until end: Int64) {
        self.end = Timestamp(milliseconds: end)
        current = AccessToken("old", expiresAt: self.end)
    }

    func lose() { isReachable = false }
    func token() -> AccessToken? { current }
    func refresh(_ old: AccessToken?) throws -> AccessToken? {
        guard isReachable else { throw URLError(.cannotConnectToHost) }
        guard old == current else { return current }
        refreshed += 1
        current = AccessToken(
            "new", expiresAt: Timestamp(milliseconds: end.milliseconds + 3_600_000))
        return current
    }
}

@Suite struct ManifestTests {
    private static let base = URL(string: "https://server/v1/cities/lisbon")

    private static func read(_ json: String) throws -> CityManifest {
        try CityManifest(
            json: Array(json.utf8), cityId: "lisbon", from: try #require(Self.base))
    }

    @Test(.verifies("DL-10")) func `a manifest is read, with addresses relative to its own`() throws
    {
        let city = SampleCity(sizes: [5, 6])
        var manifest = try Self.read(city.manifest)
        #expect(
            manifest.images.map(\.url.absoluteString) == [
                "https://server/images/0.jpg", "https://server/images/1.jpg",
            ])
        #expect(manifest.images[1].sha256 == FileID(of: city.images[1]))
        #expect(manifest.images.map(\.size) == [5, 6])
        #expect(manifest.images.first?.kind == .hero)
        #expect(manifest.cityData == Array(city.data.utf8))
        manifest = try Self.read(
            #"{"city":\#(city.data),"images":[{"id":"x","url":"x.jpg","type":"attraction","#
                + #""width":1,"height":2,"later":true}],"more":1}"#)
        #expect(manifest.images[0].url.absoluteString == "https://server/v1/cities/x.jpg")
        #expect(manifest.images[0].size == nil)
        #expect(manifest.images[0].sha256 == nil)
    }

    @Test(
        .verifies("DL-10", "DL-12"),
        arguments: [
            #""id":"x","url":"ftp://server/x","type":"hero","width":1,"height":1"#,
            #""id":"good","url":"/x","type":"hero","width":1,"height":1"#,
            #""id":"x","url":"/good","type":"hero","width":1,"height":1,"size":9"#,
            #""id":7,"url":["/x"],"type":"hero","width":1,"height":1"#, #""id":"x""#, "",
            #""id":"last","url":"/x","type":"hero","width":1"#,
            #""id":"x","url":"file:///etc/passwd","type":"hero","width":1,"height":1"#,
            #""id":"x","url":"https://a:b@server/x","type":"hero","width":1,"height":1"#,
            #""id":"x","url":"https://","type":"hero","width":1,"height":1"#,
            #""id":"","url":"/x","type":"hero","width":1,"height":1"#,
            #""id":"x","url":"/x","type":"icon","width":1,"height":1"#,
            #""id":"x","url":"/x","type":"hero","width":-1,"height":1"#,
            #""id":"x","url":"/x","type":"hero","width":1"#,
            #""id":"x","url":"/x","type":"hero","width":1,"height":1,"size":-1"#,
            #""id":"x","url":"/x","type":"hero","width":1,"height":1,"size":1e99"#,
            #""id":"x","url":"/x","type":"hero","width":1,"height":1,"sha256":"1234""#,
            #""id":"x","url":"/x","type":"hero","width":1,"height":1,"sha256":null"#,
        ])
    func `an image that breaks a rule is left out alone, with its place`(image: String) throws {
        let data = SampleCity(sizes: []).data
        let good = #"{"id":"good","url":"/good","type":"hero","width":1,"height":1}"#
        let last = #"{"id":"last","url":"/last","type":"hero","width":1,"height":1}"#
        let manifest = try Self.read(
            #"{"city":\#(data),"images":[\#(good),{\#(image)},7,\#(last)]}"#)
        #expect(manifest.images.map(\.id) == ["good", "last"])
        #expect(
            manifest.images.indices.map(manifest.name) == [0, 3].map { "manifest.images[\($0)]" })
        #expect(manifest.leftOut.map(\.index) == [1, 2])
        for fault in manifest.leftOut {
            let name = "manifest.images[\(fault.index)]"
            #expect(fault.image.reason.hasPrefix(name))
            // What is recorded has neither a user name and password nor another scheme.
            #expect(fault.image.url == name || fault.image.url.hasPrefix("https://server/"))
            #expect(fault.image.id == name || fault.image.id == "x")
        }
        // It is checked again when it is used.
        var again = manifest
        try again.check()
        #expect(again == manifest)
    }

    @Test(.verifies("DL-10", "DL-26", "CITY-12"))
    func
        `a city is stored without an image that its manifest describes wrongly, which comes later`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let city = SampleCity(sizes: [1_000, 2_000, 3_000])
        let isFixed = Mutex(false)
        let bench = try await Bench(clock: { clock.milliseconds }) { request in
            guard request.path == city.path, !isFixed.withLock(\.self) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            return .json(city.manifest.replacing(#""id":"i1""#, with: #""id":1"#))
        }
        #expect(
            try await bench.downloadIncomplete(city) == ["manifest.images[1].id is not a string"])
        let copy = try #require(bench.store.view(CitiesView.self).offline(city.id))
        #expect(copy.images.map(\.id) == ["i0", "i2"])
        #expect(copy.missingImages.map(\.url) == [bench.server.base + SampleCity.path(1)])
        isFixed.withLock { $0 = true }
        clock.advance(by: .hours(25))
        // Any commit wakes the manager.
        try await bench.store.cities.save("x", by: Bench.user)
        try await eventually("version", is: Optional(2)) {
            bench.store.view(CitiesView.self).offline(city.id)?.version
        }
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).count == 1)
        try await bench.close()
    }

    @Test(.verifies("DL-10")) func `the manifest in the article on downloads is read`()
        throws
    {
        let article = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Sources/DaybookOffline/DaybookOffline.docc/Downloading.md")
        let text = try String(contentsOf: article, encoding: .utf8)
        let begin = try #require(text.range(of: "```json\n"))
        let end = try #require(text.range(of: "```", range: begin.upperBound..<text.endIndex))
        let manifest = try Self.read(String(text[begin.upperBound..<end.lowerBound]))
        #expect(manifest.images.map(\.url.absoluteString) == ["https://server/images/lisbon.jpg"])
        #expect(manifest.images[0].size != nil)
        #expect(manifest.images[0].sha256 != nil)
        let city = try CityData(json: manifest.cityData)
        #expect(city.touristAttractions.count == 1)
        #expect(city.categories.count == 1)
    }

    @Test(.verifies("DL-10")) func `an invalid manifest is refused`() throws {
        let data = SampleCity(sizes: []).data
        let other = SampleCity("porto", sizes: []).data
        let many = (0...CityManifest.imagesMax).map {
            #"{"id":"\#($0)","url":"/x","type":"hero","width":1,"height":1}"#
        }.joined(separator: ",")
        for text in [
            "", "<html>", "[]", "{}", #"{"city":\#(data)}"#, #"{"images":[]}"#,
            #"{"city":{},"images":[]}"#, #"{"city":{"id":"lisbon"},"images":[]}"#,
            #"{"city":\#(other),"images":[]}"#, #"{"city":\#(data),"images":{}}"#,
            #"{"city":\#(data),"images":[\#(many)]}"#,
        ] {
            #expect(throws: DownloadError.self, "\(text.prefix(80))") { try Self.read(text) }
        }
    }

    @Test(.verifies("DL-10")) func `the message about an invalid manifest names the member`()
        throws
    {
        let data = SampleCity(sizes: []).data
        func image(_ members: String) -> String {
            #"{"city":\#(data),"images":[{"id":"a","url":"/a","type":"hero","width":1,"height":1},"#
                + "{\(members)}]}"
        }
        for (text, member) in [
            (#"{"city":{"id":"lisbon"},"images":[]}"#, "manifest.city.name is missing"),
            (#"{"city":\#(data)}"#, "manifest.images is missing"),
        ] {
            let error = #expect(throws: DownloadError.self) { try Self.read(text) }
            #expect(error?.detail.contains(member) == true, "\(error as Any)")
        }
        for (text, reason) in [
            (
                image(#""id":"b","url":"/b","type":"icon","width":1,"height":1"#),
                "manifest.images[1].type is none of hero, gallery, attraction"
            ),
            (
                image(#""id":"b","url":"/b","type":"hero","height":1"#),
                "manifest.images[1].width is missing"
            ),
            (
                image(#""id":"b","url":"ftp://b","type":"hero","width":1,"height":1"#),
                "manifest.images[1].url is not one of http or https"
            ),
        ] {
            #expect(try Self.read(text).leftOut.map(\.image.reason) == [reason])
        }
        // An app's own source has no JSON of a manifest.
        let error = #expect(throws: DownloadError.self) {
            var manifest = CityManifest(
                cityId: "lisbon", cityData: Array("{}".utf8), images: [])
            try manifest.check()
        }
        #expect(error?.detail.contains("manifest.cityData.id is missing") == true)
    }

    @Test(.verifies("DL-10")) func `an id is one segment of the path, or is refused`() throws {
        let base = try #require(URL(string: "http://server/api//"))
        #expect(
            try HTTPManifestSource.url(of: "a/b?c#d %é", base).absoluteString
                == "http://server/api/cities/a%2Fb%3Fc%23d%20%25%C3%A9")
        for id in [".", ".."] {
            #expect(throws: DownloadError.self) { try HTTPManifestSource.url(of: id, base) }
        }
        for text in ["ftp://server", "http://server/?x=1", "http://u:p@server"] {
            let base = try #require(URL(string: text))
            #expect(throws: DownloadError.self) { try HTTPManifestSource.url(of: "x", base) }
        }
    }

    @Test(.verifies("DL-10", "DL-21")) func `an endless manifest is abandoned`() async throws {
        let bench = try await Bench { _ in
            var reply = ImageServer.Reply(200, [], [UInt8](repeating: 0x20, count: 65_536))
            (reply.length, reply.isEndless) = (nil, true)
            return reply
        }
        let job = try await bench.download(SampleCity(sizes: []), to: .failed)
        #expect(
            job.errorMessage == "the city lisbon: the response has more than 1048576 bytes")
        try await bench.close()
    }

    @Test(.verifies("DL-11")) func `the token is renewed once, and sent to its own server only`()
        async throws
    {
        let city = SampleCity(sizes: [1_000, 2_000])
        let other = try ImageServer { request in
            .content(city.images[1], etag: nil, to: request)
        }
        let address = other.base
        let tokens = Tokens()
        let bench = try await Bench(credentials: tokens) { request in
            guard request.headers["authorization"] == "Bearer new" else {
                return ImageServer.Reply(401)
            }
            if request.path == city.path {
                return .json(
                    city.manifest.replacing("/images/1.jpg", with: address + "/images/1.jpg"))
            }
            return city.reply(to: request) ?? ImageServer.Reply(404)
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(await tokens.refreshed == 2)
        #expect(bench.server.requests(city.path).count == 2)
        #expect(other.requests.map { $0.headers["authorization"] } == [nil])
        try await bench.close()
        other.stop()
    }

    @Test(.verifies("DL-11"), arguments: [true, false])
    func `a token about to expire is renewed before it is sent, or used until it expires`(
        isReachable: Bool
    ) async throws {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let tokens = EndingTokens(until: clock.milliseconds + 600_000)
        let city = SampleCity(sizes: [1_000, 2_000, 3_000])
        let bench = try await Bench(credentials: tokens, clock: { clock.milliseconds }) { request in
            city.reply(to: request) ?? ImageServer.Reply(404)
        }
        try await bench.download(city)
        #expect(await tokens.refreshed == 0)
        let before = bench.server.requests.count
        clock.advance(by: .milliseconds(550_000))
        if !isReachable { await tokens.lose() }
        try await bench.download(city)
        #expect(await tokens.refreshed == (isReachable ? 1 : 0))
        let sent = Set(bench.server.requests.dropFirst(before).map { $0.headers["authorization"] })
        #expect(sent == [isReachable ? "Bearer new" : "Bearer old"])
        try await bench.close()
    }

    @Test(.verifies("DL-11"), arguments: [0, 365 * 86_400_000] as [Int64])
    func `a token that has ended is renewed before it is sent, and once if the clock is ahead`(
        ahead: Int64
    ) async throws {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let tokens = EndingTokens(until: clock.milliseconds - ahead)
        let city = SampleCity(sizes: [1_000, 2_000])
        let bench = try await Bench(credentials: tokens, clock: { clock.milliseconds }) { request in
            city.reply(to: request) ?? ImageServer.Reply(404)
        }
        for _ in 0..<2 { try await bench.download(city) }
        #expect(await tokens.refreshed == 1)
        let sent = Set(bench.server.requests.map { $0.headers["authorization"] })
        #expect(sent == ["Bearer new"])
        try await bench.close()
    }

    @Test(.verifies("DL-11")) func `a token that is rejected again fails the job`() async throws {
        let tokens = Tokens()
        let bench = try await Bench(credentials: tokens) { _ in ImageServer.Reply(401) }
        let job = try await bench.download(SampleCity(sizes: []), to: .failed)
        #expect(job.errorMessage?.contains("sign in again") ?? false)
        #expect(await tokens.refreshed == 1)
        #expect(bench.server.requests.count == 2)
        try await bench.close()
    }

    @Test(.verifies("DL-12", "SEC-17"))
    func `a redirect is followed without token and headers, and a limited number of times`()
        async throws
    {
        let city = SampleCity(sizes: [1_000])
        let other = try ImageServer { request in
            request.path == "/loop"
                ? ImageServer.Reply(302, [("Location", "/loop")])
                : .content(city.images[0], etag: nil, to: request)
        }
        let address = other.base
        for place in ["/there", "/loop"] {
            let bench = try await Bench(
                credentials: BearerToken("secret"),
                options: { options in
                    options.http.headers = ["X-Proxy": "pass"]
                    options.http.trustedOrigins = [URL(string: address)].compactMap(\.self)
                }
            ) { request in
                request.path == SampleCity.path(0)
                    ? ImageServer.Reply(302, [("Location", address + place)])
                    : city.reply(to: request) ?? ImageServer.Reply(404)
            }
            #expect(try await bench.downloadIncomplete(city).count == (place == "/loop" ? 1 : 0))
            #expect(bench.server.requests.allSatisfy { $0.headers["authorization"] != nil })
            try await bench.close()
        }
        #expect(other.requests("/there").count == 1)
        #expect(other.requests("/loop").count == 5)
        #expect(other.requests.allSatisfy { $0.headers["authorization"] == nil })
        #expect(other.requests.allSatisfy { $0.headers["x-proxy"] == nil })
        other.stop()
    }

    @Test(.verifies("DL-11", "SEC-17"))
    func `headers are sent to the app's servers, the token to one of them, and neither to others`()
        async throws
    {
        let city = SampleCity(sizes: [1_000, 2_000, 3_000])
        let images = { @Sendable (request: ImageServer.Request) in
            city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let (trusted, other) = (try ImageServer(images), try ImageServer(images))
        let addresses = (trusted.base, other.base)
        let bench = try await Bench(
            credentials: BearerToken("secret"),
            options: { options in
                options.http.headers = ["X-Proxy": "pass", "Range": "bytes=0-1"]
                options.http.trustedOrigins = [URL(string: addresses.0)].compactMap(\.self)
            }
        ) { request in
            guard request.path == city.path else { return images(request) }
            return .json(
                city.manifest.replacing("/images/1.jpg", with: addresses.0 + "/images/1.jpg")
                    .replacing("/images/2.jpg", with: addresses.1 + "/images/2.jpg"))
        }
        try await bench.download(city)
        try await bench.check(city)
        func sent(_ server: ImageServer) -> Set<[String?]> {
            Set(server.requests.map { [$0.headers["authorization"], $0.headers["x-proxy"]] })
        }
        #expect(sent(bench.server) == [["Bearer secret", "pass"]])
        #expect(sent(trusted) == [[nil, "pass"]])
        #expect(sent(other) == [[nil, nil]])
        try await bench.close()
        trusted.stop()
        other.stop()
    }

    @Test(.verifies("DL-10")) func `an app may provide manifests of its own`() async throws {
        struct Source: CityManifestSource {
            let calls = Calls()
            let image: URL
            func manifest(of cityId: String) async throws -> CityManifest {
                // The first connection fails.
                guard calls.next() > 1 else { throw URLError(.timedOut) }
                return CityManifest(
                    cityId: cityId, cityData: Array(SampleCity(sizes: []).data.utf8),
                    images: [
                        .init(id: "i", url: image, kind: .attraction, width: 1, height: 1)
                    ])
            }
        }
        final class Calls: Sendable {
            private let count = Mutex(0)
            func next() -> Int {
                count.withLock {
                    $0 += 1
                    return $0
                }
            }
        }
        let server = try ImageServer { _ in ImageServer.Reply(200, [], [1, 2, 3]) }
        let store = try await OfflineStore.inMemory()
        var options = DownloadManager.Options()
        options.sleep = { _ in }
        let manager = DownloadManager(
            store, source: Source(image: try #require(URL(string: server.base + "/x"))),
            user: "u", options: options)
        let work = Task { try await manager.run() }
        let job = try await store.downloads.queue("lisbon")
        try await eventually("status", is: .completed) {
            store.view(DownloadsView.self)[job.id]?.status
        }
        let cached = try #require(store.view(CitiesView.self).offline("lisbon"))
        #expect(try await store.files.read(cached.images[0].file) == [1, 2, 3])
        work.cancel()
        try await work.value
        try await store.close()
        server.stop()
    }
}
