// A city is downloaded by a process that is killed again and again: what is there in the end, what is
// left over, and how much was fetched in all. Spec/model/downloads.md, DL-15.

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization

/// Kills a downloading process so many times, and checks what the last life leaves.
package struct DownloadHistory: Sendable {
    /// How it is done.
    package struct Options: Sendable {
        /// How often the process is killed.
        package var kills = 20
        /// Images of the city.
        package var images = 8
        /// How fast the server sends each image.
        package var bytesPerSecond = 512 * 1_024
        /// What decides on sizes and moments.
        package var seed = Property.defaultSeed
        /// Whether the server and its manifest say checksums.
        package var tellsChecksums = true

        package init() {}
    }

    private let command: URL
    private let arguments: [String]
    private let options: Options
    private let say: @Sendable (String) -> Void

    /// - Parameters:
    ///   - command: what runs a `DownloadChild`, with the folder, the address and the city behind
    ///     its own arguments.
    ///   - arguments: its own arguments.
    ///   - say: hears of progress.
    package init(
        _ command: URL, _ arguments: [String], options: Options,
        say: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.command = command
        self.arguments = arguments
        self.options = options
        self.say = say
    }

    /// Lives through it.
    ///
    /// - Returns: what was counted.
    /// - Throws: `DownloadHistoryFailure`.
    package func run() async throws -> [String: Int] {
        let place = try TemporaryFolder()
        defer { place.remove() }
        let folder = place.url
        var choices = Choices(seed: options.seed)
        // So much that each life has its share of the way.
        let share = options.bytesPerSecond * 4 * options.kills * 6 / 10
        let sizes = (0..<options.images).map { _ in
            choices.int(in: share / options.images * 3 / 4...share / options.images * 5 / 4)
        }
        var city = SampleCity(sizes: sizes, seed: options.seed)
        city.tellsChecksums = options.tellsChecksums
        let sample = city
        let rate = options.bytesPerSecond
        // Of each image so much in a life that it cannot be there before the last one.
        let portion = sizes.map { $0 * 2 / options.kills + 1 }.max() ?? 1
        let isLast = Mutex(false)
        let server = try ImageServer { request in
            var reply = sample.reply(to: request) ?? ImageServer.Reply(404)
            reply.bytesPerSecond = rate
            if reply.body.count > portion, sample.image(request.path) != nil,
                !isLast.withLock({ $0 })
            {
                reply.stallAfter = portion
            }
            return reply
        }
        let (moments, kills) = (choices, options.kills)
        // On a thread of its own: on a busy machine a task may not run for longer than a life lasts.
        let peak = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try live(kills, moments, folder, server, sample) {
                            isLast.withLock { $0 = true }
                        }
                    })
            }
        }
        try await check(folder, sample)
        let sent = Self.imageBytes(server)
        let size = sizes.reduce(0, +)
        return [
            "kills": kills, "images": sizes.count, "bytes of the city": size,
            "bytes transferred": sent, "bytes transferred in vain": sent - size,
            "peak memory in KiB": peak,
            "requests for images": server.requests.count { $0.path.hasPrefix("/images/") },
        ]
    }

    /// All lives, one after the other.
    ///
    /// - Parameter beginLast: called before the last one.
    /// - Returns: the most memory that one of them had, in KiB.
    private func live(
        _ kills: Int, _ choices: Choices, _ folder: URL, _ server: ImageServer,
        _ city: SampleCity, beginLast: () -> Void
    ) throws -> Int {
        var choices = choices
        var peak = 0
        for kill in 1...kills {
            let process = try start(folder, server, city)
            // Mostly while it fetches; sometimes as it begins.
            if !choices.bool(oneIn: 4) {
                let before = Self.imageBytes(server)
                while process.isRunning, Self.imageBytes(server) == before { usleep(2_000) }
            }
            usleep(UInt32(choices.int(in: 0...900)) * 1_000)
            guard process.isRunning else {
                throw DownloadHistoryFailure("life \(kill) ended by itself")
            }
            peak = max(peak, Self.memory(process))
            Foundation.kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            say("killed \(kill) times, \(Self.imageBytes(server)) bytes sent")
        }
        beginLast()
        let process = try start(folder, server, city)
        while process.isRunning {
            usleep(20_000)
            peak = max(peak, Self.memory(process))
        }
        guard process.terminationStatus == 0 else {
            throw DownloadHistoryFailure("the last life ended with \(process.terminationStatus)")
        }
        return peak
    }

    private func start(
        _ folder: URL, _ server: ImageServer, _ city: SampleCity
    ) throws -> Process {
        let process = Process()
        process.executableURL = command
        process.arguments =
            arguments + [folder.appending(path: "log").path, server.base, city.id]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        return process
    }

    /// The most memory that a process has had so far, in KiB; 0 where the system does not tell.
    private static func memory(_ process: Process) -> Int {
        let path = "/proc/\(process.processIdentifier)/status"
        guard let status = try? String(contentsOfFile: path, encoding: .utf8) else { return 0 }
        return status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            .flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    private static func imageBytes(_ server: ImageServer) -> Int {
        server.sent.filter { $0.key.hasPrefix("/images/") }.values.reduce(0, +)
    }

    /// Everything is there, byte for byte, and nothing else.
    private func check(_ folder: URL, _ city: SampleCity) async throws {
        let store = try await OfflineStore.open(at: folder.appending(path: "log"))
        guard let cached = store.view(CitiesView.self).offline(city.id),
            cached.images.count == city.images.count
        else { throw DownloadHistoryFailure("the city is not there") }
        for (image, bytes) in zip(cached.images, city.images) {
            guard try await store.files.read(image.file) == bytes else {
                throw DownloadHistoryFailure("the image \(image.id) has other bytes")
            }
        }
        let downloads = store.view(DownloadsView.self)
        guard downloads.jobs.map(\.status) == [.completed] else {
            throw DownloadHistoryFailure("the jobs are \(downloads.jobs)")
        }
        let incoming = store.files.directory + "/incoming"
        let left = try FileManager.default.contentsOfDirectory(atPath: incoming)
            .filter { $0 != "lock" }
        guard left.isEmpty else { throw DownloadHistoryFailure("left over: \(left)") }
        let files = try FileManager.default.contentsOfDirectory(atPath: store.files.directory)
        guard files.count == Set(cached.images.map(\.file)).count + 1 else {
            throw DownloadHistoryFailure("left over among the files: \(files)")
        }
        try await store.close()
    }
}
