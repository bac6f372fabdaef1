import LogFormat
import Testing

@Suite struct XXHashTests {
    @Test func `XXH32 gives the reference values`() {
        #expect(XXH32.hash([UInt8]().span.bytes) == 0x02CC_5D05)
        #expect(XXH32.hash(Array("abc".utf8).span.bytes) == 0x32D1_53FF)
    }

    @Test func `XXH64 gives the reference values, however it is fed`() {
        var empty = XXH64()
        #expect(empty.value() == 0xEF46_DB37_51D8_E999)
        empty.update(Array("abc".utf8).span.bytes)
        #expect(empty.value() == 0x44BC_2CF5_AD77_0999)
    }
}
