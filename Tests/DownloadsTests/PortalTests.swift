// Networks that answer in the place of the server, and servers that lack images. Spec/model/downloads.md,
// DL-25, DL-26.

import DaybookTestKit
import DownloadHistories
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

private let loginPage = Array("<!DOCTYPE html><title>Login</title>".utf8)

@Suite struct PortalTests {
    static let portals: [ImageServer.Reply] = [
        .init(200, [("Content-Type", "text/html; charset=utf-8")], loginPage),
        .init(200, [], loginPage), .init(302, [("Location", "http://login.example/")]),
        .init(200), .init(511, [("Content-Type", "text/html")], loginPage),
        .init(
            200, [("Content-Type", "application/captive+json")], Array(#"{"captive":true}"#.utf8)),
    ]

    @Test(.verifies("DL-25", "DL-19"), arguments: portals.indices, [true, false])
    func `the login page of a network is waited for, and nothing of it is stored`(
        index: Int, comesBetween: Bool
    ) async throws {
        var sample = SampleCity(sizes: [20_000, 30_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        let isPortal = Mutex(!comesBetween)
        let bench = try await Bench { request in
            // The portal may begin after the manifest.
            if comesBetween, request.path == SampleCity.path(0), request.earlier == 0 {
                isPortal.withLock { $0 = true }
            }
            return isPortal.withLock { $0 }
                ? Self.portals[index] : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let job = try await bench.store.downloads.queue(city.id, isExplicit: false)
        try await bench.expect(job.id, .paused)
        #expect(bench.store.view(DownloadsView.self)[job.id]?.pauseReason == .connection)
        #expect(bench.store.view(CitiesView.self).offline(city.id) == nil)
        isPortal.withLock { $0 = false }
        bench.network.set(.none)
        bench.network.set(.wifi)
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        try await bench.close()
    }

    @Test(
        .verifies("DL-25"),
        arguments: ["text/plain", "", "application/octet-stream", "application/json"])
    func
        `a manifest that is no JSON is waited for, unless it is called JSON, and reported after a day`(
            type: String
        ) async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let city = SampleCity(sizes: [1_000])
        let answers = Mutex(true)
        let bench = try await Bench(clock: { clock.milliseconds }) { request in
            guard answers.withLock({ $0 }) else { return city.reply(to: request) ?? .init(404) }
            return .init(200, type.isEmpty ? [] : [("Content-Type", type)], Array("Log in".utf8))
        }
        let job = try await bench.store.downloads.queue(city.id)
        guard type != "application/json" else {
            try await bench.expect(job.id, .failed)
            return try await bench.close()
        }
        try await bench.expect(job.id, .paused)
        /// Lets time pass, and waits for the job's next answers.
        func status(after time: Duration) async throws -> DownloadStatus? {
            let answered = bench.server.requests(city.path).count
            clock.advance(by: time)
            bench.network.set(.none)
            bench.network.set(.wifi)
            try await eventually("answers", where: { $0 > answered }) {
                bench.server.requests(city.path).count
            }
            func current() -> DownloadStatus? {
                bench.store.view(DownloadsView.self)[job.id]?.status
            }
            try await eventually(
                "status", where: { $0 == .paused || $0 == .failed }, current)
            return current()
        }
        // After a day without answers it may be another portal.
        #expect(try await status(after: .hours(25)) == .paused)
        for _ in 0..<28 { #expect(try await status(after: .minutes(50)) == .paused) }
        #expect(try await status(after: .minutes(50)) == .failed)
        // A retry fails at once, until the server answers.
        try await bench.store.downloads.retry(job.id)
        try await bench.expect(job.id, .failed)
        answers.withLock { $0 = false }
        try await bench.store.downloads.retry(job.id)
        try await bench.expect(job.id, .completed)
        try await bench.close()
    }

    /// The status of the images' server at the second download, and the checksum that the manifest states then.
    @Test(
        .verifies("DL-27"),
        arguments: [(503, true, 3), (503, false, 3), (403, true, 3), (404, true, 1)])
    func `a download again keeps the images that cannot be fetched, unless the server lacks them`(
        status: Int, isSame: Bool, count: Int
    ) async throws {
        var sample = SampleCity(sizes: [20_000, 30_000, 10_000])
        (sample.includesSizes, sample.includesChecksums) = (false, !isSame)
        let first = sample
        let isDown = Mutex(false)
        let other = FileID(of: [7]).description
        let bench = try await Bench { request in
            let reply = first.reply(to: request) ?? ImageServer.Reply(404)
            guard isDown.withLock({ $0 }) else { return reply }
            if request.path == SampleCity.path(1) || request.path == SampleCity.path(2) {
                return ImageServer.Reply(status)
            }
            guard !isSame, first.image(request.path) == nil else { return reply }
            let known = FileID(of: first.images[1]).description
            let text = String(decoding: reply.body, as: UTF8.self)
            return ImageServer.Reply(
                200, [("Content-Type", "application/json")],
                Array(text.replacing(known, with: other).utf8))
        }
        try await bench.download(first)
        try await bench.check(first)
        isDown.withLock { $0 = true }
        try await bench.download(first)
        try await eventually("version", is: Optional(2)) {
            bench.store.view(CitiesView.self).offline(first.id)?.version
        }
        let copy = try #require(bench.store.view(CitiesView.self).offline(first.id))
        #expect(copy.images.count == count)
        // An older version is shown, and fetched again.
        #expect(
            copy.missingImages.map(\.id) == (status == 404 ? ["i1", "i2"] : isSame ? [] : ["i1"]))
        try await bench.close()
    }

    @Test(
        .verifies("DL-25", "DL-26"),
        arguments: [
            ImageServer.Reply(200, [("Content-Type", "text/html")], loginPage),
            ImageServer.Reply(200, [("Content-Type", "image/jpeg")], loginPage),
            ImageServer.Reply(200), ImageServer.Reply(404),
        ])
    func `an image for which the server has a page, nothing, or no answer is missing alone`(
        reply: ImageServer.Reply
    ) async throws {
        var sample = SampleCity(sizes: [20_000, 30_000, 10_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        let bench = try await Bench { request in
            request.path == SampleCity.path(1)
                ? reply : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        #expect(try await bench.downloadIncomplete(city).count == 1)
        let copy = try #require(bench.store.view(CitiesView.self).offline(city.id))
        #expect(copy.images.map(\.id) == ["i0", "i2"])
        #expect(copy.missingImages.map(\.id) == ["i1"])
        #expect(copy.missingImages[0].reason.hasPrefix("manifest.images[1]"))
        try await bench.close()
    }

    @Test(.verifies("DL-26", "CITY-12"))
    func `what a copy lacks is fetched again after a day, alone, and the copy ages on`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        var sample = SampleCity(sizes: [20_000, 30_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        let files = InMemoryFileSystem()
        let bench = try await Bench(files, clock: { clock.milliseconds }) { request in
            request.path == SampleCity.path(1) && request.earlier == 0
                ? ImageServer.Reply(404) : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        #expect(try await bench.downloadIncomplete(city).count == 1)
        let first = try #require(bench.store.view(CitiesView.self).offline(city.id))
        clock.advance(by: .hours(23))
        #expect(try await bench.store.downloads.queueWanted(for: Bench.user) == [])
        clock.advance(by: .hours(1))
        // Any commit wakes the manager.
        try await bench.store.cities.save("x", by: Bench.user)
        try await eventually("version", is: Optional(2)) {
            bench.store.view(CitiesView.self).offline(city.id)?.version
        }
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).count == 1)
        let second = try #require(bench.store.view(CitiesView.self).offline(city.id))
        #expect(second.missingImages == [])
        #expect(second.isExplicitDownload)
        #expect(second.lastAccessedAt == first.lastAccessedAt)
        #expect(try await bench.store.downloads.queueWanted(for: Bench.user) == [])
        // The stored state has what the copy lacks, and the last access.
        let state = try #require(
            try bench.store.view(CitiesView.self).encodedState())
        let decoded = try CitiesView(encodedState: state)
        #expect(decoded.offline(city.id) == second)
        try await bench.close()
    }

    @Test(.verifies("DL-26", "CITY-12"))
    func `what a copy lacks is fetched again if the clock was ahead at its download, once a day`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        var sample = SampleCity(sizes: [20_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        let bench = try await Bench(clock: { clock.milliseconds }) { request in
            request.path == SampleCity.path(0)
                ? ImageServer.Reply(404) : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        #expect(try await bench.downloadIncomplete(city).count == 1)
        clock.advance(by: .days(-1_000))
        /// What the store does every hour; and any commit wakes the manager.
        func cleanUp() async throws -> Int? {
            _ = try await bench.store.downloads.cleanUp()
            try await bench.store.cities.save("x", by: Bench.user)
            return bench.store.view(CitiesView.self).offline(city.id)?.version
        }
        try await eventually("version", is: Optional(2), cleanUp)
        try await eventually("completed jobs", is: 1) {
            bench.store.view(DownloadsView.self).jobs(of: city.id)
                .count { $0.status == .completed }
        }
        clock.advance(by: .hours(23))
        for _ in 0..<20 { #expect(try await cleanUp() == 2) }
        #expect(try await bench.store.downloads.queueWanted(for: Bench.user) == [])
        clock.advance(by: .hours(1))
        try await eventually("version after a day", is: Optional(3), cleanUp)
        try await bench.close()
    }

    @Test(.verifies("DL-26"))
    func `a download that the user asks for fetches the images of an incomplete copy again`()
        async throws
    {
        var sample = SampleCity(sizes: [20_000, 30_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        let bench = try await Bench { request in
            request.path == SampleCity.path(1) && request.earlier == 0
                ? ImageServer.Reply(404) : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        #expect(try await bench.downloadIncomplete(city).count == 1)
        try await bench.download(city)
        try await eventually("version", is: Optional(2)) {
            bench.store.view(CitiesView.self).offline(city.id)?.version
        }
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).count == 2)
        try await bench.close()
    }

    @Test(.verifies("DL-16"))
    func `a body without an announced end is complete once it has arrived twice`() async throws {
        var sample = SampleCity(sizes: [40_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            // As HTTP/1.0 does; the first connection breaks.
            var reply = ImageServer.Reply(
                200, [], request.earlier == 0 ? Array(image[..<30_000]) : image)
            reply.length = nil
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).count == 3)
        try await bench.close()
    }
}
