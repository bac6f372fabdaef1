// The lanes agree with a model: a list of positions for each lane, searched from beginning to end.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import Replay

@Suite(.verifies("RPL-1", "RPL-2")) struct LaneSetTests {
    /// The lanes as lists.
    private struct Model {
        struct Lane {
            var positions: [UInt64] = []
            var isHeld = false
            var isUnderWay = false
            /// The lowest turn, after the lane was deferred.
            var turnMin: UInt64 = 0
        }
        var lanes: [String: Lane] = [:]
        var newest: UInt64 = 0
        static let lineBytes = 100

        /// The next batch: the event with the least turn of all lanes that can send, again and again.
        mutating func dequeueBatch(eventsMax: Int, bytesMax: Int) -> [UInt64] {
            var batch: [UInt64] = []
            var dequeued: [String: Int] = [:]
            while batch.count < eventsMax {
                let ready = lanes.compactMap {
                    (name, lane) -> (turn: UInt64, position: UInt64, name: String)? in
                    let index = dequeued[name] ?? 0
                    guard !lane.isHeld, !lane.isUnderWay, index < lane.positions.count else {
                        return nil
                    }
                    let position = lane.positions[index]
                    return (max(position, lane.turnMin), position, name)
                }
                guard let next = ready.min(by: { ($0.turn, $0.position) < ($1.turn, $1.position) }),
                    batch.isEmpty || (batch.count + 1) * (Self.lineBytes + 1) <= bytesMax
                else { break }
                batch.append(next.position)
                dequeued[next.name, default: 0] += 1
            }
            for name in dequeued.keys { lanes[name]?.isUnderWay = true }
            return batch
        }
    }

    private static func entry(_ position: UInt64, _ lane: String) -> OutboxEntry {
        OutboxEntry(
            at: Position(position),
            OutboxEntry.Fields(
                id: UUID(integer: UInt128(position)), source: UUID(integer: 1), action: "A",
                entityId: lane, lane: lane, timestamp: Timestamp(milliseconds: 0),
                lineBytes: Model.lineBytes))
    }

    @Test func `batches are those of the lanes as lists, whatever is answered`() throws {
        try Property.check("lanes", runs: 400) { choices in
            var lanes = LaneSet()
            var model = Model()
            var underWay: [[ReplayItem]] = []
            var held: [ReplayItem] = []
            for _ in 0..<choices.int(in: 0...80) {
                switch choices.int(in: 0...5) {
                case 0...2:
                    for _ in 0..<choices.int(in: 1...4) {
                        let lane = "lane \(choices.int(in: 0...6))"
                        model.newest += UInt64(choices.int(in: 1...3))
                        model.lanes[lane, default: Model.Lane()].positions.append(model.newest)
                        lanes.enqueue(Self.entry(model.newest, lane), hold: .none)
                    }
                case 3:
                    let eventsMax = choices.int(in: 1...6)
                    let bytesMax = choices.int(in: 1...700)
                    let batch = lanes.dequeueBatch(eventsMax: eventsMax, bytesMax: bytesMax)
                    let expected = model.dequeueBatch(eventsMax: eventsMax, bytesMax: bytesMax)
                    try #require(batch.map(\.position.rawValue) == expected)
                    if !batch.isEmpty { underWay.append(batch) }
                case 4:
                    guard !underWay.isEmpty else { continue }
                    let batch = underWay.remove(at: choices.int(in: 0...underWay.count - 1))
                    var stopped: Set<String> = []
                    for item in batch where !stopped.contains(item.lane) {
                        try #require(lanes.isFirst(item))
                        switch choices.int(in: 0...5) {
                        case 0:
                            // Parked until a decision.
                            lanes.holdLane(of: item)
                            model.lanes[item.lane]?.isHeld = true
                            held.append(item)
                            stopped.insert(item.lane)
                        case 1:
                            lanes.deferLane(of: item)
                            model.lanes[item.lane]?.turnMin = model.newest + 1
                            stopped.insert(item.lane)
                        default:
                            lanes.removeSettled(item)
                            model.lanes[item.lane]?.positions.removeFirst()
                        }
                    }
                    lanes.releaseItems(batch)
                    for name in Set(batch.map(\.lane)) {
                        model.lanes[name]?.isUnderWay = false
                        // A lane that comes again is a new one.
                        if model.lanes[name]?.positions.isEmpty == true { model.lanes[name] = nil }
                    }
                default:
                    guard !held.isEmpty else { continue }
                    let item = held.remove(at: choices.int(in: 0...held.count - 1))
                    lanes.releaseLane(of: item)
                    model.lanes[item.lane]?.isHeld = false
                }
                let count = model.lanes.values.reduce(0) { $0 + $1.positions.count }
                try #require(lanes.count == count)
                let heldCount = model.lanes.values.reduce(0) {
                    $0 + ($1.isHeld ? $1.positions.count : 0)
                }
                try #require(lanes.heldCount == heldCount)
            }
        }
    }
}
