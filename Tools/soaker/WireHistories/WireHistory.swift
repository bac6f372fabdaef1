// Real devices, a real server, and a wire on which everything goes wrong: stores on the file system,
// replayers over HTTP, a proxy before each, and a server that is killed all the time. In the end the
// server has everything once, and all devices show the same. Called by the tests in small and by long
// runs. Spec/protocol/sync-simulation.md.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A history on the wire.
public struct WireHistory: Sendable {
    /// How big it is.
    public struct Options: Sendable {
        /// Devices of the one account.
        public var devices = 3
        /// Events that they record together.
        public var events = 100_000
        /// How often the server is killed at least.
        public var kills = 20
        /// How many requests go through the proxies at least.
        public var requests = 0
        /// How long a day of a device is at most.
        public var dayMilliseconds = 3_000
        /// In how many days a device records its events at least.
        public var days = 30
        /// The client's time-out.
        public var timeoutMilliseconds = 2_000
        /// How long a life of the server is at most, until it has been killed often enough; then ten
        /// times as long, so that slow machines get on.
        public var lifeMilliseconds = 3_000
        /// What decides on faults and events.
        public var seed: UInt64 = 1

        /// The usual.
        public init() {}

        var eventsADay: Int { max(1, events / devices / days) }
    }

    private let options: Options
    private let binary: URL
    private let say: @Sendable (String) -> Void

    /// Creates a history.
    ///
    /// - Parameters:
    ///   - server: the built `syncserver`.
    ///   - options: how big it is.
    ///   - say: is told how it goes, now and then.
    public init(
        server: URL, options: Options = Options(),
        say: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        binary = server
        self.options = options
        self.say = say
    }

    /// Lives through it.
    ///
    /// - Returns: what happened, by name.
    /// - Throws: `WireFailure` where something is lost or devices do not come to show the same.
    public func run() async throws -> [String: Int] {
        let place = try TemporaryFolder()
        defer { place.remove() }
        let server = try WireServer(
            binary: binary, database: place.appending("events.sqlite").path)
        try await server.start()
        do {
            let counts = try await run(in: place.url, server)
            await server.stop()
            return counts
        } catch {
            await server.stop()
            throw error
        }
    }

    private func run(in place: URL, _ server: WireServer) async throws -> [String: Int] {
        let begun = ContinuousClock.now
        var devices: [WireDevice] = []
        for name in 0..<options.devices {
            let count =
                options.events / options.devices
                + (name < options.events % options.devices ? 1 : 0)
            devices.append(
                try await WireDevice(
                    name, in: place, server: server.port, events: count, options: options))
        }
        try await storm(devices, server)
        let calm = ContinuousClock.now
        say("calm after \(Int((calm - begun) / .seconds(1))) s")
        try await settle(devices)
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

    /// Devices record and sync, and the server dies, until there is nothing more to record, it has
    /// died often enough, and enough was sent.
    private func storm(_ devices: [WireDevice], _ server: WireServer) async throws {
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
                        try await device.day()
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
                    // Sometimes it is gone for a while.
                    try? await Task.sleep(for: .milliseconds(Int(random.next() % 300)))
                    try await server.start()
                    let kills = await server.kills
                    if kills % 10 == 0 { say("\(kills) kills") }
                }
            }
            defer { killer.cancel() }
            try await group.waitForAll()
            killer.cancel()
            // A server that could not be started again is a failure of its own.
            if case .failure(let error) = await killer.result, !(error is CancellationError) {
                throw error
            }
        }
        await server.stop()
        try await server.start()
    }

    /// Faults stop; everybody syncs until nothing is left and nothing new comes.
    private func settle(_ devices: [WireDevice]) async throws {
        for device in devices { device.proxy.calm() }
        for device in devices {
            while device.proxy.held > 0 { try await Task.sleep(for: .milliseconds(10)) }
        }
        var quiet = 0
        for round in 1...Self.roundsMax where quiet < 2 {
            var (waiting, received) = (0, 0)
            for device in devices {
                let result = try await device.settle()
                waiting += result.waiting
                received += result.received
            }
            say("round \(round): \(waiting) left, \(received) received")
            quiet = waiting == 0 && received == 0 ? quiet + 1 : 0
        }
    }

    private static let roundsMax = 20
}
