// The table that finds a lane by its name agrees with a dictionary.

import DaybookTestKit
import EventSourcing
import TestSupport
import Testing

@testable import Replay

@Suite struct LaneNamesTests {
    @Test func `lanes are found by their names, whichever hashes are alike`() throws {
        try Property.check("lane names", runs: 500) { choices in
            var names = LaneNames()
            // Each name's hash and lane. Few hashes, and neighbours, also around the end of the table.
            var hashes: [Int: UInt32] = [:]
            var lanes: [Int: Int] = [:]
            func found(_ name: Int) -> Int? {
                guard let hash = hashes[name] else { return nil }
                return names.lane(with: hash) { lanes[name] == $0 }
            }
            var next = 0
            for _ in 0..<choices.int(in: 0...120) {
                let name = choices.int(in: 0...40)
                if let lane = lanes[name], let hash = hashes[name] {
                    names.remove(lane, with: hash)
                    lanes[name] = nil
                } else {
                    let hash = UInt32(bitPattern: Int32(choices.int(in: -3...6)))
                    hashes[name] = hash
                    lanes[name] = next
                    names.insert(next, with: hash)
                    next += 1
                }
                for name in 0...40 { try #require(found(name) == lanes[name]) }
            }
        }
    }

    @Test func `names with equal characters and other bytes have other hashes`() {
        let composed = LaneNames.hash(of: EntityID("caf\u{E9}"))
        #expect(composed == LaneNames.hash(of: EntityID("caf\u{E9}")))
        #expect(composed != LaneNames.hash(of: EntityID("cafe\u{301}")))
    }
}
