// The fixture of most download tests: a store, a server, and a manager between them.

import DaybookTestKit
import DownloadHistories
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// A network whose path the tests set.
final class TestNetwork: Reachability {
    private struct State {
        var path: NetworkPath
        var listeners: [AsyncStream<NetworkPath>.Continuation] = []
    }

    private let state: Mutex<State>

    init(_ path: NetworkPath = .wifi) { state = Mutex(State(path: path)) }

    var paths: AsyncStream<NetworkPath> {
        AsyncStream { continuation in
            state.withLock { state in
                state.listeners.append(continuation)
                continuation.yield(state.path)
            }
        }
    }

    func set(_ path: NetworkPath) {
        state.withLock { state in
            state.path = path
            for listener in state.listeners { listener.yield(path) }
        }
    }
}

/// A clock whose waits end at once and are recorded.
final class Waits: Sendable {
    private let seen = Mutex<[Duration]>([])
    var all: [Duration] { seen.withLock { $0 } }

    /// Waits of at least this length do not end.
    let endless: Duration

    init(endless: Duration = .seconds(600)) { self.endless = endless }

    func wait(_ duration: Duration) async throws {
        seen.withLock { $0.append(duration) }
        guard duration >= endless else { return await Task.yield() }
        // Until it is cancelled.
        try await Task.sleep(for: .seconds(3_600))
    }
}

/// Thrown when a job fails unexpectedly.
struct Failed: Error, CustomStringConvertible {
    let description: String
}

/// The fixture of a download.
struct Bench {
    var store: OfflineStore
    var manager: DownloadManager
    let server: ImageServer
    let network: TestNetwork
    let waits: Waits
    private var work: Task<Void, any Error>

    static let user = "ada"

    /// Opens a store and starts a manager.
    ///
    /// - Parameters:
    ///   - files: the store's file system.
    ///   - answer: the server's response to a request.
    init(
        _ files: any FileSystem = InMemoryFileSystem(), at folder: String = "/log",
        network: TestNetwork = TestNetwork(), waits: Waits = Waits(),
        credentials: any Credentials = NoCredentials(),
        clock: @escaping @Sendable () -> Int64 = LogEnvironment.systemTime,
        options change: (inout DownloadManager.Options) -> Void = { _ in },
        _ answer: @escaping @Sendable (ImageServer.Request) -> ImageServer.Reply
    ) async throws {
        try await self.init(
            files, at: folder, network: network, waits: waits, credentials: credentials,
            clock: clock, options: change, server: ImageServer(answer))
    }

    /// Opens a store and starts a manager, with an existing server.
    init(
        _ files: any FileSystem = InMemoryFileSystem(), at folder: String = "/log",
        network: TestNetwork = TestNetwork(), waits: Waits = Waits(),
        credentials: any Credentials = NoCredentials(),
        clock: @escaping @Sendable () -> Int64 = LogEnvironment.systemTime,
        options change: (inout DownloadManager.Options) -> Void = { _ in }, server: ImageServer
    ) async throws {
        self.network = network
        self.waits = waits
        self.server = server
        store = try await OfflineStore.open(
            at: URL(filePath: folder), environment: LogEnvironment(fileSystem: files, now: clock))
        var options = DownloadManager.Options()
        options.timeoutSeconds = 120
        options.progressInterval = .zero
        options.sleep = { try await waits.wait($0) }
        change(&options)
        manager = DownloadManager(
            store, base: try #require(URL(string: server.base)), credentials: credentials,
            user: Self.user, reachability: network, options: options)
        work = Task { [manager] in try await manager.run() }
    }

    /// Waits until a job is in a state.
    func expect(
        _ jobId: String, _ status: DownloadStatus, file: String = #fileID, line: Int = #line
    ) async throws {
        try await eventually(
            "status of \(jobId)", is: Optional(status), file: file, line: line
        ) { () async throws -> DownloadStatus? in
            let job = store.view(DownloadsView.self)[jobId]
            if status != .failed, let message = job?.errorMessage {
                throw Failed(description: "\(file):\(line): \(message)")
            }
            return job?.status
        }
    }

    /// Downloads a city to its end.
    @discardableResult
    func download(_ city: SampleCity, to status: DownloadStatus = .completed) async throws
        -> DownloadJob
    {
        let job = try await store.downloads.queue(city.id)
        try await expect(job.id, status)
        return try #require(store.view(DownloadsView.self)[job.id])
    }

    /// Downloads a city, and returns the reasons why the copy lacks images.
    func downloadIncomplete(_ city: SampleCity) async throws -> [String] {
        try await download(city)
        // Views are published one after the other: that of jobs may be ahead of that of cities.
        try await eventually("offline city", is: Optional(city.id)) {
            store.view(CitiesView.self).offline(city.id)?.cityId
        }
        return store.view(CitiesView.self).offline(city.id)?.missingImages.map(\.reason) ?? []
    }

    /// Checks that the images of a city are stored, byte for byte.
    func check(_ city: SampleCity) async throws {
        // Views are published one after the other: that of jobs may be ahead of that of cities.
        try await eventually("offline city", is: Optional(city.id)) {
            store.view(CitiesView.self).offline(city.id)?.cityId
        }
        let cached = try #require(store.view(CitiesView.self).offline(city.id))
        try #require(cached.images.count == city.images.count)
        for (image, bytes) in zip(cached.images, city.images) {
            #expect(try await store.files.read(image.file) == bytes)
            #expect(image.size == bytes.count)
        }
    }

    /// Stops the manager like the end of a process.
    func stop() async throws {
        work.cancel()
        try await work.value
    }

    /// Stops the manager and closes the store, and throws what failed in them.
    func close() async throws {
        try await stop()
        try await store.close()
    }
}
