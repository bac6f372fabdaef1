// Real devices and a real server on faulty connections: stores on the file system, replayers over HTTP, a
// hostile proxy before each, and a server that is killed repeatedly. In the end the server must have every
// event once, and all devices must show the same. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A history of real devices and a real server.
public struct WireHistory: Sendable {
    /// The size of a history.
    public struct Options: Sendable {
        /// The number of devices of the account.
        public var devices = 3
        /// The number of events that the devices record together.
        public var events = 100_000
        /// The lowest number of kills of the server.
        public var kills = 20
        /// The lowest number of requests through the proxies.
        public var requests = 0
        /// The longest day of a device.
        public var dayMilliseconds = 3_000
        /// The lowest number of days in which a device records its events.
        public var days = 30
        /// The client's timeout.
        public var timeoutMilliseconds = 2_000
        /// The longest time between a start of the server and its kill. After `kills` kills it is ten times
        /// as long, so that slow machines make progress.
        public var lifeMilliseconds = 3_000
        /// The seed of faults and events.
        public var seed: UInt64 = 1

        /// Creates the default options.
        public init() {}

        var eventsADay: Int { max(1, events / devices / days) }
    }

    private let options: Options
    private let binary: URL
    private let progress: @Sendable (String) -> Void

    /// Creates a history.
    ///
    /// - Parameters:
    ///   - server: the built `syncserver`.
    ///   - options: the size of the history.
    ///   - progress: called with messages of progress.
    public init(
        server: URL, options: Options = Options(),
        progress: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        binary = server
        self.options = options
        self.progress = progress
    }

    /// Runs the history.
    ///
    /// - Returns: the counts by label.
    /// - Throws: `WireFailure` if events are lost, or devices do not show the same in the end.
    public func run() async throws -> [String: Int] {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let server = try WireServer(
            binary: binary, database: folder.appending("events.sqlite").path)
        try await server.start()
        do {
            let counts = try await run(in: folder.url, server)
            await server.stop()
            return counts
        } catch {
            await server.stop()
            throw error
        }
    }

    private func run(in folder: URL, _ server: WireServer) async throws -> [String: Int] {
        let begun = ContinuousClock.now
        var devices: [WireDevice] = []
        for name in 0..<options.devices {
            let count =
                options.events / options.devices
                + (name < options.events % options.devices ? 1 : 0)
            devices.append(
                try await WireDevice(
                    name, in: folder, server: server.port, events: count, options: options))
        }
        try await runWithFaults(devices, server)
        let calm = ContinuousClock.now
        progress("calm after \(Int((calm - begun) / .seconds(1))) s")
        try await syncUntilQuiet(devices)
        let check = try await WireCheck(reading: server.port)
        try await check.check(devices)
        var counts = ["server: events": check.count, "server: kills": await server.kills]
        for device in devices {
            counts.merge(await device.counts, uniquingKeysWith: +)
            counts.merge(device.proxy.counts, uniquingKeysWith: +)
            try await device.end()
        }
        counts["seconds in the storm"] = Int((calm - begun) / .seconds(1))
        counts["seconds"] = Int((ContinuousClock.now - begun) / .seconds(1))
        return counts
    }

    /// Lets the devices record and sync, and kills the server, until all events are recorded, and the
    /// options' numbers of kills and of requests are reached.
    private func runWithFaults(_ devices: [WireDevice], _ server: WireServer) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices {
                group.addTask {
                    while !Task.isCancelled {
                        let sent = devices.reduce(0) {
                            $0 + ($1.proxy.counts["proxy: requests"] ?? 0)
                        }
                        if await device.isDone, await server.kills >= options.kills,
                            sent >= options.requests
                        {
                            return
                        }
                        try await device.runDay()
                    }
                }
            }
            let killer = Task {
                var random = SeededRandom(seed: options.seed)
                while !Task.isCancelled {
                    let life = Int(random.next() % UInt64(options.lifeMilliseconds))
                    let isEnough = await server.kills >= options.kills
                    try await Task.sleep(for: .milliseconds(isEnough ? life * 10 : life))
                    await server.kill()
                    // For up to 300 ms no server listens.
                    try? await Task.sleep(for: .milliseconds(Int(random.next() % 300)))
                    try await server.start()
                    let kills = await server.kills
                    if kills % 10 == 0 { progress("\(kills) kills") }
                }
            }
            defer { killer.cancel() }
            try await group.waitForAll()
            killer.cancel()
            // If the server could not be started again, that is the failure to report.
            if case .failure(let error) = await killer.result, !(error is CancellationError) {
                throw error
            }
        }
        await server.stop()
        try await server.start()
    }

    /// Stops the faults, and syncs all devices until no events are pending and none are received, twice in a
    /// row.
    private func syncUntilQuiet(_ devices: [WireDevice]) async throws {
        for device in devices { device.proxy.calm() }
        for device in devices {
            while device.proxy.held > 0 { try await Task.sleep(for: .milliseconds(10)) }
        }
        var quietRounds = 0
        for round in 1...Self.roundsMax where quietRounds < 2 {
            var (pending, received) = (0, 0)
            for device in devices {
                let result = try await device.syncWithoutFaults()
                pending += result.pending
                received += result.received
            }
            progress("round \(round): \(pending) pending, \(received) received")
            quietRounds = pending == 0 && received == 0 ? quietRounds + 1 : 0
        }
    }

    private static let roundsMax = 20
}
