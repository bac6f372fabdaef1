// The states of jobs, the files on the disk, and the continuation by the next process. Over a real
// connection.

import DaybookTestKit
import DownloadHistories
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// A server that sends images slowly, so that the test can change a job meanwhile.
@Sendable private func slowly(
    _ city: SampleCity, _ request: ImageServer.Request
) -> ImageServer.Reply {
    var reply = city.reply(to: request) ?? ImageServer.Reply(404)
    if city.image(request.path) != nil { reply.bytesPerSecond = 100_000 }
    return reply
}

/// A server that sends the first part of an image and then stalls.
@Sendable private func stalling(
    _ city: SampleCity, after count: Int, _ request: ImageServer.Request
) -> ImageServer.Reply {
    var reply = city.reply(to: request) ?? ImageServer.Reply(404)
    if city.image(request.path) != nil, request.earlier == 0 { reply.stallAfter = count }
    return reply
}

/// The names in a folder without its lock; none if the folder does not exist.
private func names(_ folder: String, _ files: any FileSystem) -> [String] {
    ((try? files.list(folder)) ?? []).filter { $0 != "lock" }
}

private let incoming = "/log/files/incoming"

@Suite struct ManagerTests {
    @Test(.verifies("DL-19")) func `a user pauses, resumes and cancels at any moment`() async throws
    {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [60_000, 60_000])
        let bench = try await Bench(files) { stalling(city, after: 20_000, $0) }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 40_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        try await bench.manager.pause(job.id)
        let paused = try #require(bench.store.view(DownloadsView.self)[job.id])
        #expect(paused.status == .paused)
        #expect(paused.pauseReason == .user)
        #expect(paused.downloadedBytes == 40_000)
        #expect(paused.totalBytes == 120_000)
        #expect(paused.progress == 33)
        #expect(paused.currentStep == "Downloading images (0/2)")
        // Only the user ends this pause: another job is completed meanwhile.
        bench.network.set(.none)
        bench.network.set(.wifi)
        let porto = try await bench.store.downloads.queue("porto")
        try await bench.expect(porto.id, .failed)
        try await bench.store.downloads.remove(porto.id)
        #expect(bench.store.view(DownloadsView.self)[job.id]?.status == .paused)
        try await bench.store.downloads.resume(job.id)
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        // It continued at its last byte.
        #expect(bench.server.requests(SampleCity.path(0))[1].rangeStart == 20_000)

