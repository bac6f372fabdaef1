// The binary form of Codable states: states are decoded as they were encoded, equal states give equal
// bytes, and other encodings are refused.

import DaybookTestKit
import Foundation
import HashTreeCollections
import TestSupport
import Testing

@testable import EventSourcing

@Suite(.verifies("VIEW-29")) struct CodableStateTests {
    private struct Stop: Codable, Hashable {
        var name: String
        var nights: Int
        var at: Date?
        var tags: Set<String> = []
    }

    private enum Choice: Codable, Hashable {
        case none
        case some(Stop, count: UInt8)
        case number(Double)
    }

    private class Base: Codable {
        var a = 1
    }

    /// Encodes its superclass in a separate member, as the compiler's conformance does.
    private final class Derived: Base {
        var b = "b"

        private enum CodingKeys: String, CodingKey { case b }

        override init() { super.init() }

        required init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            b = try members.decode(String.self, forKey: .b)
            try super.init(from: members.superDecoder())
        }

        override func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            try super.encode(to: members.superEncoder())
            try members.encode(b, forKey: .b)
        }
    }

    private struct State: Codable, Equatable {
        var numbers: [Int] = []
        var small: [Int8] = []
        var big: [UInt64] = []
        var stops: [String: Stop] = [:]
        var shared: TreeDictionary<String, Stop> = [:]
        var byStop: [Stop: [UUID]] = [:]
        var chosen: TreeSet<Int> = []
        var choices: [Choice] = []
        var maybe: [Int?] = []
        var nothing: String?
        var data = Data()
        var floats: [Float] = []
        var flag = false
        var matrix: [[Double]] = []
        var order = SortedIndex<String>()
    }

    private static func someState(_ random: inout Choices) -> State {
        var state = State()
        func text() -> String {
            "k\(random.int(in: 0...40))" + (random.bool(oneIn: 4) ? "\u{E9}" : "")
        }
        func stop() -> Stop {
            Stop(
                name: text(), nights: random.int(in: -5...5_000),
                at: random.bool()
                    ? nil : Date(timeIntervalSince1970: Double(random.int(in: 0...9))),
                tags: Set((0..<random.int(in: 0...4)).map { _ in text() }))
        }
        for _ in 0..<random.int(in: 0...12) {
            state.numbers.append(random.int(in: -1_000...1_000))
            state.small.append(Int8(random.int(in: -128...127)))
            state.big.append(UInt64.max - UInt64(random.int(in: 0...300)))
            state.stops[text()] = stop()
            state.shared[text()] = stop()
            state.byStop[stop()] = [
                UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
            ]
            state.chosen.insert(random.int(in: -9...9))
            state.choices.append(
                [.none, .some(stop(), count: 255), .number(-0.5)][random.int(in: 0...2)])
            state.maybe.append(random.bool() ? nil : 7)
            state.data.append(UInt8(random.int(in: 0...255)))
            state.floats.append(1.5)
            state.flag.toggle()
            state.matrix.append([1, .infinity])
            let key = text()
            if !state.order.contains(key) { state.order.insert(key) }
        }
        return state
    }

    @Test func `any state is read back, and gives the same bytes again`() throws {
        try Property.check("a Codable state") { random in
            let state = Self.someState(&random)
            let bytes = try StateEncoder.bytes(of: state)
            let read = try StateDecoder.state(State.self, bytes)
            try #require(read == state)
            try #require(try StateEncoder.bytes(of: read) == bytes)
        }
    }

    @Test func `the order in which keys were set does not matter`() throws {
        let keys = (0..<500).map { "key \($0 &* 7_919 % 500)" }
        func bytes(_ keys: some Sequence<String>) throws -> [UInt8] {
            var state = State()
            for key in keys {
                state.stops[key] = Stop(
                    name: key, nights: key.utf8.count, tags: Set(key.map { String($0) }))
                state.shared[key] = state.stops[key]
            }
            return try StateEncoder.bytes(of: state)
        }
        #expect(try bytes(keys) == bytes(keys.reversed()))
        #expect(try bytes(keys) == bytes(keys.sorted()))
    }

    @Test func `members can be read in another order, left out, and skipped`() throws {
        struct Old: Codable {
            var a = 1
            var b: [String: [Int]] = ["x": [1, 2]]
            var c = "c"
            var d: Double? = 4
        }
        struct New: Codable {
            var d: Double?
            var c: String
            var new: Int?
        }
        let read = try StateDecoder.state(New.self, StateEncoder.bytes(of: Old()))
        #expect(read.d == 4)
        #expect(read.c == "c")
        #expect(read.new == nil)
    }

    @Test func `a class and its superclass are read back`() throws {
        let derived = Derived()
        (derived.a, derived.b) = (-7, "other")
        let read = try StateDecoder.state(
            [Derived].self, StateEncoder.bytes(of: [derived, Derived()]))
        #expect(read.map(\.a) == [-7, 1])
        #expect(read.map(\.b) == ["other", "b"])
    }

    @Test func `containers that are filled alternately are read back`() throws {
        struct Nested: Codable, Equatable {
            enum Key: String, CodingKey { case left, right, last }
            var left: [Int] = [1, 2, 3]
            var right: [String: String] = ["a": "b"]
            init() {}
            func encode(to encoder: any Encoder) throws {
                var members = encoder.container(keyedBy: Key.self)
                var left = members.nestedUnkeyedContainer(forKey: .left)
                var right = members.nestedContainer(keyedBy: StateKey.self, forKey: .right)
                try members.encode(true, forKey: .last)
                try left.encode(1)
                try right.encode("b", forKey: StateKey("a"))
                try left.encode(2)
                var inner = left.nestedUnkeyedContainer()
                try left.encode(3)
                try inner.encode("inner")
            }
            init(from decoder: any Decoder) throws {
                let members = try decoder.container(keyedBy: Key.self)
                var left = try members.nestedUnkeyedContainer(forKey: .left)
                self.left = [try left.decode(Int.self), try left.decode(Int.self)]
                var inner = try left.nestedUnkeyedContainer()
                self.left.append(try left.decode(Int.self))
                #expect(try inner.decode(String.self) == "inner")
                #expect([inner.isAtEnd, left.isAtEnd] == [true, true])
                let right = try members.nestedContainer(keyedBy: StateKey.self, forKey: .right)
                self.right = ["a": try right.decode(String.self, forKey: StateKey("a"))]
                #expect(try members.decode(Bool.self, forKey: .last))
            }
        }
        #expect(try StateDecoder.state(Nested.self, StateEncoder.bytes(of: Nested())) == Nested())
    }

    @Test func `bytes that were changed, shortened or lengthened never trap`() throws {
        try Property.check("damaged bytes of a Codable state") { random in
            var bytes = try StateEncoder.bytes(of: Self.someState(&random))
            switch random.int(in: 0...2) {
            case 0: bytes.removeLast(random.int(in: 1...bytes.count))
            case 1: bytes.append(UInt8(random.int(in: 0...255)))
            default:
                for _ in 0..<random.int(in: 1...4) {
                    bytes[random.int(in: 0...bytes.count - 1)] = UInt8(random.int(in: 0...255))
                }
            }
            _ = try? StateDecoder.state(State.self, bytes)
        }
    }

    @Test func `bytes after the state, and JSON, are refused`() throws {
        let bytes = try StateEncoder.bytes(of: Stop(name: "n", nights: 1))
        #expect(throws: EventError.self) { try StateDecoder.state(Stop.self, bytes + [0]) }
        #expect(throws: EventError.self) {
            try StateDecoder.state(Stop.self, Array(#"{"name":"n","nights":1,"tags":[]}"#.utf8))
        }
        #expect(throws: EventError.self) { try StateDecoder.state(Stop.self, []) }
    }

    @Test func `a dictionary with a key twice, or with keys out of order, is refused`() throws {
        let bytes = try StateEncoder.bytes(of: ["a": 1, "b": 2])
        let swapped = bytes.map { $0 == UInt8(ascii: "a") ? UInt8(ascii: "c") : $0 }
        let twice = bytes.map { $0 == UInt8(ascii: "a") ? UInt8(ascii: "b") : $0 }
        #expect(try StateDecoder.state([String: Int].self, bytes) == ["a": 1, "b": 2])
        #expect(throws: EventError.self) { try StateDecoder.state([String: Int].self, swapped) }
        #expect(throws: EventError.self) { try StateDecoder.state([String: Int].self, twice) }
    }

    private final class Chain: Codable {
        var next: Chain?
        init(_ next: Chain?) { self.next = next }
    }

    @Test func `values that are nested too deeply are refused, and need no stack`() throws {
        var chain = Chain(nil)
        for _ in 0..<20 { chain = Chain(chain) }
        _ = try StateDecoder.state(Chain.self, StateEncoder.bytes(of: chain))
        for _ in 0..<500 { chain = Chain(chain) }
        #expect(throws: EventError.self) { try StateEncoder.bytes(of: chain) }
    }
}
