// Downloads a city with a process that is killed repeatedly. Checks the images and the remaining files at the
// end, and counts the bytes that were transferred. Spec/model/downloads.md, DL-15.

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization

/// A download whose process is killed a number of times. The last process completes it.
package struct DownloadHistory: Sendable {
    /// The parameters of a history.
    package struct Options: Sendable {
        /// The number of kills.
        package var kills = 20
        /// The number of images of the city.
        package var images = 8
        /// The rate at which the server sends each image.
        package var bytesPerSecond = 512 * 1_024
        /// The seed of the sizes and the moments of kills.
        package var seed = Property.defaultSeed
        /// Whether the server and its manifest send checksums.
        package var includesChecksums = true

        package init() {}
    }

    private let command: URL
    private let arguments: [String]
    private let options: Options
    private let progress: @Sendable (String) -> Void

    /// - Parameters:
    ///   - command: the executable that runs a `DownloadChild`. It gets `arguments`, the folder, the address
    ///     and the city.
    ///   - arguments: the first arguments of the command.
    ///   - progress: called with messages of progress.
    package init(
        _ command: URL, _ arguments: [String], options: Options,
        progress: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.command = command
        self.arguments = arguments
        self.options = options
        self.progress = progress
    }

    /// Runs the history.
    ///
    /// - Returns: the counts by label.
    /// - Throws: `DownloadHistoryFailure`.
    package func run() async throws -> [String: Int] {
        let temporaryFolder = try TemporaryFolder()
        defer { temporaryFolder.remove() }
        let folder = temporaryFolder.url
        var choices = Choices(seed: options.seed)
        // So many bytes that every process downloads a part.
        let share = options.bytesPerSecond * 4 * options.kills * 6 / 10
        let sizes = (0..<options.images).map { _ in
            choices.int(in: share / options.images * 3 / 4...share / options.images * 5 / 4)
        }
        var city = SampleCity(sizes: sizes, seed: options.seed)
        city.includesChecksums = options.includesChecksums
        let sample = city
        let rate = options.bytesPerSecond
        // So few bytes of each image for a process that no image is complete before the last process.
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
        // On a separate thread: on a busy machine a task may be delayed for longer than a process should run.
        let peak = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try runProcesses(kills, moments, folder, server, sample) {
                            isLast.withLock { $0 = true }
                        }
                    })
            }
        }
        try await checkStore(folder, sample)
        let sent = Self.imageBytes(server)
        let size = sizes.reduce(0, +)
        return [
            "kills": kills, "images": sizes.count, "bytes of the city": size,
            "bytes transferred": sent, "bytes transferred in vain": sent - size,
            "peak memory in KiB": peak,
            "requests for images": server.requests.count { $0.path.hasPrefix("/images/") },
        ]
    }

    /// Runs all processes, one after the other.
    ///
    /// - Parameter beginLast: called before the last one.
    /// - Returns: the highest peak memory of a process, in KiB.
    private func runProcesses(
        _ kills: Int, _ choices: Choices, _ folder: URL, _ server: ImageServer,
        _ city: SampleCity, beginLast: () -> Void
    ) throws -> Int {
        var choices = choices
        var peak = 0
        for kill in 1...kills {
            let process = try start(folder, server, city)
            // Most kills happen while it downloads, some while it starts.
            if !choices.bool(oneIn: 4) {
                let before = Self.imageBytes(server)
                while process.isRunning, Self.imageBytes(server) == before { usleep(2_000) }
            }
            usleep(UInt32(choices.int(in: 0...900)) * 1_000)
            guard process.isRunning else {
                throw DownloadHistoryFailure("process \(kill) exited before it was killed")
            }
            peak = max(peak, Self.peakMemory(of: process))
            Foundation.kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            progress("killed \(kill) times, \(Self.imageBytes(server)) bytes sent")
        }
        beginLast()
        let process = try start(folder, server, city)
        while process.isRunning {
            usleep(20_000)
            peak = max(peak, Self.peakMemory(of: process))
        }
        guard process.terminationStatus == 0 else {
            throw DownloadHistoryFailure(
                "the last process exited with \(process.terminationStatus)")
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

    /// The peak memory of a process so far, in KiB; 0 where the system does not report it.
    private static func peakMemory(of process: Process) -> Int {
        let path = "/proc/\(process.processIdentifier)/status"
        guard let status = try? String(contentsOfFile: path, encoding: .utf8) else { return 0 }
        return status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            .flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    private static func imageBytes(_ server: ImageServer) -> Int {
        server.sent.filter { $0.key.hasPrefix("/images/") }.values.reduce(0, +)
    }

    /// Checks that the store has every image byte for byte, and no other files.
    private func checkStore(_ folder: URL, _ city: SampleCity) async throws {
        let store = try await OfflineStore.open(at: folder.appending(path: "log"))
        guard let cached = store.view(CitiesView.self).offline(city.id),
            cached.images.count == city.images.count
        else { throw DownloadHistoryFailure("the city is not cached with all its images") }
        for (image, bytes) in zip(cached.images, city.images) {
            guard try await store.files.read(image.file) == bytes else {
                throw DownloadHistoryFailure("the bytes of the image \(image.id) are wrong")
            }
        }
        let downloads = store.view(DownloadsView.self)
        guard downloads.jobs.map(\.status) == [.completed] else {
            throw DownloadHistoryFailure("expected one completed job, found \(downloads.jobs)")
        }
        let incoming = store.files.directory + "/incoming"
        let remaining = try FileManager.default.contentsOfDirectory(atPath: incoming)
            .filter { $0 != "lock" }
        guard remaining.isEmpty else {
            throw DownloadHistoryFailure("\(incoming) still contains \(remaining)")
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: store.files.directory)
        guard files.count == Set(cached.images.map(\.file)).count + 1 else {
            throw DownloadHistoryFailure("the store has files that no image names: \(files)")
        }
        try await store.close()
    }
}
