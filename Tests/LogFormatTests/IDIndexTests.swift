// The id index finds every id, stays small, and never traps on damaged bytes.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@Suite(.verifies("SEG-6")) struct IDIndexTests {
    private func entries(_ ids: [UInt128], frames: Int, seed: UInt32) -> [IDIndexEntry] {
        ids.enumerated().map {
            IDIndexEntry(hash: IDIndex.hash($1, seed: seed), frame: $0 * frames / ids.count)
        }
    }

    @Test func `every id is found in its frame`() throws {
        try Property.check("ids", runs: 60) { choices in
            let count = choices.int(in: 0...3_000)
            let frames = choices.int(in: 1...max(1, count))
            let seed = UInt32(choices.next(below: 1 << 32))
            var random = SeededRandom(seed: choices.bits())
            let ids = (0..<count).map { _ in TestLines.id(&random) }
            let entries = entries(ids, frames: frames, seed: seed)
            let bytes = IDIndex.encode(entries, frameCount: frames, seed: seed)
            let index = try IDIndex(bytes)
            try #require(index.count == count)
            for (id, entry) in zip(ids, entries) {
                try #require(index.hash(id) == entry.hash)
                try #require(try index.frames(hash: entry.hash).contains(entry.frame))
            }
        }
    }

    @Test func `a filter names every index with an id, and few others`() throws {
        try Property.check("filter", runs: 60) { choices in
            let seed = UInt32(choices.next(below: 1 << 32))
            var random = SeededRandom(seed: choices.bits())
            let sets = choices.array(1...choices.element(of: [1, 2, 5, 64])) { choices in
                (0..<choices.int(in: 0...300)).map { _ in TestLines.id(&random) }
            }
            let indexes = try sets.map {
                try IDIndex(
                    IDIndex.encode(entries($0, frames: 7, seed: seed), frameCount: 7, seed: seed))
            }
            let filter = try IDFilter(indexes)
            for (number, ids) in sets.enumerated() {
                try #require(
                    ids.allSatisfy { filter.indexes(mayContain: $0) & 1 << UInt64(number) != 0 })
            }
            var others = 0
            for _ in 0..<1_000 {
                let found = filter.indexes(mayContain: TestLines.id(&random))
                try #require(sets.count == 64 || found < 1 << UInt64(sets.count))
                others += found.nonzeroBitCount
            }
            // 3 % if the largest index has 8 bits for each id, the least.
            try #require(others < 60 * sets.count)
        }
    }

    @Test func `equal hashes name every frame, across fences too, and others none`() throws {
        try Property.check("equal hashes", runs: 60) { choices in
            let frames = choices.int(in: 1...700)
            let entries = choices.array(0...600) { choices in
                IDIndexEntry(
                    hash: choices.element(of: [0, 1, 77, 0x8000_0000, .max - 1, .max]),
                    frame: choices.int(in: 0...frames - 1))
            }
            let index = try IDIndex(IDIndex.encode(entries, frameCount: frames, seed: 0))
            for hash: UInt32 in [0, 1, 2, 77, 78, 0x8000_0000, .max - 1, .max] {
                let expected = Set(entries.filter { $0.hash == hash }.map(\.frame)).sorted()
                try #require(try index.frames(hash: hash) == expected)
            }
        }
    }

    @Test(arguments: [50_000, 120_000])
    func `an event costs about three and a half bytes`(count: Int) throws {
        var random = SeededRandom(seed: 9)
        let ids = (0..<count).map { _ in TestLines.id(&random) }
        // The number of frames of 128 KiB at 285 bytes per event.
        let frames = count * 285 / WriterSizes().framePlaintextBytes + 1
        let bytes = IDIndex.encode(
            entries(ids, frames: frames, seed: 1), frameCount: frames, seed: 1)
        #expect(Double(bytes.count) / Double(count) < 3.6)
    }

    @Test func `damaged or random bytes are refused or give some answer, but never trap`() throws {
        var random = SeededRandom(seed: 4)
        let ids = (0..<300).map { _ in TestLines.id(&random) }
        let good = IDIndex.encode(entries(ids, frames: 9, seed: 1), frameCount: 9, seed: 1)
        try Property.check("hostile index", runs: 3_000) { choices in
            var bytes = good
            if choices.bool(oneIn: 8) {
                bytes = choices.bytes(count: choices.int(in: 0...400))
            } else {
                for _ in 0..<choices.int(in: 1...6) {
                    let last = choices.bool() ? 40 : bytes.count - 1
                    bytes[choices.int(in: 0...last)] = UInt8(choices.int(in: 0...255))
                }
                bytes.removeLast(choices.bool(oneIn: 4) ? choices.int(in: 0...bytes.count) : 0)
            }
            guard let index = try? IDIndex(bytes) else { return }
            for hash in [0, UInt32.max, UInt32(truncatingIfNeeded: choices.bits())] {
                _ = try? index.frames(hash: hash)
            }
        }
    }
}
