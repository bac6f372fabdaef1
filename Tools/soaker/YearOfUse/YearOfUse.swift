// Simulates a year of an app with a heavy user, day by day on a real disk, and measures the log, the files
// and the memory. `Tools/soak year` runs it.

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization

/// A simulated year: each day the app starts, cleans up, syncs, is used, and ends.
package struct YearOfUse: Sendable {
    package var days = 365
    package var cities = 100
    package var imagesPerCity = 10
    package var imageBytes = 262_144
    package var textBytes = 50_000
    package var seed: UInt64 = 1
    package var progress: @Sendable (String) -> Void = { _ in }

    package init() {}

    private static let user = "user-1"
    /// 1 January 2026, 08:00.
    private static let start: Int64 = 1_767_254_400_000

    /// The measurements of a year.
    package struct Report: Sendable, CustomStringConvertible {
        package var events: UInt64 = 0
        package var logBytes = 0
        package var logBytesMax = 0
        package var checkpointBytes = 0
        package var fileBytes = 0
        package var fileBytesMax = 0
        package var cached = 0
        package var downloads = 0
        package var downloadedBytes = 0
        package var evicted = 0
        package var outdated = 0
        package var reads = 0
        package var compactions = 0
        package var freedBytes = 0
        package var openMilliseconds: [Double] = []
        package var residentBytesMax = 0

        package var description: String {
            func mega(_ bytes: Int) -> String {
                String(format: "%.1f MB", Double(bytes) / 1_048_576)
            }
            func median(_ values: some Collection<Double>) -> String {
                let sorted = values.sorted()
                return String(
                    format: "%.1f ms (most %.1f)", sorted[sorted.count / 2], sorted.last ?? 0)
            }
            return """
                events recorded       \(events)
                log                   \(mega(logBytes)) (most \(mega(logBytesMax)))
                checkpoints           \(mega(checkpointBytes))
                files                 \(mega(fileBytes)) (most \(mega(fileBytesMax)))
                cities cached         \(cached)
                cities downloaded     \(downloads), \(mega(downloadedBytes))
                evicted for the limit \(evicted)
                removed for their age \(outdated)
                cities read           \(reads)
                compactions           \(compactions), \(mega(freedBytes)) freed
                opening, first month  \(median(openMilliseconds.prefix(30)))
                opening, last month   \(median(openMilliseconds.suffix(30)))
                memory, at most       \(mega(residentBytesMax))
                """
        }
    }

    /// Runs the year in an existing empty folder.
    package func run(in folder: URL) async throws -> Report {
        var report = Report()
        var random = SeededRandom(seed: seed)
        let clock = VirtualClock(milliseconds: Self.start)
        let log = folder.appending(path: "log")
        for day in 0..<days {
            clock.milliseconds = Self.start + Int64(day) * 86_400_000
            let before = DispatchTime.now()
            let store = try await OfflineStore.open(
                at: log, account: Self.user, compaction: nil,
                environment: LogEnvironment(now: { clock.milliseconds }))
            report.openMilliseconds.append(
                Double(DispatchTime.now().uptimeNanoseconds - before.uptimeNanoseconds) / 1e6)
            // Opening the store has removed the outdated cities.
            report.outdated += report.cached - store.view(CitiesView.self).offlineCount
            try await runDay(day, store, clock, &random, &report)
            try await store.close()
            report.measureDisk(of: log)
            if day % 30 == 29 {
                progress(
                    "day \(day + 1): \(report.events) events, log "
                        + "\(report.logBytes / 1_024) KB, files \(report.fileBytes / 1_024) KB, "
                        + "\(report.evicted) evicted, \(report.outdated) outdated")
            }
        }
        return report
    }

    private func runDay(
        _ day: Int, _ store: OfflineStore, _ clock: VirtualClock, _ random: inout SeededRandom,
        _ report: inout Report
    ) async throws {
        let user = Self.user
        let cleanUp = try await store.cities.cleanUp(for: user)
        guard cleanUp.outdated.isEmpty else {
            throw YearError(
                "day \(day): opening did not remove the outdated cities \(cleanUp.outdated)")
        }
        report.evicted += cleanUp.evicted.count
        _ = try await Replayer(
            store.events, transport: AcceptingServer(), credentials: NoCredentials()
        ).run(until: .whenNothingMoves)
        for _ in 0..<8 {
            clock.advance(by: .seconds(600))
            // A few cities are read often, most seldom.
            let share = Self.fraction(&random) * Self.fraction(&random)
            let city = "city-\(Int(share * Double(cities)))"
            try await readCity(city, day, store, &report)
            try await performUserAction(on: city, store, &random)
        }
        if day % 7 == 0 {
            try await store.preferences.update(for: user) {
                $0.showStaleDataWarning.toggle()
            }
        }
        report.events = await store.events.lastDurable.rawValue
        report.cached = store.view(CitiesView.self).offlineCount
        guard store.view(CitiesView.self).storageUsed <= 100 * 1_048_576 else {
            throw YearError("day \(day): the files exceed the storage limit")
        }
        // As in a background task at night.
        if day % 7 == 6 {
            let compaction = try await store.compact()
            report.compactions += compaction.segmentsRewritten > 0 ? 1 : 0
            report.freedBytes += max(0, compaction.bytesBefore - compaction.bytesAfter)
        }
    }

    /// Reads a city, and downloads it first if it is not cached.
    private func readCity(
        _ city: String, _ day: Int, _ store: OfflineStore, _ report: inout Report
    ) async throws {
        if store.view(CitiesView.self).offline(city) == nil {
            let citiesBefore = Set(store.view(CitiesView.self).offlineCities.map(\.cityId))
            let images = (0..<imagesPerCity).map { image(city, $0) }
            try await store.cities.cache(
                json: text(city, day), images: images, isExplicit: city == "city-0",
                for: Self.user)
            report.downloads += 1
            report.downloadedBytes += images.reduce(0) { $0 + $1.content.count }
            let citiesAfter = Set(store.view(CitiesView.self).offlineCities.map(\.cityId))
            report.evicted += citiesBefore.subtracting(citiesAfter).count
        }
        guard let (cached, data) = try await store.cities.read(city), data.id == city else {
            throw YearError("\(city) is not cached")
        }
        report.reads += 1
        for image in cached.images
        where try await store.files.read(image.file).count != image.size {
            throw YearError("the size of an image of \(city) is wrong")
        }
    }

    /// Performs a random action of a user on a city.
    private func performUserAction(
        on city: String, _ store: OfflineStore, _ random: inout SeededRandom
    ) async throws {
        let user = Self.user
        switch random.next() % 6 {
        case 0: try await store.cities.save(city, by: user)
        case 1:
            let note = try await store.notes.add("A note about \(city)", city: city, by: user)
            try await store.notes.update(note.id, "A better note about \(city)", by: user)
        case 2:
            if let note = store.notes(in: city).current.first {
                try await store.notes.delete(note.id, by: user)
            }
        default:
            try await store.progress.completeReview(
                UUID().uuidString.lowercased(), course: "spanish", by: user, itemsSeen: 20,
                itemsCorrect: Int(random.next() % 21))
        }
    }

    private static func fraction(_ random: inout SeededRandom) -> Double {
        Double(random.next() >> 11) * 0x1p-53
    }

    // MARK: Downloaded data

    private func image(_ city: String, _ number: Int) -> CityImage {
        var random = SeededRandom(seed: city.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
        for _ in 0..<number { _ = random.next() }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(imageBytes)
        var generator = SeededRandom(seed: random.next())
        while bytes.count < imageBytes {
            withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) }
        }
        return CityImage(
            id: "\(city)-\(number)", url: "https://images.example/\(city)/\(number).jpg",
            kind: number == 0 ? .hero : .gallery, width: 1_024, height: 768, content: bytes)
    }

    private func text(_ city: String, _ day: Int) -> [UInt8] {
        let words = ["sea", "market", "old", "tower", "harbour", "quiet", "street", "coffee"]
        var random = SeededRandom(seed: city.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
        var text = "As of day \(day):"
        while text.utf8.count < textBytes {
            text += " " + words[Int(random.next() % UInt64(words.count))]
        }
        return CityData(
            id: city, name: city, country: "Portugal", description: text, costOfLiving: 1_800,
            internetSpeed: 100, safetyRating: 8, climate: "mild"
        ).json
    }
}

