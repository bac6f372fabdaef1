// Companions beside everything else that happens to a log: erasure, compaction, checkpoints, repair, migrations,
// and processes that change their spools. Spec/format/companions.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage
import Synchronization
import Testing

@Suite struct CompanionLifeTests {
    private let files = SimulatedFileSystem()

    /// Calls `body` once for each call of an operation, with a file system that interrupts that call.
    ///
    /// - Parameter body: gets a copy of the disk and runs the operation; returns after it.
    private func atEachCall(
        _ body: (_ disk: SimulatedFileSystem, _ arm: Arming) async throws -> Void
    ) async throws {
        for call in 0... {
            let arming = Arming(call: call)
            try await body(files.afterKill(), arming)
            if !arming.isReached.withLock({ $0 }) { return #expect(call > 10) }
        }
    }

    /// The call to interrupt.
    private final class Arming: Sendable {
        let call: Int
        let isReached = Mutex(false)
        init(call: Int) { self.call = call }

        func interrupt(
            _ system: InterruptedFileSystem, _ other: @escaping @Sendable () async throws -> Void
        ) {
            system.arm(interruptAt: call, killAt: nil) {
                self.isReached.withLock { $0 = true }
                do { try await other() } catch { Issue.record(error) }
            }
        }
    }

    @Test(.verifies("COMP-7"))
    func `events of a process keep their order, though it changes its spool while the owner reads`()
        async throws
    {
        // The first call at which the process has the lock of its spool.
        var stop = 0
        while try await moves(stop: stop, at: nil) != .two { stop += 1 }
        for call in 0... {
            guard try await moves(stop: stop, at: call) == .two else {
                return #expect(call > 10)
            }
        }
    }

    /// How many spools there are when a process is stopped and another one has appended; none if the owner has made
    /// no call to interrupt.
    private enum Spools { case none, one, two }

    /// A process is stopped before a call of its append, and another one with its name appends. While the owner absorbs,
    /// the process continues and appends once more. Checks that its events are recorded in its order.
    private func moves(stop: Int, at call: Int?) async throws -> Spools {
        let disk = SimulatedFileSystem()
        let (process, system) = (InterruptedFileSystem(disk), InterruptedFileSystem(disk))
        let owner = try await HikeLog.write(system)
        let (moving, other) = (
            try await HikeLog.companion(process), try await HikeLog.companion(disk)
        )
        try await moving.append(Hike(path: "lake"))
        let (stopped, stops) = AsyncStream.makeStream(of: Void.self)
        let (resumed, resumes) = AsyncStream.makeStream(of: Void.self)
        process.arm(interruptAt: stop, killAt: nil) {
            stops.finish()
            for await _ in resumed {}
        }
        let first = Task {
            defer { stops.finish() }
            try await moving.append(Hike(path: "first"))
        }
        for await _ in stopped {}
        try await other.append(Hike(path: "sea"))
        let spools: Spools = try HikeLog.spools(disk).count == 2 ? .two : .one
        let isReached = Mutex(call == nil)
        if let call {
            system.arm(interruptAt: call, killAt: nil) {
                isReached.withLock { $0 = true }
                resumes.finish()
                do {
                    try await first.value
                    try await moving.append(Hike(path: "second"))
                } catch { Issue.record(error) }
            }
            try await owner.absorbCompanions()
        }
        system.disarm()
        resumes.finish()
        try await first.value
        try await owner.absorbCompanions()
        var paths: [String] = []
        try LogReader("/log", fileSystem: disk).forEachEvent(catalogue: owner.catalogue) {
            paths.append($0.subject ?? "")
            return true
        }
        let order = paths.filter { ["first", "second"].contains($0) }
        #expect(order.first == "first" && order.count <= 2, "\(paths) at \(call ?? -1)")
        try await owner.close()
        return isReached.withLock { $0 } ? spools : .none
    }

    @Test(.verifies("COMP-6", "COMP-15"))
    func `an extension of the old version opens and appends at any call while the app migrates`()
        async throws
    {
        let before = try await HikeLog.write(files)
        try await before.appendHikes(50)
        try await before.checkpoint()
        try await before.close()
        try await atEachCall { disk, arming in
            let system = InterruptedFileSystem(disk)
            arming.interrupt(system) {
                let old = try await HikeLog.companion(disk)
                try await old.append(Hike(path: "sea", kilometres: 2))
                #expect(await old.view(Hikes.self).kilometres == ["lake": 50, "sea": 2])
            }
            let migrated = try await EventStore.open(
                at: HikeLog.url, rules: HikeLog.rules + [.of(Ride.self, action: "RIDE")],
                views: [MetresHiked.self], compaction: nil,
                environment: LogEnvironment(fileSystem: system))
            try await migrated.append(Ride(path: "lake"))
            try await migrated.checkpoint()
            try await migrated.absorbCompanions()
            system.disarm()
            try await migrated.absorbCompanions()
            let isReached = arming.isReached.withLock { $0 }
            #expect(migrated.view(MetresHiked.self).total == (isReached ? 52_000 : 50_000))
            #expect(try HikeLog.spools(disk).isEmpty)
            let old = try await HikeLog.companion(disk)
            #expect(await old.view(Hikes.self).total == (isReached ? 52 : 50))
            try await migrated.close()
        }
    }

    @Test(.verifies("COMP-13"))
    func `a log is erased at any call of a companion's append, and no event outlives it`()
        async throws
    {
        let first = try await HikeLog.write(files)
        try await first.append(Hike(path: "lake"))
        try await first.close()
        // So that some appends find a spool.
        try await HikeLog.companion(files).append(Hike(path: "lake"))
        try await atEachCall { disk, arming in
            let system = InterruptedFileSystem(disk)
            let widget = try await HikeLog.companion(system)
            arming.interrupt(system) {
                let owner = try await HikeLog.write(disk)
                try await owner.erase(discardingUnsynced: true)
            }
            do {
                try await widget.append(Hike(path: "sea"))
            } catch let error as LogError {
                #expect(error.code == .noSuchLog, "\(error)")
            }
            system.disarm()
            guard arming.isReached.withLock({ $0 }) else { return }
            let next = try await HikeLog.write(disk)
            try await next.absorbCompanions()
            #expect(next.view(Hikes.self).total == 0)
            #expect(try HikeLog.spools(disk).isEmpty)
            await #expect(throws: LogError.self) { try await widget.append(Hike(path: "sea")) }
            try await next.close()
        }
    }

    @Test(.verifies("COMP-13", "COMP-17"))
    func `while an erasure waits for the secret store, a companion records nothing`() async throws {
        let secrets = InMemorySecretStore()
        func open() async throws -> EventStore {
            try await EventStore.open(
                at: HikeLog.url, secrets: secrets, rules: HikeLog.rules, views: [Hikes.self],
                environment: LogEnvironment(fileSystem: files))
        }
        let owner = try await open()
        let widget = try await HikeLog.companion(files)
        try await widget.append(Hike(path: "lake"))
        secrets.fail(
            with: SecretStoreError(.locked, location: "keychain", "the device is locked"))
        await #expect(throws: SecretStoreError.self) {
            try await owner.erase(discardingUnsynced: true)
        }
        await #expect {
            try await widget.append(Hike(path: "lake"))
        } throws: { ($0 as? LogError)?.code == .noSuchLog }
        await #expect(throws: LogError.self) { _ = try await HikeLog.companion(files) }
        secrets.fail(with: nil)
        // Finishes the erasure.
        let next = try await open()
        #expect(next.view(Hikes.self).total == 0)
        #expect(try HikeLog.spools(files).isEmpty)
        try await next.close()
    }

    @Test(.verifies("COMP-15"))
    func `compaction and checkpoints leave spools alone, and know what they have removed`()
        async throws
    {
        let catalogue = EventCatalogue([.of(ValueSet.self)])
        let environment = LogEnvironment(fileSystem: files)
        let owner = try await EventStore.open(
            at: "/log", catalogue: catalogue, views: [Values.self], environment: environment)
        func companion() async throws -> CompanionStore {
            try await CompanionStore.open(
                at: "/log", name: "widget", catalogue: catalogue, views: [Values.self],
                environment: environment)
        }
        let widget = try await companion()
        let old = try EventDraft(ValueSet(key: "a", value: "old"))
        try await widget.append(old)
        // As a crash between the owner's commit and the deletion of the spool leaves it.
        let kept = files.afterKill()
        try await owner.absorbCompanions()
        for value in ["newer", "newest"] {
            try await owner.append(ValueSet(key: "a", value: value))
        }
        try await widget.append(ValueSet(key: "b", value: "waiting"))
        try owner.log.roll()
        #expect(try await owner.compact().removed > 0)
        try await owner.checkpoint()
        #expect(try HikeLog.spools(files).map(\.backlog?.events) == [1])
        try await widget.refresh()
        for reader in [widget, try await companion()] {
            let values = await reader.view(Values.self)
            #expect(values.registers["a"]?.value == "newest")
            #expect(values.registers["b"]?.value == "waiting")
        }
        let spool = try #require(try HikeLog.spools(kept).first?.name)
        for name in try kept.list("/log/companions/" + spool) {
            let path = "/log/companions/\(spool)/\(name)"
            let file = try kept.open(path, .read)
            let bytes = try file.read(at: 0, count: try file.size())
            try files.createDirectoryIfMissing("/log/companions/" + spool)
            try files.open(path, .createIfMissing).write(bytes, at: 0)
        }
        let report = try await owner.absorbCompanions()
        #expect(report.known == 1 && report.absorbed == 1)
        #expect(owner.view(Values.self).registers["a"]?.value == "newest")
        #expect(try await !companion().append(old).isNew)
        try await owner.close()
    }

    @Test(.verifies("COMP-16"))
    func `repair of the main log leaves spools alone, and they are absorbed after it`() async throws
    {
        let owner = try await HikeLog.write(files)
        try await owner.appendHikes(300)
        try await owner.close()
        try await HikeLog.companion(files).append(Hike(path: "sea"))
        let spools = try HikeLog.spools(files)
        let file = try files.open("/log/00000000000000000001.lz4", .readWrite)
        try file.write([0xFF, 0xFF, 0xFF], at: try file.size() / 2)
        let environment = LogEnvironment(fileSystem: files)
        let report = try LogRepair("/log", environment: environment).repair()
        #expect(!report.lost.isEmpty)
        #expect(try HikeLog.spools(files) == spools)
        let repaired = try await HikeLog.write(files)
        #expect(try await repaired.absorbCompanions().absorbed == 1)
        #expect(repaired.view(Hikes.self).kilometres["sea"] == 1)
        try await repaired.close()
    }
}

/// A type that the app's new version has.
private struct Ride: EventPayload, Codable {
    static let type = "com.example.ride"
    var path: String
}

/// The view of the app's new version: the same name, another version and another state.
private struct MetresHiked: Projection, Codable {
    static let name = Hikes.name
    static let version = 2
    private(set) var total = 0

    mutating func fold(_ event: Event) {
        guard let hike = try? event.payload(as: Hike.self) else { return }
        total += hike.kilometres * 1_000
    }
}
