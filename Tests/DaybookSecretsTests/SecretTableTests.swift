// The plaintext of a sealed file: round trips of tables, and refused bytes.

import DaybookTestKit
import TestSupport
import Testing

@testable import DaybookSecrets

@Suite struct SecretTableTests {
    @Test(.verifies("SEC-6")) func `a table is written as the page says`() {
        let bytes = SecretTable.bytes(["b": [1, 2], "a": []])
        #expect(
            bytes == [2, 0, 0, 0, 1, 0, 0, 0, 97, 0, 0, 0, 0, 1, 0, 0, 0, 98, 2, 0, 0, 0, 1, 2])
        #expect(SecretTable.bytes([:]) == [0, 0, 0, 0])
    }

    @Test(.verifies("SEC-6")) func `every table comes back, and no part of one is a table`()
        throws
    {
        try Property.check("tables", runs: 200) { choices in
            var table: [String: [UInt8]] = [:]
            for _ in 0..<choices.int(in: 0...6) {
                let name = choices.array(1...8) { $0.element(of: ["a", "b", "ü", "\u{0}"]) }
                table[name.joined()] = choices.bytes(count: choices.int(in: 0...40))
            }
            let bytes = SecretTable.bytes(table)
            try #require(SecretTable.read(bytes) == table)
            try #require(SecretTable.read(bytes + [0]) == nil)
            for count in 0..<bytes.count {
                try #require(SecretTable.read(Array(bytes[..<count])) == nil)
            }
            // Other bytes are decoded or refused; nothing traps.
            var other = bytes
            other[choices.int(in: 0...other.count - 1)] = UInt8(choices.int(in: 0...255))
            _ = SecretTable.read(other)
            _ = SecretTable.read(choices.bytes(count: choices.int(in: 0...40)))
        }
    }

    @Test(.verifies("SEC-6")) func `duplicate, empty and invalid names are refused`() {
        func row(_ name: [UInt8]) -> [UInt8] {
            [UInt8(truncatingIfNeeded: name.count), UInt8(name.count >> 8), 0, 0] + name
                + [0, 0, 0, 0]
        }
        #expect(SecretTable.read([1, 0, 0, 0] + row([97])) == ["a": []])
        #expect(SecretTable.read([2, 0, 0, 0] + row([97]) + row([97])) == nil)
        #expect(SecretTable.read([1, 0, 0, 0] + row([])) == nil)
        #expect(SecretTable.read([1, 0, 0, 0] + row([0xFF])) == nil)
        #expect(SecretTable.read([1, 0, 0, 0] + row([UInt8](repeating: 97, count: 257))) == nil)
        #expect(SecretTable.read([255, 255, 255, 255]) == nil)
    }
}