/// The error of a simulation with a wrong result.
package struct YearError: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

extension YearOfUse.Report {
    fileprivate mutating func measureDisk(of log: URL) {
        func bytes(_ folder: String, _ suffix: String) -> Int {
            let folder = log.appending(path: folder).path
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return names.filter { $0.hasSuffix(suffix) }.reduce(0) { sum, name in
                let attributes = try? FileManager.default.attributesOfItem(
                    atPath: folder + "/" + name)
                return sum + ((attributes?[.size] as? Int) ?? 0)
            }
        }
        logBytes = bytes("", ".lz4")
        logBytesMax = max(logBytesMax, logBytes)
        checkpointBytes = bytes("checkpoints", "")
        fileBytes = bytes("files", "")
        fileBytesMax = max(fileBytesMax, fileBytes)
        var usage = rusage()
        #if canImport(Darwin)
            getrusage(RUSAGE_SELF, &usage)
            residentBytesMax = usage.ru_maxrss
        #else
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
            residentBytesMax = usage.ru_maxrss * 1_024
        #endif
    }
}

/// A server that accepts all events and stores none, so that the measured memory is the device's.
private struct AcceptingServer: Transport {
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        let events = try JSONSerialization.jsonObject(with: Data(batch)) as? [[String: Any]] ?? []
        let verdicts = events.map { ["id": $0["id"], "status": "applied"] }
        let body = try JSONSerialization.data(withJSONObject: ["verdicts": verdicts])
        return TransportReply(status: 200, body: Array(body))
    }
}
