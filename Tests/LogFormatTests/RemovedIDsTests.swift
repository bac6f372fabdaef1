// The lists of removed ids: every id is found and no other, every flipped bit is detected, and the reader
// never traps on damaged bytes.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@Suite(.verifies("SEG-8")) struct RemovedIDsTests {
    private static let base = Position(1_000)

    private func records(_ count: Int, seed: UInt64) -> [RemovedID] {
        var random = SeededRandom(seed: seed)
        return (0..<count).map { number in
            RemovedID(
                id: TestLines.id(&random), position: Position(1_000 + UInt64(number) * 3),
                hashes: ContentHashes(
                    withoutTime: UInt32(truncatingIfNeeded: random.next()),
                    withTime: UInt32(truncatingIfNeeded: random.next())))
        }
    }

    /// Reads a list in portions.
    private func read(
        _ bytes: [UInt8], through: Position = Position(.max), portion: Int = 1_000
    ) throws(FormatError) -> RemovedIDs {
        let prefix = try part(bytes, 0, RemovedIDs.prefixBytes)
        var reader = try RemovedIDsReader(
            prefix: prefix.span.bytes, base: Self.base, through: through)
        var offset = RemovedIDs.prefixBytes
        while reader.remaining > 0 {
            let count = min(portion, reader.remaining) * RemovedIDs.recordBytes
            let records = try part(bytes, offset, count)
            try reader.update(records: records.span.bytes)
            offset += count
        }
        let digest = try part(bytes, offset, RemovedIDs.digestBytes)
        return try reader.finish(digest: digest.span.bytes)
    }

    private func part(
        _ bytes: [UInt8], _ offset: Int, _ count: Int
    ) throws(FormatError) -> [UInt8] {
        guard offset + count <= bytes.count else { throw FormatError(.truncated, "") }
        return Array(bytes[offset..<offset + count])
    }

    private func find(_ id: UInt128, _ list: RemovedIDs, _ bytes: [UInt8]) -> RemovedID? {
        guard let place = list.recordRange(of: id) else { return nil }
        return RemovedIDs.find(id, in: bytes.span.bytes.extracting(place), base: Self.base)
    }

    @Test func `every id is found with its position and hashes, and no other is`() throws {
        try Property.check("removed ids", runs: 100) { choices in
            let records = records(choices.int(in: 0...700), seed: choices.bits())
            let time = Int64(choices.int(in: -5...2_000_000_000_000))
            let bytes = RemovedIDs.encode(records, base: Self.base, removedAt: time)
            try #require(bytes.count == RemovedIDs.encodedBytes(count: records.count))
            let list = try read(bytes, portion: choices.int(in: 1...200))
            try #require(list.count == records.count)
            try #require(list.removedAt == time)
            for record in records {
                try #require(find(record.id, list, bytes) == record)
                try #require(find(record.id ^ 1, list, bytes) == nil)
                try #require(
                    (list.recordRange(of: record.id)?.count ?? 0) <= 64 * RemovedIDs.recordBytes)
            }
            try #require(find(0, list, bytes) == nil)
            try #require(find(.max, list, bytes) == nil)
        }
    }

    @Test func `every flipped bit and every truncation of a list is refused`() {
        let good = RemovedIDs.encode(records(3, seed: 9), base: Self.base, removedAt: 77)
        for bit in 0..<good.count * 8 {
            var bad = good
            bad[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: FormatError.self, "bit \(bit)") { try read(bad) }
        }
        for count in 0..<good.count {
            #expect(throws: FormatError.self) { try read(Array(good[..<count])) }
        }
    }

    @Test func `a list out of order, doubled, or of another segment is refused`() throws {
        let records = records(2, seed: 9).sorted { $0.id < $1.id }
        let good = RemovedIDs.encode(records, base: Self.base, removedAt: 77)
        func forged(_ body: (inout [UInt8]) -> Void) -> [UInt8] {
            var bytes = good
            body(&bytes)
            bytes.removeLast(RemovedIDs.digestBytes)
            var digest = XXH64()
            digest.update(bytes.span.bytes)
            bytes.append(littleEndian: digest.value())
            return bytes
        }
        let first = RemovedIDs.prefixBytes..<RemovedIDs.prefixBytes + RemovedIDs.recordBytes
        let second = first.upperBound..<first.upperBound + RemovedIDs.recordBytes
        let swapped = forged {
            $0.replaceSubrange(first, with: good[second])
            $0.replaceSubrange(second, with: good[first])
        }
        let doubled = forged { $0.replaceSubrange(second, with: good[first]) }
        for bad in [swapped, doubled] {
            #expect(throws: FormatError.self) { try read(bad) }
        }
        #expect(throws: FormatError.self) { try read(good, through: Position(1_002)) }
        #expect(try read(good, through: Position(1_003)).count == 2)
    }

    @Test func `a random list with a valid digest never traps`() throws {
        let good = RemovedIDs.encode(records(70, seed: 4), base: Self.base, removedAt: 5)
        try Property.check("hostile removed ids", runs: 2_000) { choices in
            var bytes = good
            for _ in 0..<choices.int(in: 1...5) {
                let last = choices.bool() ? 24 : bytes.count - 9
                bytes[choices.int(in: 0...last)] = choices.element(of: [0, 1, 0x7F, 0x80, 0xFF])
            }
            bytes.removeLast(RemovedIDs.digestBytes)
            var digest = XXH64()
            digest.update(bytes.span.bytes)
            bytes.append(littleEndian: digest.value())
            guard let list = try? read(bytes) else { return }
            _ = find(UInt128(choices.bits()), list, bytes)
            _ = list.isExpired(now: choices.element(of: [.min, 0, .max]))
        }
    }

    @Test(.verifies("CMP-25")) func `an id is known for 90 days to the millisecond`() throws {
        let days: Int64 = 90 * 86_400_000
        for time: Int64 in [0, 1_771_756_214_425, -1_000] {
            let list = try read(RemovedIDs.encode([], base: Self.base, removedAt: time))
            #expect(!list.isExpired(now: time + days - 1))
            #expect(list.isExpired(now: time + days))
            // A clock that was set back does not expire a list.
            #expect(!list.isExpired(now: time - days))
        }
        let odd = try read(RemovedIDs.encode([], base: Self.base, removedAt: .min))
        #expect(odd.isExpired(now: .max))
        let late = try read(RemovedIDs.encode([], base: Self.base, removedAt: .max))
        #expect(!late.isExpired(now: .min))
    }
}
