// Short runs of the searches of DaybookTestKit; `Tools/soak` runs them for any length of time.
// Spec/testing/testing.md.

import DaybookTestKit
import TestSupport
import Testing

@Suite struct CrashSearchTests {
    @Test(.verifies("REC-1", "REC-4", "REC-9", "CHK-3"))
    func `every single operation survives every crash, and crashes within crashes`() async throws {
        var counts: [String: Int] = [:]
        for workload in Workload.all(upTo: 1) {
            let files = SimulatedFileSystem()
            let run = await workload.run(on: files)
            try #require(run.failures.isEmpty, "\(workload): \(run.failures)")
            var search = CrashSearch(
                scope: CrashPoint.Scope(combinationsMax: 16, samples: 4), nestedOneIn: 48)
            try search.explore(run, files.crashPoints)
            counts.merge(search.counts, uniquingKeysWith: +)
        }
        for label in ["double crashes", "triple crashes", "process kills", "recoveries worked on"] {
            #expect(counts[label] ?? 0 > 0, "\(label) never happened")
        }
    }

    @Test(.verifies("REC-1", "CMP-24"))
    func `random workloads survive crashes anywhere`() async throws {
        try await Property.check(
            "crashes are survived", runs: 4,
            covering: ["double crashes", "triple crashes", "crash points with all combinations"]
        ) { choices in
            let workload = Workload.random(&choices)
            choices.note("\(workload)")
            let files = SimulatedFileSystem(
                medium: Medium(sectorBytes: choices.bool() ? 4_096 : 512))
            let run = await workload.run(on: files)
            try #require(run.failures.isEmpty, "\(run.failures)")
            var search = CrashSearch(
                scope: CrashPoint.Scope(combinationsMax: 16, samples: 4), nestedOneIn: 16,
                seed: choices.bits())
            try search.explore(run, files.crashPoints)
            for (label, number) in search.counts { choices.count(label, by: number) }
        }
    }

    /// Explores a workload that `Tools/soak crashes` has found.
    private func explore(_ workload: Workload, seed: UInt64) async throws {
        let files = SimulatedFileSystem()
        let run = await workload.run(on: files)
        var search = CrashSearch(
            scope: CrashPoint.Scope(combinationsMax: 256, samples: 48), nestedOneIn: 4,
            workedOnOneIn: 32, seed: seed)
        try search.explore(run, files.crashPoints)
        #expect(search.counts["triple crashes"] ?? 0 > 0)
    }

    @Test(.verifies("REC-9"))
    func `a power cut that leaves the copy of a commit under both its names does not lose it`()
        async throws
    {
        // The copy was lost in the third recovery in a row.
        try await explore(
            Workload(
                .filled, [.checkpoint, .append, .append, .batch, .reopen, .append, .roll, .reopen]),
            seed: 17_552_356_562_393_253_256)
    }

    /// The possible states of the disk after a power cut during the opening of a log.
    private func cuts(
        opening files: SimulatedFileSystem, _ check: RecoveryCheck,
        where isWanted: (SimulatedFileSystem) throws -> Bool = { _ in true }
    ) throws -> [SimulatedFileSystem] {
        files.record()
        try check.recover(files)
        var worlds: [SimulatedFileSystem] = []
        for point in files.crashPoints {
            try point.forEachState { world, _ in if try isWanted(world) { worlds.append(world) } }
        }
        return worlds
    }

    @Test(.verifies("REC-9"))
    func `no three power cuts in a row lose a commit whose copy has two names`() async throws {
        let files = SimulatedFileSystem()
        let run = await Workload(.empty, [.append]).run(on: files)
        let check = RecoveryCheck(run, at: .max)
        /// The copies that recovery has created, as files.
        func copies(_ world: SimulatedFileSystem) throws -> [UInt64] {
            try world.list(Workload.directory).filter { $0.hasPrefix("rewrite") }.map {
                try world.open(Workload.directory + "/" + $0, .read).identity()
            }
        }
        var states = 0
        for first in try cuts(opening: files.afterKill(), check, where: { try !copies($0).isEmpty })
        {
            let second = try cuts(opening: first, check) {
                let copies = try copies($0)
                return copies.count == 2 && copies[0] == copies[1]
            }
            for world in second {
                for third in try cuts(opening: world, check) {
                    states += 1
                    try check.recover(third)
                }
            }
        }
        #expect(states > 1_000)
    }

    @Test(.verifies("REC-9", "CMP-24"))
    func `a copy made for a compacted segment is never written into the one it replaced`()
        async throws
    {
        // Killed before the new name was synced; the next opening's copy outlived a power cut that
        // brought the old file back.
        try await explore(
            Workload(.empty, [.append, .append, .batch, .reopen, .compact, .roll, .compact]),
            seed: 14_871_741_209_673_955_698)
    }

    @Test(.verifies("REC-1"))
    func `on a medium that breaks its promises, no event is invented`() async throws {
        for medium in [Medium(hasPowersafeOverwrite: false), Medium(honoursSync: false)] {
            let files = SimulatedFileSystem(medium: medium)
            let run = await Workload(.filled, [.append, .batch]).run(on: files)
            var search = CrashSearch(scope: CrashPoint.Scope(combinationsMax: 64, samples: 32))
            try search.explore(run, files.crashPoints)
            #expect(search.counts["damage noticed"] ?? 0 > 0)
        }
    }

    @Test(.verifies("REC-8"))
    func `after any failed call, no lost append was acknowledged`() async throws {
        var counts: [String: Int] = [:]
        for (index, workload) in Workload.all(upTo: 1).enumerated() {
            var search = FaultSearch()
            try await search.explore(workload, part: index, of: 24)
            counts.merge(search.counts, uniquingKeysWith: +)
        }
        for how in FailedSync.allCases {
            #expect(counts["failed sync, \(how.rawValue)"] ?? 0 > 0)
        }
        #expect(counts["faults for good"] ?? 0 > 50)
    }

    @Test(.verifies("REC-5", "REC-7"))
    func `damage to stored logs is noticed, harmless or a torn tail`() async throws {
        var counts: [String: Int] = [:]
        for (index, log) in try await StoredLog.corpus().enumerated() {
            var search = RotSearch()
            try search.explore(log, part: index, of: 997)
            counts.merge(search.counts, uniquingKeysWith: +)
        }
        for label in ["bits flipped", "sectors damaged", "files cut", "noticed", "harmless"] {
            #expect(counts[label] ?? 0 > 0, "\(label) never happened")
        }
    }
}