        let other = SampleCity("porto", sizes: [50_000], seed: 9)
        let second = try await Bench(files, at: "/other") { stalling(other, after: 10_000, $0) }
        let doomed = try await second.store.downloads.queue(other.id)
        try await eventually("downloaded bytes", is: 10_000) {
            second.manager.job(doomed.id)?.downloadedBytes
        }
        #expect(!names("/other/files/incoming", files).isEmpty)
        try await second.store.downloads.cancel(doomed.id)
        try await eventually("partial files", is: []) { names("/other/files/incoming", files) }
        #expect(second.store.view(DownloadsView.self).jobs.isEmpty)
        try await second.close()
        try await bench.close()
        #expect(names(incoming, files).isEmpty)
    }

    @Test(.verifies("DL-19"))
    func `on a metered network jobs wait for Wi-Fi, or for another setting`()
        async throws
    {
        let city = SampleCity(sizes: [60_000])
        let bench = try await Bench(network: TestNetwork(.cellular)) {
            stalling(city, after: 20_000, $0)
        }
        let job = try await bench.store.downloads.queue(city.id)
        try await bench.expect(job.id, .paused)
        #expect(bench.store.view(DownloadsView.self)[job.id]?.pauseReason == .cellular)
        #expect(bench.server.requests.isEmpty)
        bench.network.set(.wifi)
        try await eventually("downloaded bytes", is: 20_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        bench.network.set(.cellular)
        try await bench.expect(job.id, .paused)
        let paused = try #require(bench.store.view(DownloadsView.self)[job.id])
        #expect(paused.pauseReason == .cellular)
        #expect(paused.downloadedBytes == 20_000)
        // The settings take effect at once.
        try await bench.store.preferences.update(for: Bench.user) { $0.wifiOnlyDownload = false }
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        try await bench.close()
    }

    @Test(.verifies("DL-19"))
    func `without a network a job pauses, and continues when there is one`()
        async throws
    {
        let city = SampleCity(sizes: [60_000])
        let bench = try await Bench { stalling(city, after: 20_000, $0) }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 20_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        bench.network.set(.none)
        try await bench.expect(job.id, .paused)
        #expect(bench.store.view(DownloadsView.self)[job.id]?.pauseReason == .connection)
        bench.network.set(.wifi)
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        #expect(bench.waits.all.isEmpty)
        try await bench.close()
    }

    @Test(.verifies("DL-18", "DL-19"), arguments: [[NetworkPath.none, .wifi], [.cellular]])
    func
        `five failures in a row pause a job, until there is another network or a slow timer rings`(
            next: [NetworkPath]
        ) async throws
    {
        let city = SampleCity(sizes: [30_000])
        let isUp = Mutex(false)
        // The timer's wait is fifteen minutes and must not end at once.
        let waits = Waits()
        let bench = try await Bench(waits: waits) { request in
            // The connection is dead after the manifest.
            guard isUp.withLock({ $0 }) || request.path == city.path && request.earlier == 0 else {
                var reply = ImageServer.Reply(200)
                (reply.body, reply.length, reply.cutAfter) = ([0], 30_000, 0)
                return reply
            }
            return city.reply(to: request) ?? ImageServer.Reply(404)
        }
        try await bench.store.preferences.update(for: Bench.user) { $0.wifiOnlyDownload = false }
        let job = try await bench.store.downloads.queue(city.id)
        try await bench.expect(job.id, .paused)
        #expect(bench.store.view(DownloadsView.self)[job.id]?.pauseReason == .connection)
        #expect(bench.server.requests(SampleCity.path(0)).count == 5)
        // Full jitter: any wait up to a bound that doubles; then the timer of a quarter of an hour.
        try await eventually(
            "waits", where: { (all: [Duration]) in all.contains { $0 > .seconds(880) } }
        ) { waits.all }
        for (wait, most) in zip(waits.all, [500, 1_000, 2_000, 4_000]) {
            #expect(wait >= .zero)
            #expect(wait <= .milliseconds(most))
        }
        #expect(waits.all.count == 5)
        let timerWait = try #require(waits.all.last)
        #expect(timerWait <= .seconds(900))
        isUp.withLock { $0 = true }
        for path in next { bench.network.set(path) }
        try await bench.expect(job.id, .completed)
        try await bench.close()
    }

    @Test(.verifies("DL-18", "DL-19"))
    func `a job that waits for a connection is retried automatically`()
        async throws
    {
        let city = SampleCity(sizes: [3_000])
        let bench = try await Bench(options: {
            $0.failuresMax = 1
            $0.pausedRetry = .milliseconds(20)
            // In real time: the manager compares the time of the retry with the system's clock.
            $0.sleep = { try await Task.sleep(for: $0) }
        }) { request in
            request.path == city.path && request.earlier < 3
                ? ImageServer.Reply(503) : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let job = try await bench.store.downloads.queue(city.id)
        try await bench.expect(job.id, .completed)
        #expect(bench.server.requests(city.path).count == 4)
        #expect(job.id == bench.store.view(DownloadsView.self).jobs[0].id)
        try await bench.close()
    }

    @Test(.verifies("DL-19")) func `without work there is no timer and no request`()
        async throws
    {
        let city = SampleCity(sizes: [3_000])
        let bench = try await Bench { city.reply(to: $0) ?? ImageServer.Reply(404) }
        try await bench.download(city)
        let done = bench.server.requests.count
        let paused = try await bench.store.downloads.queue("porto")
        try await bench.expect(paused.id, .failed)
        try await bench.store.cities.save("x", by: "u")
        // Its effects would be visible when another job is completed.
        let last = try await bench.store.downloads.queue("madrid")
        try await bench.expect(last.id, .failed)
        #expect(bench.waits.all.isEmpty)
        #expect(bench.server.requests.count == done + 2)
        try await bench.close()
    }

    @Test(.verifies("DL-23")) func `jobs run one at a time, the explicit ones first`()
        async throws
    {
        let network = TestNetwork(.none)
        let cities = ["a", "b", "c", "d"].map { SampleCity($0, sizes: [20_000]) }
        let bench = try await Bench(network: network, options: { $0.imagesAtOnce = 2 }) { request in
            for city in cities where city.path == request.path { return .json(city.manifest) }
            return slowly(cities[0], request)
        }
        for (city, isExplicit) in zip(cities, [false, false, true, true]) {
            try await bench.store.downloads.queue(city.id, isExplicit: isExplicit)
        }
        network.set(.wifi)
        try await eventually("completed jobs", is: 4) {
            bench.store.view(DownloadsView.self).count(.completed)
        }
        let order = bench.server.requests.filter { $0.path.hasPrefix("/cities/") }.map(\.path)
        #expect(order == ["/cities/c", "/cities/d", "/cities/a", "/cities/b"])
        #expect(bench.server.maxConcurrentReplies == 1)
        #expect(bench.store.view(CitiesView.self).offline("a")?.isExplicitDownload == false)
        try await bench.close()
    }

    @Test(.verifies("DL-20")) func `progress begins with the current state, counts up and ends`()
        async throws
    {
        let city = SampleCity(sizes: [40_000, 40_000])
        let bench = try await Bench { stalling(city, after: 20_000, $0) }
        let queued = try await bench.store.downloads.queue(city.id)
        var seen: [DownloadJob] = []
        for await job in bench.manager.progress(of: queued.id) {
            #expect(job.downloadedBytes <= job.totalBytes)
            #expect((0...100).contains(job.progress))
            seen.append(job)
            if job.status == .completed { break }
            // The server waits here.
            guard job.status == .downloading, job.downloadedBytes == 40_000 else { continue }
            try await bench.manager.pause(queued.id)
            try await bench.store.downloads.resume(queued.id)
        }
        #expect([.queued, .downloading].contains(seen[0].status))
        let downloading = seen.filter { $0.status == .downloading && $0.totalBytes > 0 }
        #expect(downloading.map(\.downloadedBytes) == downloading.map(\.downloadedBytes).sorted())
        #expect(downloading.contains { $0.progress == 50 })
        #expect(
            Set(downloading.map(\.currentStep)).isSubset(of: [
                "Downloading images (0/2)", "Downloading images (1/2)", "Downloading images (2/2)",
            ]))
        // A late subscriber receives the current state, and the end at the removal.
        var late = bench.manager.progress(of: queued.id).makeAsyncIterator()
        #expect(await late.next()?.status == .completed)
        try await bench.store.downloads.remove(queued.id)
        #expect(await late.next() == nil)
        try await bench.close()
    }

    @Test(.verifies("DL-20", "FOL-11"))
    func `every query about downloads counts up with the bytes, and no event is recorded for them`()
        async throws
    {
        let city = SampleCity(sizes: [40_000, 40_000])
        let bench = try await Bench { stalling(city, after: 20_000, $0) }
        let downloads = bench.store.downloads
        let queued = try await downloads.queue(city.id)
        for await job in downloads.job(queued.id).changes {
            if job?.downloadedBytes == 40_000 { break }
        }
        for await jobs in downloads.active.changes { if jobs.first?.progress == 50 { break } }
        let shown = try #require(downloads.job(queued.id).current)
        #expect(shown.status == .downloading)
        #expect(shown.totalBytes == 80_000)
        #expect(shown.currentStep == "Downloading images (0/2)")
        #expect(downloads.jobs(of: city.id).current == [shown])
        #expect(downloads.jobs(.downloading).current == [shown])
        #expect(bench.manager.job(queued.id) == shown)
        // The log has the events of queueing and start, and none of bytes.
        #expect(bench.store.view(DownloadsView.self)[queued.id]?.downloadedBytes == 0)
        #expect(await bench.store.events.lastDurable.rawValue == 2)
        // A pause by a command, without the manager, has the current numbers, too.
        try await downloads.pause(queued.id)
        #expect(bench.store.view(DownloadsView.self)[queued.id]?.downloadedBytes == 40_000)
        try await downloads.resume(queued.id)
        try await bench.expect(queued.id, .completed)
        #expect(downloads.job(queued.id).current?.progress == 100)
        try await bench.close()
    }

    @Test(.verifies("DL-15"))
    func `the next process continues the jobs of this one, and cleans up`() async throws {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [60_000, 1_000])
        let first = try await Bench(files) { stalling(city, after: 30_000, $0) }
        let job = try await first.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 31_000) {
            first.manager.job(job.id)?.downloadedBytes
        }
        try await first.close()
        // Files that another process may have left.
        let gone = "00000000-0000-4000-8000-0000000000aa"
        try files.createDirectory("\(incoming)/\(gone)")
        _ = try files.open("\(incoming)/\(gone)/x.part", .createNew)
        try files.createDirectory("\(incoming)/mine")

        let second = try await Bench(files, server: first.server)
        #expect(second.store.view(DownloadsView.self)[job.id]?.status == .downloading)
        try await second.expect(job.id, .completed)
        try await second.check(city)
        #expect(second.server.requests(SampleCity.path(0)).map(\.rangeStart) == [nil, 30_000])
        #expect(second.server.requests(SampleCity.path(1)).count == 1)
        try await second.close()
        #expect(names(incoming, files) == ["mine"])
    }

    @Test(.verifies("DL-14", "DL-15"))
    func `without a checksum only durable bytes are resumed after a kill`() async throws {
        let files = InMemoryFileSystem()
        var sample = SampleCity(sizes: [2_500_000])
        sample.includesChecksums = false
        let city = sample
        let first = try await Bench(files) { stalling(city, after: 2_300_000, $0) }
        let job = try await first.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 2_300_000) {
            first.manager.job(job.id)?.downloadedBytes
        }
        // The state after a power cut: the length is durable, the last bytes are not.
        let folder = "\(incoming)/\(job.id)"
        let part = try #require(files.list(folder).first { $0.hasSuffix(".part") })
        let sidecar = try #require(files.list(folder).first { $0.hasSuffix(".json") })
        let (bytes, known) = try (
            files.open("\(folder)/\(part)", .read).read(at: 0, count: 3_000_000),
            files.open("\(folder)/\(sidecar)", .read).read(at: 0, count: 10_000)
        )
        try await first.close()
        var torn = bytes
        let durable = try #require(try JSONFields(known).count("durable"))
        for index in torn.indices[durable...] { torn[index] = 0 }
        try files.open("\(folder)/\(part)", .readWrite).write(torn, at: 0)
        let file = try files.open("\(folder)/\(sidecar)", .readWrite)
        try file.truncate(to: 0)
        try file.write(known, at: 0)

        let second = try await Bench(files, server: first.server)
        try await second.expect(job.id, .completed)
        try await second.check(city)
        #expect((2_000_000..<2_300_000).contains(durable))
        #expect(second.server.requests(SampleCity.path(0))[1].rangeStart == durable)
        try await second.close()
    }

    @Test(.verifies("DL-17"))
    func
        `images of a paused job survive a collection of files, and are deleted when it is cancelled`()
        async throws
    {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [1_000, 60_000])
        let bench = try await Bench(files) { request in
            var reply = city.reply(to: request) ?? ImageServer.Reply(404)
            if request.path == SampleCity.path(1) { reply.stallAfter = 10_000 }
            return reply
        }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 11_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        try await bench.manager.pause(job.id)
        try await eventually("status", is: .paused) { bench.manager.job(job.id)?.status }
        let image = FileID(of: city.images[0])
        #expect(try await bench.store.files.collect() == FileCollection())
        try await bench.close()
        // The next process holds the images again.
        let second = try await Bench(files, server: bench.server)
        try await second.manager.tidy()
        #expect(try await second.store.files.collect() == FileCollection())
        #expect(try await second.store.files.read(image) == city.images[0])
        try await second.store.downloads.cancel(job.id)
        try await eventually("bytes of the deleted image", is: nil) {
            (try? await second.store.files.read(image))?.count
        }
        try await second.close()
    }

    @Test(.verifies("DL-22")) func `a full device fails the job with a message, and loses no data`()
        async throws
    {
        let files = FullFileSystem()
        let (small, big) = (SampleCity(sizes: [1_000]), SampleCity("big", sizes: [90_000], seed: 5))
        let bench = try await Bench(files) { request in
            small.reply(to: request)
                ?? (request.path == big.path
                    ? .json(big.manifest.replacing("/images/0.jpg", with: "/big.jpg"))
                    : .content(big.images[0], etag: nil, to: request))
        }
        try await bench.download(small)
        files.isFull.withLock { $0 = true }
        let failed = try await bench.download(big, to: .failed)
        #expect(failed.errorMessage == DownloadError.deviceIsFull)
        try await bench.check(small)
        files.isFull.withLock { $0 = false }
        try await bench.store.downloads.retry(failed.id)
        try await bench.expect(failed.id, .completed)
        try await bench.close()
    }

    @Test(.verifies("DL-24"))
    func `a city that exceeds the storage limit fails before its images are fetched`()
        async throws
    {
        let city = SampleCity(sizes: [1_000])
        let bench = try await Bench(options: {
            $0.imageBytesMax = .max
            $0.cityBytesMax = .max
        }) { request in
            request.path == city.path
                ? .json(
                    city.manifest.replacing(
                        #""size":1000"#, with: #""size":\#(120 * 1_048_576)"#))
                : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let job = try await bench.download(city, to: .failed)
        #expect(job.errorMessage?.contains("the storage limit is 104857600") ?? false)
        #expect(bench.server.requests.map(\.path) == [city.path])
        try await bench.close()
    }

    @Test(.verifies("DL-14"))
    func `only the owner can read partial files, and links are not followed`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        func mode(_ url: URL) throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            return try #require(attributes[.posixPermissions] as? Int)
        }
        let city = SampleCity(sizes: [50_000])
        let cache = folder.appending("caches/downloads")
        let bench = try await Bench(
            POSIXFileSystem(), at: folder.log,
            options: { $0.cacheFolder = cache.path }
        ) { stalling(city, after: 20_000, $0) }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 20_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        let of = cache.appending(path: "daybook-downloads/\(bench.store.events.logID.text)")
        let own = of.appending(path: job.id)
        #expect(try mode(cache) == 0o700)
        #expect(try mode(of) == 0o700)
        #expect(try mode(own) == 0o700)
        let found = try FileManager.default.contentsOfDirectory(atPath: own.path)
        #expect(found.count == 2)
        for name in found { #expect(try mode(own.appending(path: name)) == 0o600) }
        // Another process replaces a partial file by a link.
        try await bench.manager.pause(job.id)
        try await eventually("status", is: .paused) { bench.manager.job(job.id)?.status }
        let victim = folder.appending("victim")
        try Data("mine".utf8).write(to: victim)
        let part = own.appending(path: try #require(found.first { $0.hasSuffix(".part") }))
        try await bench.stop()
        try FileManager.default.removeItem(at: part)
        try FileManager.default.createSymbolicLink(at: part, withDestinationURL: victim)
        let work = Task { [manager = bench.manager] in try await manager.run() }
        try await bench.store.downloads.resume(job.id)
        try await bench.expect(job.id, .failed)
        #expect(try Data(contentsOf: victim) == Data("mine".utf8))
        work.cancel()
        try await work.value
        try await bench.close()
    }

    @Test(.verifies("DL-2", "DL-19"))
    func `a corrected clock does not keep a job in its state`() async throws {
        let city = SampleCity(sizes: [60_000])
        let now = Mutex<Int64>(1_700_000_000_000)
        let bench = try await Bench(
            network: TestNetwork(.none), clock: { now.withLock { $0 } }
        ) { stalling(city, after: 20_000, $0) }
        func backAnHour() { now.withLock { $0 -= 3_600_000 } }
        let job = try await bench.store.downloads.queue(city.id)
        backAnHour()
        bench.network.set(.wifi)
        try await eventually("downloaded bytes", is: 20_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        backAnHour()
        try await bench.manager.pause(job.id)
        try await bench.expect(job.id, .paused)
        backAnHour()
        try await bench.store.downloads.resume(job.id)
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        // Queued, started, paused, queued, started, cached, completed.
        #expect(await bench.store.events.lastDurable == Position(7))
        try await bench.close()
    }

    @Test(.verifies("DL-4", "DL-19"))
    func `jobs finished a day ago are removed when a manager starts`()
        async throws
    {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [10])
        let now = Mutex<Int64>(1_700_000_000_000)
        let clock: @Sendable () -> Int64 = { now.withLock { $0 } }
        let first = try await Bench(files, clock: clock) {
            city.reply(to: $0) ?? ImageServer.Reply(404)
        }
        try await first.download(city)
        try await first.close()
        now.withLock { $0 += 86_400_000 }
        let second = try await Bench(files, clock: clock) { _ in ImageServer.Reply(500) }
        try await eventually("jobs", is: []) { second.store.view(DownloadsView.self).jobs }
        try await second.check(city)
        try await second.close()
    }

    @Test(.verifies("DL-19"))
    func `no job runs while the store is suspended, and the job is completed after its resumption`()
        async throws
    {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [60_000])
        let bench = try await Bench(files) { stalling(city, after: 20_000, $0) }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 20_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        #expect(try !files.open("\(incoming)/lock", .readWrite).lock())
        try await bench.store.suspend()
        // Another process uses the folder until it releases the lock.
        let other = try files.open("\(incoming)/lock", .readWrite)
        try await eventually("the other process holds the lock", is: true) { try other.lock() }
        #expect(bench.manager.job(job.id)?.downloadedBytes == 0)
        _ = consume other
        try await bench.store.resume()
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        try await bench.close()
    }

    @Test(.verifies("DL-19"))
    func `a job that another process left in progress is paused without a network`() async throws {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [60_000])
        let first = try await Bench(files) { stalling(city, after: 20_000, $0) }
        let job = try await first.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 20_000) {
            first.manager.job(job.id)?.downloadedBytes
        }
        try await first.close()
        let second = try await Bench(files, network: TestNetwork(.none), server: first.server)
        try await second.expect(job.id, .paused)
        #expect(second.store.view(DownloadsView.self)[job.id]?.pauseReason == .connection)
        // The user may cancel the waiting job.
        try await second.store.downloads.pause(job.id)
        #expect(second.store.view(DownloadsView.self)[job.id]?.pauseReason == .user)
        try await second.store.downloads.resume(job.id)
        second.network.set(.wifi)
        try await second.expect(job.id, .completed)
        try await second.close()
    }

    @Test(.verifies("DL-15")) func `two managers do not use one folder at the same time`()
        async throws
    {
        let city = SampleCity(sizes: [60_000])
        let bench = try await Bench { stalling(city, after: 20_000, $0) }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 20_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        var options = DownloadManager.Options()
        let looks = Waits()
        options.sleep = {
            try await looks.wait($0)
            // Another manager uses the folder: without a pause this one would keep a processor busy.
            try await Task.sleep(for: .milliseconds(5))
        }
        let second = DownloadManager(
            bench.store, base: try #require(URL(string: bench.server.base)),
            credentials: NoCredentials(), user: Bench.user, reachability: TestNetwork(),
            options: options)
        let work = Task { try await second.run() }
        try await eventually("waits", where: { $0 >= 3 }) { looks.all.count }
        #expect(bench.server.requests.count == 2)
        // It continues once the other manager has stopped.
        try await bench.stop()
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        work.cancel()
        try await work.value
        try await bench.store.close()
    }

    @Test(.verifies("DL-17")) func `no file is held for a job when its manager has ended`()
        async throws
    {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [1_000, 60_000])
        let bench = try await Bench(files) { request in
            request.path == SampleCity.path(1)
                ? stalling(city, after: 10_000, request)
                : city.reply(to: request) ?? ImageServer.Reply(404)
        }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 11_000) {
            bench.manager.job(job.id)?.downloadedBytes
        }
        try await bench.stop()
        #expect(try await bench.store.files.collect() != FileCollection())
        // The cost is a repeated fetch.
        let work = Task { [manager = bench.manager] in try await manager.run() }
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        work.cancel()
        try await work.value
        try await bench.close()
    }

    @Test(.verifies("DL-14", "DL-15"))
    func `logs that share a cache folder do not interfere`()
        async throws
    {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [60_000])
        let first = try await Bench(files, options: { $0.cacheFolder = "/cache" }) {
            stalling(city, after: 20_000, $0)
        }
        let job = try await first.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", is: 20_000) {
            first.manager.job(job.id)?.downloadedBytes
        }
        let second = try await Bench(
            files, at: "/other", options: { $0.cacheFolder = "/cache" }
        ) { city.reply(to: $0) ?? ImageServer.Reply(404) }
        try await second.download(city)
        try await second.close()
        try await first.manager.pause(job.id)
        try await first.store.downloads.resume(job.id)
        try await first.expect(job.id, .completed)
        #expect(first.server.requests(SampleCity.path(0)).map(\.rangeStart) == [nil, 20_000])
        try await first.close()
    }

    @Test(.verifies("DL-21")) func `no file of a city that is too large is kept`() async throws {
        let files = InMemoryFileSystem()
        var sample = SampleCity(sizes: [40_000, 40_000])
        sample.includesSizes = false
        let city = sample
        let bench = try await Bench(files, options: { $0.cityBytesMax = 60_000 }) {
            city.reply(to: $0) ?? ImageServer.Reply(404)
        }
        try await bench.download(city, to: .failed)
        try await eventually("partial files", is: []) { names(incoming, files) }
        try await bench.close()
    }

    @Test(.verifies("DL-14")) func `an emptied cache folder costs a download, not the job`()
        async throws
    {
        let files = InMemoryFileSystem()
        let city = SampleCity(sizes: [60_000])
        let bench = try await Bench(files) { slowly(city, $0) }
        let job = try await bench.store.downloads.queue(city.id)
        try await eventually("downloaded bytes", where: { $0 > 0 }) {
            bench.manager.job(job.id)?.downloadedBytes ?? 0
        }
        try DownloadFolder.remove("\(incoming)/\(job.id)", files)
        try await bench.expect(job.id, .completed)
        try await bench.check(city)
        #expect(bench.server.requests(SampleCity.path(0)).count == 2)
        try await bench.close()
    }

    @Test(.verifies("DL-15"))
    func `a process that is killed repeatedly downloads every byte once`() async throws {
        var options = DownloadHistory.Options()
        options.kills = 3
        options.images = 4
        options.bytesPerSecond = 256 * 1_024
        let soaker = try #require(
            [
                Bundle.main.bundleURL,
                URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent(),
            ]
            .map { $0.appending(path: "soaker") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) })
        let counts = try await DownloadHistory(soaker, ["download"], options: options).run()
        #expect(counts["kills"] == 3)
        // Only bytes in transit at a kill are fetched twice.
        #expect(try #require(counts["bytes transferred in vain"]) <= 3 * 4 * 131_072)
    }
}

/// A file system in memory that can be full for partial files.
private final class FullFileSystem: ForwardingFileSystem {
    let memory = InMemoryFileSystem()
    let isFull = Mutex(false)
    var base: any FileSystem { memory }

    private final class FullFile: ForwardingFile {
        let file: any File
        let owner: FullFileSystem
        init(_ file: any File, _ owner: FullFileSystem) { (self.file, self.owner) = (file, owner) }
        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            guard !owner.isFull.withLock({ $0 }) || offset < 20_000 else {
                throw FileError(
                    .noSpace, operation: "write", path: "x", reason: "No space left on device")
            }
            try file.write(bytes, at: offset)
        }
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let file = try memory.open(path, mode)
        return path.hasSuffix(".part") ? FullFile(file, self) : file
    }
}
