// A StateDictionary behaves like a Dictionary, whichever entries are stored, and has the same stored form.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import EventSourcing

@Suite(.verifies("VIEW-29")) struct StateDictionaryTests {
    private struct Stop: Codable, Hashable {
        var name: String
        var nights: Int?
    }

    private typealias Stops = StateDictionary<String, Stop>

    private static func reopened(_ stops: Stops) throws -> Stops {
        try StateDecoder.state(Stops.self, StateEncoder.bytes(of: stops))
    }

    @Test func `any history of changes and reopenings gives the entries of a Dictionary`() throws {
        try Property.check(
            "StateDictionary and Dictionary", runs: 300,
            covering: ["reopened", "removed a stored entry", "replaced a stored entry"]
        ) { choices in
            var stops = Stops()
            var model: [String: Stop] = [:]
            var stored: Set<String> = []
            for _ in 0..<choices.int(in: 0...60) {
                let key = "k\(choices.int(in: 0...20))" + (choices.bool(oneIn: 5) ? "\u{E9}" : "")
                switch choices.int(in: 0...5) {
                case 0:
                    if stored.contains(key) { choices.count("removed a stored entry") }
                    try #require(stops.removeValue(forKey: key) == model.removeValue(forKey: key))
                case 1:
                    stops = try Self.reopened(stops)
                    stored = Set(model.keys)
                    choices.count("reopened")
                case 2:
                    stops[key, default: Stop(name: "new")].nights = 1
                    model[key, default: Stop(name: "new")].nights = 1
                default:
                    if stored.contains(key) { choices.count("replaced a stored entry") }
                    let stop = Stop(
                        name: "n\(choices.int(in: 0...3))", nights: choices.bool() ? nil : 3)
                    (stops[key], model[key]) = (stop, stop)
                }
                try #require(stops[key] == model[key])
                try #require(stops.count == model.count)
            }
            try #require(
                Dictionary(uniqueKeysWithValues: stops.map { ($0.key, $0.value) }) == model)
            try #require(Set(stops.keys) == Set(model.keys))
            try #require(try StateEncoder.bytes(of: stops) == StateEncoder.bytes(of: model))
        }
    }

    @Test func `a copy keeps its entries when the other changes`() throws {
        var stops = try Self.reopened(["a": Stop(name: "a"), "b": Stop(name: "b")])
        let copy = stops
        stops["a"] = nil
        stops["b"]?.name = "other"
        #expect(copy["a"]?.name == "a")
        #expect(copy["b"]?.name == "b")
        #expect(copy != stops)
    }

    @Test func `a state whose entries have another type now is refused when it is opened`() throws {
        struct Renamed: Codable { var title: String }
        let bytes = try StateEncoder.bytes(of: ["a": Stop(name: "a")] as Stops)
        #expect(throws: EventError.self) {
            try StateDecoder.state(StateDictionary<String, Renamed>.self, bytes)
        }
        #expect(throws: EventError.self) {
            try StateDecoder.state(StateDictionary<Int, Stop>.self, bytes)
        }
    }

    @Test func `damaged bytes never trap, neither when opened nor when read`() throws {
        var stops = Stops()
        for number in 0..<40 { stops["stop \(number)"] = Stop(name: "\(number)", nights: number) }
        let intact = try StateEncoder.bytes(of: stops)
        try Property.check("a damaged StateDictionary", runs: 2_000) { choices in
            var bytes = intact
            for _ in 0..<choices.int(in: 1...3) {
                bytes[choices.int(in: 0...bytes.count - 1)] = UInt8(choices.int(in: 0...255))
            }
            guard var read = try? StateDecoder.state(Stops.self, bytes) else { return }
            for (key, value) in read { read[key] = value }
            _ = read["stop 7"]
            _ = try StateEncoder.bytes(of: read)
        }
    }

    @Test func `other coders write it as a Dictionary`() throws {
        let stops: Stops = ["a": Stop(name: "a", nights: 1)]
        let json = try JSONEncoder().encode(stops)
        #expect(
            try JSONDecoder().decode([String: Stop].self, from: json) == [
                "a": Stop(name: "a", nights: 1)
            ])
        #expect(try JSONDecoder().decode(Stops.self, from: json) == stops)
    }
}
