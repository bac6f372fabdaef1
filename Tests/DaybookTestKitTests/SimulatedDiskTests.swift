// The simulated disk. For each fault of the model there is a careless program that loses data by it, and a
// careful one that does not: a simulator that loses nothing would prove nothing. Spec/testing/testing.md.

import DaybookTestKit
import LogStorage
import Testing

/// A careful and a careless program, and a condition that must hold after a crash.
private struct Care: CustomTestStringConvertible {
    var testDescription: String
    var medium = Medium()
    /// The fault of a sync of both programs.
    var failedSync: FailedSync?
    var run: @Sendable (SimulatedFileSystem, _ isCareful: Bool) throws -> Void
    /// Whether the acknowledged data are there.
    var holds: @Sendable (SimulatedFileSystem) throws -> Bool

    static func bytes(_ value: UInt8, _ count: Int = 600) -> [UInt8] {
        [UInt8](repeating: value, count: count)
    }

    static func read(_ files: SimulatedFileSystem, _ path: String) throws -> [UInt8] {
        let file = try files.open(path, .read)
        return try file.read(at: 0, count: 1 << 20)
    }

    /// Creates a file whose bytes and name are durable.
    static func make(_ files: SimulatedFileSystem, _ path: String, _ bytes: [UInt8]) throws {
        let file = try files.open(path, .createNew)
        try file.write(bytes, at: 0)
        try file.sync()
        try files.syncDirectory("/")
    }

    /// Syncs again after a failure; the careful program writes again before.
    static func syncTwice(_ files: SimulatedFileSystem, _ isCareful: Bool) throws {
        let file = try files.open("/a", .createNew)
        try files.syncDirectory("/")
        try file.write(bytes(1), at: 0)
        do { try file.sync() } catch {
            if isCareful { try file.write(bytes(1), at: 0) }
            try file.sync()
        }
    }

    static let all: [Care] = [
        Care(testDescription: "bytes that were not synced") { files, isCareful in
            let file = try files.open("/a", .createNew)
            try files.syncDirectory("/")
            try file.write(bytes(1), at: 0)
            if isCareful { try file.sync() }
        } holds: {
            try read($0, "/a") == bytes(1)
        },
        Care(testDescription: "a name whose folder was not synced") { files, isCareful in
            let file = try files.open("/a", .createNew)
            try file.write(bytes(1), at: 0)
            try file.sync()
            if isCareful { try files.syncDirectory("/") }
        } holds: {
            (try? read($0, "/a")) == bytes(1)
        },
        Care(testDescription: "a rename whose folder was not synced") { files, isCareful in
            try make(files, "/a", bytes(1))
            try make(files, "/new", bytes(2))
            try files.rename("/new", to: "/a")
            if isCareful { try files.syncDirectory("/") }
        } holds: {
            (try? read($0, "/a")) == bytes(2)
        },
        Care(testDescription: "a rename of a file that was not synced") { files, isCareful in
            let file = try files.open("/new", .createNew)
            try file.write(bytes(1), at: 0)
            if isCareful { try file.sync() }
            try files.rename("/new", to: "/a")
            try files.syncDirectory("/")
        } holds: {
            try read($0, "/a") == bytes(1)
        },
        Care(testDescription: "a removal that overtakes the rename it waits for") {
            files, isCareful in
            try make(files, "/old", bytes(1))
            try make(files, "/new", bytes(2))
            try files.rename("/new", to: "/a")
            if isCareful { try files.syncDirectory("/") }
            try files.remove("/old")
        } holds: { files in
            (try? read(files, "/old")) == bytes(1) || (try? read(files, "/a")) == bytes(2)
        },
        Care(testDescription: "a size that is there before the bytes") { files, isCareful in
            try make(files, "/a", [])
            let file = try files.open("/a", .readWrite)
            try file.write(bytes(1), at: 0)
            if isCareful { try file.sync() }
        } holds: { files in
            try read(files, "/a") == bytes(1)
        },
        Care(testDescription: "a cut that is lost") { files, isCareful in
            try make(files, "/a", bytes(1))
            let file = try files.open("/a", .readWrite)
            try file.truncate(to: 10)
            if isCareful { try file.sync() }
        } holds: {
            try read($0, "/a").count == 10
        },
        Care(testDescription: "a sector that is written in place") { files, isCareful in
            try make(files, "/a", bytes(1, 100))
            if isCareful {
                try make(files, "/copy", bytes(1, 100))
            }
            try files.open("/a", .readWrite).write(bytes(2, 100), at: 0)
        } holds: { files in
            let isWhole = [bytes(1, 100), bytes(2, 100)].contains(try read(files, "/a"))
            return isWhole || (try? read(files, "/copy")) == bytes(1, 100)
        },
        Care(testDescription: "sectors that are written in another order") { files, isCareful in
            try make(files, "/a", bytes(0, 2_048))
            let file = try files.open("/a", .readWrite)
            try file.write([1], at: 0)
            if isCareful { try file.sync() }
            // A mark that the first write is complete.
            try file.write([1], at: 1_024)
        } holds: { files in
            let all = try read(files, "/a")
            return all[1_024] == 0 || all[0] == 1
        },
        Care(
            testDescription: "neighbours of a torn write",
            medium: Medium(hasPowersafeOverwrite: false)
        ) {
            files, isCareful in
            try make(files, "/a", bytes(1, 2_048))
            try files.open("/a", .readWrite).write([2], at: isCareful ? 1_024 : 200)
        } holds: {
            try read($0, "/a")[..<200] == bytes(1, 200)[...]
        },
        Care(
            testDescription: "a failed sync that a second one seems to mend",
            failedSync: .pagesLookClean
        ) { files, isCareful in
            try syncTwice(files, isCareful)
        } holds: {
            try read($0, "/a") == bytes(1)
        },
        Care(testDescription: "pages that revert after a failed sync", failedSync: .pagesRevert) {
            files, isCareful in
            try syncTwice(files, isCareful)
        } holds: {
            try read($0, "/a") == bytes(1)
        },
    ]
}

