// Fetches of images from a faulty server, over a real connection.

import DaybookTestKit
import DownloadHistories
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

private let tag = "\"v1\""

@Suite struct FetchingTests {
    @Test(.verifies("DL-5", "DL-10", "DL-13"))
    func `a completed job has stored the city and its images, each fetched once`()
        async throws
    {
        let city = SampleCity("são paulo/1?", sizes: [100_000, 0, 1, 70_000, 30_000, 5_000, 9])
        let path = "/cities/s%C3%A3o%20paulo%2F1%3F"
        let bench = try await Bench { request in
            var reply =
                request.path == path
                ? .json(city.manifest) : city.reply(to: request) ?? ImageServer.Reply(404)
            if city.image(request.path) != nil { reply.bytesPerSecond = 2_000_000 }
            return reply
        }
        let job = try await bench.download(city)
        try await bench.check(city)
        #expect(job.totalBytes == 205_010)
        #expect(job.downloadedBytes == 205_010)
        #expect(job.progress == 100)
        #expect(job.completedAt != nil)
        let cached = try #require(bench.store.view(CitiesView.self).offline(city.id))
        #expect(cached.isExplicitDownload)
        #expect(cached.images.first?.kind == .hero)
        #expect(cached.images[1].url == bench.server.base + "/images/1.jpg")
        #expect(bench.server.requests.count == 1 + city.images.count)
        #expect(bench.server.maxConcurrentReplies <= 4)
        // State and city are in one commit: no position is between them.
        let last = await bench.store.events.lastDurable
        #expect(try await bench.store.events.event(at: last)?.type == CityCached.type)
        try await bench.close()
    }

