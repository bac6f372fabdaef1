// Which values of a payload are searched for dictionaries that JSON would write as arrays.

import Foundation
import Testing

@testable import EventSourcing

@Suite struct PayloadCheckTests {
    /// Values of all kinds, and an array, which makes the check look at them.
    private struct Everything: EventPayload, Codable, Equatable {
        static let type = "com.example.everything"
        struct Inner: Codable, Equatable {
            var depth = 1
            var inner: [Inner] = []
        }
        enum Choice: Codable, Equatable { case none, some(String), many([Int]) }

        var bool = true
        var text = "a"
        var double = 0.5
        var float: Float = 0.25
        var integers: [Int64] = [.min, 0, .max]
        var small: [UInt8] = [0, 255]
        var maybe: [Int?] = [1, nil]
        var missing: String?
        var present: String? = "b"
        var id = UUID(uuidString: "00000000-0000-4000-8000-000000000001")
        var url = URL(string: "https://example.com")
        var data = Data([1, 2, 3])
        var amount = Decimal(3)
        var names = ["a": ["b": 1]]
        var numbers = [1: "a"]
        var choices: [Choice] = [.none, .some("a"), .many([1, 2])]
        var inner = Inner(inner: [Inner(inner: [Inner()])])
        var set: Set<Int> = [1]
    }

    /// Encodes itself as another value does, and inherits from a class.
    private class Base: Codable { var base = ["a"] }
    private final class Derived: Base {
        private enum CodingKeys: CodingKey { case guests }
        var guests: [UUID: Int] = [:]
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try super.encode(to: container.superEncoder())
            try container.encode(guests, forKey: .guests)
        }
    }

    @Test func `values of all kinds pass, and are read back`() throws {
        let json = try PayloadCoding.encode(Everything())
        #expect(try PayloadCoding.decode(Everything.self, json) == Everything())
    }

    @Test func `a value that is nested without end in one key is searched to a bound`() throws {
        struct Wrapper: Encodable {
            let levels: Int
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                if levels == 0 { return try container.encode(["a"]) }
                try container.encode(Wrapper(levels: levels - 1))
            }
        }
        #expect(try PayloadCoding.encode(Wrapper(levels: 200)) == Array(#"["a"]"#.utf8))
    }

    @Test func `a dictionary is found in a subclass`() {
        let error = #expect(throws: EventError.self) { try PayloadCoding.encode(Derived()) }
        #expect(error?.detail.hasPrefix("guests is a dictionary") == true)
    }

    @Test func `a dictionary is found in a later value, up to the sixteenth`() throws {
        struct Seats: Codable { var rows: [Row] }
        struct Row: Codable { var guests: [UUID: Int] }
        for _ in 0..<15 { _ = try PayloadCoding.encode(Seats(rows: [])) }
        #expect(throws: EventError.self) {
            try PayloadCoding.encode(Seats(rows: [Row(guests: [:])]))
        }
    }
}
