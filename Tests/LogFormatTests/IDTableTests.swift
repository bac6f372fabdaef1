// A table of ids agrees with a dictionary.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@Suite struct IDTableTests {
    @Test func `a table of ids agrees with a dictionary`() throws {
        try Property.check("id table", runs: 300) { choices in
            var table = IDTable()
            var model: [UInt128: UInt64] = [:]
            // Few ids, so that many repeat, and some that differ in one half only.
            func id() -> UInt128 {
                UInt128(choices.int(in: 0...7)) << 64 | UInt128(choices.int(in: 0...7))
            }
            for step in 0..<choices.int(in: 0...200) {
                let id = id()
                try #require(table[id] == model[id])
                if choices.bool(oneIn: 16) { table.reserve(choices.int(in: 0...100)) }
                try #require(table.set(id, to: UInt64(step)) == model[id])
                model[id] = UInt64(step)
                try #require(table.count == model.count)
                try #require(!table.isEmpty)
            }
            let all = Dictionary(uniqueKeysWithValues: table.all.map { ($0.id, $0.number) })
            try #require(all == model)
        }
    }
}
