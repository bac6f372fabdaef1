// Methods that read eight bytes at a time must give the same results as methods that read each byte.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@Suite struct ByteSearchTests {
    /// Bytes of which many have a value near the searched one.
    private static func bytes(_ choices: inout Choices, near byte: UInt8) -> [UInt8] {
        choices.array(0...40) { choices in
            choices.bool()
                ? byte &+ UInt8(choices.int(in: 0...2)) &- 1 : UInt8(choices.int(in: 0...255))
        }
    }

    @Test func `the first occurrence of a byte is found`() throws {
        try Property.check("first byte", runs: 2_000) { choices in
            let byte = UInt8(choices.int(in: 0...255))
            let bytes = Self.bytes(&choices, near: byte)
            let start = choices.int(in: 0...bytes.count)
            try #require(
                bytes.span.bytes.offset(of: byte, from: start)
                    == bytes[start...].firstIndex(of: byte))
        }
    }

    @Test func `text is ASCII if every byte is`() throws {
        try Property.check("ASCII", runs: 2_000) { choices in
            var bytes = choices.array(0...40) { UInt8($0.int(in: 0...127)) }
            if choices.bool(), !bytes.isEmpty {
                bytes[choices.int(in: 0...bytes.count - 1)] = UInt8(choices.int(in: 128...255))
            }
            try #require(bytes.span.bytes.isASCII == bytes.allSatisfy { $0 < 128 })
        }
    }

    @Test func `bytes match only equal bytes at the offset`() throws {
        try Property.check("matches", runs: 2_000) { choices in
            let bytes = choices.array(0...40) { UInt8($0.int(in: 0...1)) }
            let start = choices.int(in: 0...bytes.count)
            var other = Array(bytes[start..<choices.int(in: start...bytes.count)])
            if choices.bool(), !other.isEmpty {
                other[choices.int(in: 0...other.count - 1)] = UInt8(choices.int(in: 0...1))
            }
            let matches = other.withUnsafeBytes { bytes.span.bytes.matches($0, at: start) }
            try #require(matches == bytes[start...].starts(with: other))
            try #require(!other.withUnsafeBytes { bytes.span.bytes.matches($0, at: -1) })
        }
    }

    @Test(.verifies("LINE-2"))
    func `a UUID has hyphens at four places and hexadecimal digits at all others`() {
        let right = Array("01234567-89ab-cdef-0123-456789abcdef".utf8)
        for place in right.indices {
            for byte in UInt8.min...UInt8.max {
                var text = right
                text[place] = byte
                let isHyphen = right[place] == UInt8(ascii: "-")
                let isLower = "0123456789abcdef".utf8.contains(byte)
                let isUpper = "ABCDEF".utf8.contains(byte)
                func isRead(_ acceptUppercase: Bool) -> Bool {
                    LineText.uuid(text.span.bytes, at: 0, acceptUppercase: acceptUppercase) != nil
                }
                #expect(isRead(false) == (isHyphen ? byte == right[place] : isLower))
                #expect(isRead(true) == (isHyphen ? byte == right[place] : isLower || isUpper))
            }
        }
    }
}