    @Test(.verifies("DL-13", "DL-16"))
    func `a broken download resumes at its last byte, and no byte is sent twice`() async throws {
        let city = SampleCity(sizes: [200_000, 150_000])
        let bench = try await Bench { request in
            guard var reply = city.reply(to: request) else { return ImageServer.Reply(404) }
            if city.image(request.path) != nil, reply.body.count > 40_000 {
                reply.cutAfter = 40_000
            }
            return reply
        }
        // Every part is progress, so the job is never paused.
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).count >= 5)
        let requests = bench.server.requests(SampleCity.path(0)).dropFirst()
        #expect(requests.allSatisfy { $0.rangeStart ?? 0 > 0 && $0.headers["if-range"] != nil })
        // Bytes lost with a broken connection were sent; no other byte was sent twice.
        let starts = requests.compactMap(\.rangeStart)
        #expect(starts == starts.sorted())
        try await bench.close()
    }

    @Test(.verifies("DL-16")) func `a server without range support is accepted`() async throws {
        let city = SampleCity(sizes: [200_000])
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            var reply = ImageServer.Reply(200, [("ETag", tag)], image)
            if request.earlier < 3 { reply.cutAfter = 50_000 * (request.earlier + 1) }
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0))[1].rangeStart != nil)
        try await bench.close()
    }

    @Test(.verifies("DL-14", "DL-16"), arguments: [true, false])
    func `an image that changes while it is fetched is fetched from the start`(isHonest: Bool)
        async throws
    {
        var sample = SampleCity(sizes: [200_000])
        sample.includesChecksums = false
        let new = sample
        let old = SampleCity(sizes: [200_000], seed: 2)
        let bench = try await Bench { request in
            guard let image = new.image(request.path) else {
                return new.reply(to: request) ?? ImageServer.Reply(404)
            }
            if request.earlier == 0 {
                var reply = ImageServer.Reply.content(old.images[0], etag: tag, to: request)
                reply.cutAfter = 90_000
                return reply
            }
            var request = request
            // A server that ignores If-Range sends the remaining bytes of another image.
            if !isHonest { request.headers["if-range"] = nil }
            return .content(image, etag: "\"v2\"", to: request)
        }
        try await bench.download(new)
        try await bench.check(new)
        try await bench.close()
    }

    @Test(.verifies("DL-14"))
    func `without a validator and a checksum no download is resumed`() async throws {
        var sample = SampleCity(sizes: [100_000])
        sample.includesChecksums = false
        let city = sample
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            // A weak tag, and a date too recent for a strong validator.
            var reply = ImageServer.Reply(
                200,
                [
                    ("ETag", "W/\"1\""), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ], image)
            if request.earlier == 0 { reply.cutAfter = 50_000 }
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).allSatisfy { $0.rangeStart == nil })
        try await bench.close()
    }

    @Test(.verifies("DL-14")) func `a Last-Modified date is a validator once it is old enough`()
        async throws
    {
        var sample = SampleCity(sizes: [100_000])
        sample.includesChecksums = false
        let city = sample
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            var request = request
            let validator = request.headers["if-range"]
            request.headers["if-range"] = nil
            var reply =
                validator == nil || validator == date
                ? ImageServer.Reply.content(image, etag: nil, to: request)
                : ImageServer.Reply(200, [], image)
            reply.headers += [
                ("Last-Modified", date), ("Date", "Sun, 06 Nov 1994 08:49:38 GMT"),
            ]
            if request.earlier == 0 { reply.cutAfter = 50_000 }
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0))[1].headers["if-range"] == date)
        try await bench.close()
    }

    @Test(.verifies("DL-17"), arguments: ["manifest", "Repr-Digest", "Content-Digest"])
    func `an image with a wrong checksum is fetched again twice, then it is missing`(source: String)
        async throws
    {
        var sample = SampleCity(sizes: [50_000])
        sample.includesChecksums = source == "manifest"
        let city = sample
        let digest = Data(FileID(of: city.images[0]).bytes).base64EncodedString()
        let bench = try await Bench { request in
            guard var image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            image[7] ^= 1
            var reply = ImageServer.Reply.content(image, etag: tag, to: request)
            if source != "manifest" {
                reply.headers.append((source, "md5=:AAAA:, sha-256=:\(digest):"))
            }
            return reply
        }
        #expect(
            try await bench.downloadIncomplete(city)
                == ["the checksum of manifest.images[0] is wrong, also in attempt 3"])
        #expect(bench.server.requests(SampleCity.path(0)).count == 3)
        #expect(
            bench.server.requests(SampleCity.path(0)).map { $0.headers["cache-control"] }
                == [nil, "no-cache", "no-cache"])
        #expect(bench.store.view(CitiesView.self).offline(city.id)?.images == [])
        try await bench.close()
    }

    @Test(.verifies("DL-17")) func `a correct checksum in the second attempt is enough`()
        async throws
    {
        let city = SampleCity(sizes: [50_000])
        let bench = try await Bench { request in
            guard var image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            if request.earlier == 0 { image[49_999] ^= 0x80 }
            return .content(image, etag: tag, to: request)
        }
        try await bench.download(city)
        try await bench.check(city)
        try await bench.close()
    }

    @Test(.verifies("DL-16", "DL-21"))
    func `a body longer than announced is refused, and not read to its end`()
        async throws
    {
        let city = SampleCity(sizes: [50_000])
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            var reply = ImageServer.Reply(200, [("ETag", tag)], image)
            (reply.length, reply.isEndless) = (nil, true)
            return reply
        }
        let missing = try await bench.downloadIncomplete(city)
        #expect(missing.first?.contains("more bytes than announced") ?? false)
        #expect(bench.server.requests(SampleCity.path(0)).count == 3)
        try await bench.close()
    }

    @Test(.verifies("DL-21"))
    func
        `an endless image of unknown size ends at the limit of an image, all of them at the city's`()
        async throws
    {
        var sample = SampleCity(sizes: [1_000, 1_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        for limit in [\DownloadManager.Options.imageBytesMax, \.cityBytesMax] {
            let bench = try await Bench(options: { $0[keyPath: limit] = 300_000 }) { request in
                guard let image = city.image(request.path) else {
                    return city.reply(to: request) ?? ImageServer.Reply(404)
                }
                var reply = ImageServer.Reply(200, [], image)
                (reply.length, reply.isEndless) = (nil, true)
                return reply
            }
            let isOfImage = limit == \.imageBytesMax
            let job = try await bench.download(city, to: isOfImage ? .completed : .failed)
            #expect((job.errorMessage?.contains("more bytes than") ?? false) == !isOfImage)
            #expect(job.downloadedBytes <= 600_000)
            #expect(bench.store.view(CitiesView.self).offline(city.id)?.images ?? [] == [])
            try await bench.close()
        }
    }

    @Test(.verifies("DL-21")) func `announced sizes are checked before a byte is fetched`()
        async throws
    {
        let city = SampleCity(sizes: [200_000, 200_000])
        for (limit, words) in [
            (
                \DownloadManager.Options.cityBytesMax,
                "the city's images have more than 199999 bytes"
            ),
            (\.imageBytesMax, "manifest.images[0] has 200000 bytes"),
        ] {
            let bench = try await Bench(options: { $0[keyPath: limit] = 199_999 }) {
                city.reply(to: $0) ?? ImageServer.Reply(404)
            }
            let problem =
                limit == \.cityBytesMax
                ? try await bench.download(city, to: .failed).errorMessage
                : try await bench.downloadIncomplete(city).first
            #expect(problem?.hasPrefix(words) ?? false)
            #expect(bench.server.requests.map(\.path) == [city.path])
            try await bench.close()
        }
    }

    @Test(.verifies("DL-16"))
    func `a body shorter than its Content-Length is requested again`() async throws {
        let city = SampleCity(sizes: [100_000])
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            guard request.earlier == 0 else { return .content(image, etag: tag, to: request) }
            // Ends normally, with fewer bytes than announced.
            var reply = ImageServer.Reply(200, [("ETag", tag)], Array(image[..<60_000]))
            reply.length = 100_000
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).map(\.rangeStart) == [nil, 60_000])
        try await bench.close()
    }

    @Test(.verifies("DL-16"), arguments: [true, false])
    func `an image shorter than announced is missing`(tellsLength: Bool) async throws {
        let city = SampleCity(sizes: [100_000])
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            var reply = ImageServer.Reply.content(
                Array(image[..<60_000]), etag: tag, to: request)
            if !tellsLength, reply.status == 200 { reply.length = nil }
            return reply
        }
        let missing = try await bench.downloadIncomplete(city)
        #expect(missing.first?.contains("shorter") ?? false)
        try await bench.close()
    }

    @Test(.verifies("DL-16"), arguments: ["bytes 0-49999/100000", "bytes 50001-99999/100000", "x"])
    func `a range that was not requested is never appended`(
        range: String
    ) async throws {
        let city = SampleCity(sizes: [100_000])
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            if request.earlier == 0 {
                var reply = ImageServer.Reply.content(image, etag: tag, to: request)
                reply.cutAfter = 50_000
                return reply
            }
            guard request.rangeStart != nil else {
                return .content(image, etag: tag, to: request)
            }
            return ImageServer.Reply(
                206, [("ETag", tag), ("Content-Range", range)], Array(image[50_000...]))
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).count == 3)
        try await bench.close()
    }

    @Test(.verifies("DL-18")) func `a stalled request is abandoned after the timeout, and retried`()
        async throws
    {
        let city = SampleCity(sizes: [100_000])
        let bench = try await Bench(options: { $0.timeoutSeconds = 1 }) { request in
            guard var reply = city.reply(to: request) else { return ImageServer.Reply(404) }
            if city.image(request.path) != nil, request.earlier == 0 { reply.stallAfter = 30_000 }
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0))[1].rangeStart == 30_000)
        try await bench.close()
    }

    @Test(.verifies("DL-18"), arguments: [(bytesPerSecond: 1_000, requests: 2), (20_000, 1)])
    func `a server that trickles is abandoned, and asked for the rest; a slow one is not`(
        _ rate: (bytesPerSecond: Int, requests: Int)
    ) async throws {
        let city = SampleCity(sizes: [60_000])
        let bench = try await Bench(options: { $0.timeoutSeconds = 1 }) { request in
            guard var reply = city.reply(to: request) else { return ImageServer.Reply(404) }
            if city.image(request.path) != nil, request.earlier == 0 {
                reply.bytesPerSecond = rate.bytesPerSecond
            }
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        let requests = bench.server.requests(SampleCity.path(0))
        #expect(requests.count == rate.requests)
        #expect(requests[1...].allSatisfy { (1..<16_384).contains($0.rangeStart ?? 0) })
        try await bench.close()
    }

    @Test(.verifies("DL-18")) func `server errors are retried, and Retry-After is respected`()
        async throws
    {
        let city = SampleCity(sizes: [1_000])
        let bench = try await Bench { request in
            if request.path == city.path, request.earlier < 2 { return ImageServer.Reply(500) }
            if city.image(request.path) != nil, request.earlier == 0 {
                return ImageServer.Reply(429, [("Retry-After", "77")])
            }
            if city.image(request.path) != nil, request.earlier == 1 {
                return ImageServer.Reply(503, [("Retry-After", "1e30")])
            }
            return city.reply(to: request) ?? ImageServer.Reply(404)
        }
        // A wait of more than ten minutes would block the test: the longest here is shorter.
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("requests that wait", where: { $0 >= 4 }) { bench.waits.all.count }
        #expect(bench.waits.all[..<2].allSatisfy { $0 < .seconds(1) })
        #expect(bench.waits.all[2] >= .seconds(77))
        #expect(bench.waits.all[2] < .seconds(80))
        #expect(bench.waits.all[3] == .seconds(3_600))
        try await bench.store.downloads.cancel(job.id)
        try await bench.close()
    }

    @Test(.verifies("DL-18"), arguments: [1e30, .infinity, .nan, -1e30, 3_601])
    func `an invalid or excessive Retry-After is bounded`(seconds: Double) async throws {
        let waits = Waits(endless: .seconds(100_000))
        var options = DownloadManager.Options()
        options.sleep = { try await waits.wait($0) }
        let backoff = DownloadBackoff(options) { 0 }
        try await backoff.waitAfterFailure(
            DownloadError(.unavailable, "", retryAfterSeconds: seconds))
        #expect(waits.all == [seconds > 0 ? .seconds(3_600) : .zero])
    }

    @Test(.verifies("DL-18"), arguments: [true, false])
    func `a failed token renewal is retried, and does not count as a refusal`(
        isRefreshed: Bool
    ) async throws {
        let city = SampleCity(sizes: [20_000])
        let tokens = UnsteadyTokens(failures: isRefreshed ? 0 : 1)
        let bench = try await Bench(credentials: tokens) { request in
            guard city.image(request.path) != nil else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            guard request.headers["authorization"] == "Bearer new" else {
                return ImageServer.Reply(401)
            }
            var reply = city.reply(to: request) ?? ImageServer.Reply(404)
            // The response has no valid head.
            if isRefreshed, request.earlier == 1 { reply.status = 0 }
            return reply
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(bench.waits.all.count == 1)
        try await bench.close()
    }

    @Test(.verifies("DL-17"), arguments: [(60_000, false), (50_000, true)])
    func `a stored image is used only if it matches the current manifest`(
        size: Int, includesChecksums: Bool
    ) async throws {
        var old = SampleCity(sizes: [50_000, 1_000])
        old.includesChecksums = false
        var new = SampleCity(sizes: [size, 1_000], seed: 2)
        new.includesChecksums = includesChecksums
        let present = Mutex((city: old, isWhole: false))
        let bench = try await Bench(options: { $0.imagesAtOnce = 1 }) { request in
            let (city, isWhole) = present.withLock { $0 }
            // The token is rejected for the manifest as well: the job fails.
            if !isWhole,
                request.path == SampleCity.path(1)
                    || request.path == city.path
                        && request.earlier > 0
            {
                return ImageServer.Reply(401)
            }
            return city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let job = try await bench.download(old, to: .failed)
        present.withLock { $0 = (new, true) }
        try await bench.store.downloads.retry(job.id)
        try await bench.expect(job.id, .completed)
        try await bench.check(new)
        try await bench.close()
    }

    @Test(.verifies("DL-16"), arguments: [true, false])
    func `an image shorter than announced is not requested without end`(
        tellsLength: Bool
    ) async throws {
        let city = SampleCity(sizes: [100_000])
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            // A server without range support.
            var reply = ImageServer.Reply(200, [], Array(image[..<60_000]))
            if !tellsLength { reply.length = nil }
            return reply
        }
        let missing = try await bench.downloadIncomplete(city)
        #expect(missing.first?.contains("shorter than announced") ?? false)
        #expect(bench.server.requests(SampleCity.path(0)).count == 3)
        try await bench.close()
    }

    @Test(.verifies("DL-18"))
    func `an image that arrives in very few bytes per response is missing`()
        async throws
    {
        let city = SampleCity(sizes: [100_000])
        let bench = try await Bench { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            let start = request.rangeStart ?? 0
            guard start > 0 else {
                var reply = ImageServer.Reply(200, [("ETag", tag)], image)
                reply.cutAfter = 1_000
                return reply
            }
            return ImageServer.Reply(
                206, [("ETag", tag), ("Content-Range", "bytes \(start)-\(start + 99)/100000")],
                Array(image[start..<start + 100]))
        }
        let missing = try await bench.downloadIncomplete(city)
        #expect(missing.count == 1)
        #expect(missing.first?.contains("incomplete") ?? false)
        #expect(bench.server.requests(SampleCity.path(0)).count == 5)
        try await bench.close()
    }

    @Test(.verifies("DL-16", "DL-18", "DL-26"), arguments: [401, 408, 425, 429, 500, 503, 0])
    func `an image that the server does not send never holds up the rest of its city`(
        status: Int
    ) async throws {
        let city = SampleCity(sizes: [20_000, 30_000, 10_000])
        let bench = try await Bench { request in
            request.path == SampleCity.path(1)
                ? ImageServer.Reply(status) : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let missing = try await bench.downloadIncomplete(city)
        #expect(missing.count == 1)
        #expect(missing.first?.hasPrefix("manifest.images[1]") ?? false)
        #expect(bench.server.requests(SampleCity.path(1)).count == (status == 401 ? 1 : 5))
        let copy = try #require(bench.store.view(CitiesView.self).offline(city.id))
        #expect(copy.images.map(\.id) == ["i0", "i2"])
        try await bench.close()
    }

    @Test(.verifies("DL-18"))
    func `a server that sends no image at all is asked for four, and the text arrives`()
        async throws
    {
        let city = SampleCity(sizes: Array(repeating: 1_000, count: 20))
        let bench = try await Bench(options: { $0.imagesAtOnce = 1 }) { request in
            city.image(request.path) != nil
                ? ImageServer.Reply(503) : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        #expect(try await bench.downloadIncomplete(city).count == 20)
        let requests = city.images.indices.map {
            bench.server.requests(SampleCity.path($0)).count
        }
        #expect(requests == [5, 1, 1, 1] + Array(repeating: 0, count: 16))
        try await bench.close()
    }

    @Test(.verifies("DL-18"), arguments: [503, 401])
    func `if the manifest is not answered either, the job waits or fails, and no image is left out`(
        status: Int
    ) async throws {
        let city = SampleCity(sizes: [20_000, 30_000])
        let isDown = Mutex(false)
        let bench = try await Bench { request in
            if city.image(request.path) != nil { isDown.withLock { $0 = true } }
            return isDown.withLock { $0 }
                ? ImageServer.Reply(status) : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let job = try await bench.store.downloads.queue(city.id)
        try await bench.expect(job.id, status == 401 ? .failed : .paused)
        #expect(bench.store.view(CitiesView.self).offline(city.id) == nil)
        try await bench.close()
    }

    @Test(.verifies("DL-16"))
    func `a partial response does not complete an image of unknown size`() async throws {
        var sample = SampleCity(sizes: [100_000])
        (sample.includesSizes, sample.includesChecksums) = (false, false)
        let city = sample
        let bench = try await Bench(options: { $0.timeoutSeconds = 1 }) { request in
            guard let image = city.image(request.path) else {
                return city.reply(to: request) ?? ImageServer.Reply(404)
            }
            guard let start = request.rangeStart else {
                var reply = ImageServer.Reply(200, [("ETag", tag)], image)
                (reply.length, reply.stallAfter) = (nil, 30_000)
                return reply
            }
            guard start < image.count else {
                return ImageServer.Reply(416, [("Content-Range", "bytes */\(image.count)")])
            }
            let end = min(start + 35_000, image.count)
            return ImageServer.Reply(
                206, [("ETag", tag), ("Content-Range", "bytes \(start)-\(end - 1)/*")],
                Array(image[start..<end]))
        }
        try await bench.download(city)
        try await bench.check(city)
        #expect(
            bench.server.requests(SampleCity.path(0)).map(\.rangeStart)
                == [nil, 30_000, 65_000, 100_000])
        try await bench.close()
    }

    @Test(.verifies("DL-18"), arguments: [400, 403, 404, 410, 301, 204])
    func `a status that a retry would not change ends the fetch, with what was requested and why`(
        status: Int
    ) async throws {
        let city = SampleCity(sizes: [1_000, 2_000])
        for (path, name) in [
            (city.path, "the city lisbon"), (SampleCity.path(1), "manifest.images[1]"),
        ] {
            let bench = try await Bench { request in
                request.path == path
                    ? ImageServer.Reply(status)
                    : city.reply(to: request) ?? ImageServer.Reply(404)
            }
            let problem =
                path == city.path
                ? try await bench.download(city, to: .failed).errorMessage
                : try await bench.downloadIncomplete(city).first
            #expect(problem?.contains("\(status)") ?? false)
            #expect(problem?.hasPrefix("\(name): ") ?? false)
            #expect(bench.server.requests(path).count == 1)
            try await bench.close()
        }
    }

    @Test(.verifies("DL-17")) func `an image that is already stored is not fetched`() async throws {
        let city = SampleCity(sizes: [50_000, 60_000])
        let bench = try await Bench { city.reply(to: $0) ?? ImageServer.Reply(404) }
        try await bench.download(city)
        try await bench.download(city)
        #expect(bench.server.requests(SampleCity.path(0)).count == 1)
        #expect(bench.store.view(CitiesView.self).offline(city.id)?.version == 2)
        try await bench.close()
    }
}

/// Credentials whose renewal fails a number of times.
private actor UnsteadyTokens: Credentials {
    private var failures: Int
    private var present = AccessToken("old")

    init(failures: Int) { self.failures = failures }

    func token() -> AccessToken? { present }

    func refresh(_ old: AccessToken?) throws -> AccessToken? {
        guard failures == 0 else {
            failures -= 1
            throw URLError(.networkConnectionLost)
        }
        present = AccessToken("new")
        return present
    }
}
