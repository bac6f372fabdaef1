// Header, footer and clean-shutdown marker of a segment: they round-trip, and every flipped bit is detected.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@Suite struct SegmentFrameTests {
    private func eachFlip(_ good: [UInt8], _ body: ([UInt8], Int) -> Void) {
        for bit in 0..<good.count * 8 {
            var bad = good
            bad[bit / 8] ^= 1 << UInt8(bit % 8)
            body(bad, bit)
        }
    }

    // MARK: Header

    @Test(.verifies("SEG-2")) func `a header round-trips`() throws {
        try Property.check("header", runs: 200) { choices in
            let letters = choices.array(0...FormatLimit.accountBytesMax) {
                $0.int(in: 97...122)
            }
            let account = String(decoding: letters.map { UInt8($0) }, as: UTF8.self)
            var header = SegmentHeader(
                logID: UInt128(choices.bits()) << 64 | 5,
                account: account.isEmpty ? nil : account,
                base: Position(choices.next(below: .max - 1) + 1),
                createdAt: Int64(truncatingIfNeeded: choices.bits()))
            header.compatibleFlags = UInt32(truncatingIfNeeded: choices.bits())
            let bytes = header.encoded()
            try #require(bytes.count == SegmentHeader.encodedBytes)
            try #require(try SegmentHeader(bytes.span.bytes) == header)
        }
    }

    private let header = SegmentHeader(
        logID: 0x1122, account: "user-456", base: Position(77), createdAt: 1_771_756_214_425)

    @Test(.verifies("SEG-2")) func `every flipped bit of a header is refused`() {
        eachFlip(header.encoded()) { bad, bit in
            #expect(throws: FormatError.self, "bit \(bit)") { try SegmentHeader(bad.span.bytes) }
        }
    }

    @Test(.verifies("SEG-2")) func `a truncated header is refused`() {
        let bytes = header.encoded()
        for count in 0..<bytes.count {
            #expect(throws: FormatError.self) {
                try SegmentHeader(Array(bytes[..<count]).span.bytes)
            }
        }
    }

    /// A header with other bytes at an offset and a valid checksum.
    private func forged(_ offset: Int, _ bytes: [UInt8]) -> [UInt8] {
        var forged = header.encoded()
        forged.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        forged.removeLast(4)
        forged.append(littleEndian: XXH32.hash(forged.span.bytes))
        return forged
    }

    @Test(
        .verifies("SEG-2"),
        arguments: [
            (16, [2, 0], .newerVersion), (20, [1, 0, 0, 0], .unknownFeature),
            (8, [0x44, 0x41, 0x59, 0], .foreign), (4, [0, 0, 0, 0], .malformed),
            (48, [0, 0, 0, 0, 0, 0, 0, 0], .malformed),
            (48, [255, 255, 255, 255, 255, 255, 255, 255], .malformed),
            (65, [0xFF], .malformed),
        ] as [(Int, [UInt8], FormatError.Code)])
    func `an intact header with a value from elsewhere is refused by name`(
        offset: Int, bytes: [UInt8], code: FormatError.Code
    ) {
        let error = #expect(throws: FormatError.self) {
            try SegmentHeader(forged(offset, bytes).span.bytes)
        }
        #expect(error?.code == code)
    }

    @Test(.verifies("SEG-2")) func `unknown compatible flags are kept and not refused`() throws {
        let read = try SegmentHeader(forged(24, [1, 2, 3, 4]).span.bytes)
        #expect(read.compatibleFlags == 0x0403_0201)
    }

    // MARK: Footer

    private func footer(_ choices: inout Choices) -> SegmentFooter {
        let base = choices.next(below: 1 << 40) + 1
        var offset = SegmentHeader.encodedBytes
        var position = base
        let frames = choices.array(0...40) { choices in
            let entry = FrameEntry(offset: offset, first: Position(position))
            offset += choices.int(in: 20...200_000)
            position += UInt64(choices.int(in: 1...500))
            return entry
        }
        let time = Int64(choices.int(in: -1_000...1_000_000_000_000))
        return SegmentFooter(
            coveredThrough: Position(frames.isEmpty ? base - 1 : position - 1),
            lines: frames.isEmpty ? nil : Position(base)...Position(position - 1),
            eventCount: frames.isEmpty ? 0 : position - base,
            times: frames.isEmpty ? nil : time...(time + Int64(choices.int(in: 0...100_000))),
            plaintextBytes: choices.bits(),
            compaction: choices.bool()
                ? .init(
                    through: Position(choices.next(below: 1 << 40)),
                    removedIDBytes: choices.int(in: 0...FormatLimit.segmentBytesMax)) : nil,
            frames: frames,
            idIndex: choices.bytes(count: choices.int(in: 0...200)), digest: choices.bits())
    }

    @Test(.verifies("SEG-5")) func `a footer round-trips, found from its end`() throws {
        try Property.check("footer", runs: 300) { choices in
            let footer = footer(&choices)
            let bytes = footer.encoded()
            let before = choices.bytes(count: choices.int(in: 0...50))
            try #require(SegmentFooter.length(atEnd: (before + bytes).span.bytes) == bytes.count)
            try #require(try SegmentFooter(bytes.span.bytes) == footer)
        }
    }

    @Test(.verifies("SEG-5")) func `every flipped bit and every truncation of a footer is refused`()
    {
        var choices = Choices(seed: 12)
        let good = footer(&choices).encoded()
        eachFlip(good) { bad, bit in
            #expect(throws: FormatError.self, "bit \(bit)") { try SegmentFooter(bad.span.bytes) }
        }
        for count in 0..<good.count {
            #expect(throws: FormatError.self) {
                try SegmentFooter(Array(good[..<count]).span.bytes)
            }
        }
    }

    @Test(.verifies("SEG-5"))
    func `a random footer with a valid checksum never traps`() throws {
        try Property.check("hostile footer", runs: 3_000) { choices in
            var bytes = footer(&choices).encoded()
            bytes.removeLast(4)
            for _ in 0..<choices.int(in: 1...5) {
                let at = choices.int(in: 0...bytes.count - 1)
                bytes[at] = choices.element(of: [0, 1, 0x7F, 0x80, 0xFF])
            }
            if choices.bool(oneIn: 4) {
                bytes.replaceSubrange(8..<16, with: [UInt8](repeating: 0xFF, count: 8))
            }
            bytes.append(littleEndian: XXH32.hash(bytes.span.bytes))
            guard let footer = try? SegmentFooter(bytes.span.bytes) else { return }
            // A reader continues after the segment, so that position must exist.
            _ = footer.coveredThrough.next
        }
    }

    // MARK: Clean-shutdown marker

    @Test(.verifies("SEG-7"))
    func `a clean-shutdown marker round-trips, and every flipped bit and cut of it is refused`() {
        let good = CleanShutdownMarker(last: Position(123_456)).encoded()
        #expect(good.count == CleanShutdownMarker.encodedBytes)
        #expect(CleanShutdownMarker(good.span.bytes, at: 0)?.last == Position(123_456))
        eachFlip(good) { bad, bit in
            #expect(CleanShutdownMarker(bad.span.bytes, at: 0) == nil, "bit \(bit)")
        }
        for count in 0..<good.count {
            #expect(CleanShutdownMarker(Array(good[..<count]).span.bytes, at: 0) == nil)
        }
    }

    @Test(.verifies("SEG-7"))
    func `a clean-shutdown marker with an impossible position is refused`() {
        let bytes = CleanShutdownMarker(last: Position(.max)).encoded()
        #expect(CleanShutdownMarker(bytes.span.bytes, at: 0) == nil)
    }
}
