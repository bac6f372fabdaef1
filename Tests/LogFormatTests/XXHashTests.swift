// The checksums, against values of the reference implementation (xxhsum 0.8).

import DaybookTestKit
import LogFormat
import Testing

@Suite struct XXHashTests {
    /// The bytes 0, 1, 2, … up to `count`.
    private func row(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }

    private func xxh64(_ bytes: [UInt8], seed: UInt64 = 0) -> UInt64 {
        var hash = XXH64(seed: seed)
        hash.update(bytes.span.bytes)
        return hash.value()
    }

    @Test(
        arguments: [
            (1, 0x0, 0xCF65B03E),
            (1, 0x9E3779B1, 0xB4545AA4),
            (3, 0x0, 0x663E9A55),
            (3, 0x9E3779B1, 0x24302793),
            (4, 0x0, 0x80691E66),
            (4, 0x9E3779B1, 0x968EE649),
            (15, 0x0, 0x57C01ECE),
            (15, 0x9E3779B1, 0x987C1D76),
            (16, 0x0, 0xB72837F4),
            (16, 0x9E3779B1, 0x2FBDEAF3),
            (31, 0x0, 0xEF24F709),
            (31, 0x9E3779B1, 0xC17A6CAE),
            (32, 0x0, 0x830741C1),
            (32, 0x9E3779B1, 0x8535B112),
            (33, 0x0, 0xF1E6A545),
            (33, 0x9E3779B1, 0xE93771DA),
            (63, 0x0, 0x4C80747B),
            (63, 0x9E3779B1, 0x3A00B92A),
            (101, 0x0, 0x1A20E95B),
            (101, 0x9E3779B1, 0x37B352EE),
            (1000, 0x0, 0xFACC21A4),
            (1000, 0x9E3779B1, 0x12EAABCD),
        ] as [(Int, UInt32, UInt32)]) func `XXH32 gives the reference values`(
            count: Int, seed: UInt32, expected: UInt32
        )
    {
        #expect(XXH32.hash(row(count).span.bytes, seed: seed) == expected)
    }

    @Test(
        arguments: [
            (1, 0x0, 0xE934A84ADB052768),
            (1, 0x9E3779B1, 0x5014607643A9B4C3),
            (3, 0x0, 0xE5C7BB4533BC65DD),
            (3, 0x9E3779B1, 0x47AA45ED39ED5541),
            (4, 0x0, 0xFFCED8604453CC1E),
            (4, 0x9E3779B1, 0xB8F1A51893FA14E6),
            (15, 0x0, 0xA948F5F0F6ABAC2D),
            (15, 0x9E3779B1, 0x04AE9246817C4B6B),
            (16, 0x0, 0x44B6EF2FB84169F7),
            (16, 0x9E3779B1, 0x673E90AEBEAC5689),
            (31, 0x0, 0xC346D2B59B4D8EE1),
            (31, 0x9E3779B1, 0x71969C89A30A986A),
            (32, 0x0, 0xCBF59C5116FF32B4),
            (32, 0x9E3779B1, 0x7181354774E0D600),
            (33, 0x0, 0x0C535D1ACAFB8EAD),
            (33, 0x9E3779B1, 0x57BD8AD0A0390E6D),
            (63, 0x0, 0xE26AA9E2A95F8E4F),
            (63, 0x9E3779B1, 0x892362045C7BADFB),
            (101, 0x0, 0xE99038495F85381E),
            (101, 0x9E3779B1, 0xA1C6D4174C37136D),
            (1000, 0x0, 0x6EF436B00EBA4078),
            (1000, 0x9E3779B1, 0x5697DAF2CCBFC5FB),
        ] as [(Int, UInt64, UInt64)]) func `XXH64 gives the reference values`(
            count: Int, seed: UInt64, expected: UInt64
        )
    {
        #expect(xxh64(row(count), seed: seed) == expected)
    }

    @Test func `the published values of short texts hold`() {
        #expect(XXH32.hash([UInt8]().span.bytes) == 0x02CC_5D05)
        #expect(XXH32.hash(Array("abc".utf8).span.bytes) == 0x32D1_53FF)
        #expect(xxh64([]) == 0xEF46_DB37_51D8_E999)
        #expect(xxh64(Array("abc".utf8)) == 0x44BC_2CF5_AD77_0999)
    }

    @Test func `XXH64 does not depend on the sizes of the updates`() throws {
        try Property.check("chunks", runs: 200) { choices in
            let bytes = choices.bytes(count: choices.int(in: 0...300))
            var hash = XXH64()
            var offset = 0
            while offset < bytes.count {
                let end = min(bytes.count, offset + choices.int(in: 0...70))
                hash.update(bytes.span.bytes.extracting(offset..<end))
                // Reading the value must not change the state.
                _ = hash.value()
                offset = max(end, offset + (end == offset ? 1 : 0))
                if end < offset { hash.update(bytes.span.bytes.extracting(end..<offset)) }
            }
            try #require(hash.value() == xxh64(bytes))
        }
    }
}