@Suite struct SimulatedDiskTests {
    private func broken(_ care: Care, isCareful: Bool) throws -> Int {
        let files = SimulatedFileSystem(medium: care.medium)
        if let how = care.failedSync { files.failSync(from: 0, how) }
        files.record()
        try care.run(files, isCareful)
        var broken = 0
        let end = try #require(files.crashPoints.last)
        let isAll = try end.forEachState { machine, _ in
            if try !care.holds(machine) { broken += 1 }
        }
        #expect(isAll)
        return broken
    }

    @Test("a careless program loses data by this, and a careful one does not", arguments: Care.all)
    private func carelessness(_ care: Care) throws {
        #expect(try broken(care, isCareful: false) > 0)
        #expect(try broken(care, isCareful: true) == 0)
    }

    @Test func `nothing is safe on a medium whose syncs lie`() throws {
        let files = SimulatedFileSystem(medium: Medium(honoursSync: false))
        files.record()
        try Care.make(files, "/a", Care.bytes(1))
        var lost = 0
        try #require(files.crashPoints.last).forEachState { machine, _ in
            if (try? Care.read(machine, "/a")) != Care.bytes(1) { lost += 1 }
        }
        #expect(lost > 0)
    }

    @Test func `a write that fails half-way has written half`() throws {
        let files = SimulatedFileSystem()
        let file = try files.open("/a", .createNew)
        files.fail(call: files.calls, .shortWrite(.noSpace))
        let error = #expect(throws: FileError.self) { try file.write(Care.bytes(1), at: 0) }
        #expect(error?.code == .noSpace)
        #expect(try Care.read(files, "/a") == Care.bytes(1, 300))
        try file.write(Care.bytes(2), at: 0)
        #expect(try Care.read(files, "/a") == Care.bytes(2))
    }

    @Test func `a permanent fault lasts until it is ended`() throws {
        let files = SimulatedFileSystem()
        let file = try files.open("/a", .createNew)
        files.fail(call: files.calls + 1, .error(.io), forGood: true)
        try file.write([1], at: 0)
        for _ in 0..<3 { #expect(throws: FileError.self) { try file.sync() } }
        files.endFaults()
        try file.sync()
        #expect(files.faultsHit == 3)
    }

    @Test func `a random power cut leaves one of the states of an exhaustive search`() throws {
        try Property.check("random states are searched states", runs: 200) { choices in
            let files = SimulatedFileSystem(medium: Medium(sectorBytes: 4))
            files.record()
            let file = try files.open("/a", .createNew)
            for _ in 0..<choices.int(in: 0...3) {
                try file.write([choices.bool() ? 1 : 2], at: choices.int(in: 0...9))
            }
            if choices.bool() { try file.truncate(to: choices.int(in: 0...4)) }
            if choices.bool() { try files.syncDirectory("/") }
            let point = try #require(files.crashPoints.last)
            var states: Set<[UInt8]?> = []
            point.forEachState { machine, _ in states.insert(try? Care.read(machine, "/a")) }
            // A damaged single byte equals one of the versions, zero or garbage.
            let found = try? Care.read(point.afterPowerCut(&choices), "/a")
            let counts = choices.counts
            guard counts["sector of garbage"] == nil, counts["sector of zeros"] == nil,
                !counts.keys.contains(where: { $0.hasPrefix("torn") })
            else { return }
            choices.count("compared")
            try #require(states.contains(found), "\(String(describing: found))")
        }
    }

    @Test func `equal programs have equal traces, others have others`() throws {
        func trace(_ value: UInt8) throws -> UInt64 {
            let files = SimulatedFileSystem()
            try Care.make(files, "/a", Care.bytes(value))
            return files.traceHash
        }
        #expect(try trace(1) == trace(1))
        #expect(try trace(1) != trace(2))
    }
}
