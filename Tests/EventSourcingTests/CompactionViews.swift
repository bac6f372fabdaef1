// Views for tests of compaction: registers, the server's settlements, and counters.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// One register for each subject, set by events of the type `set`.
struct Registers: CompactableView, Equatable {
    static let name = "registers"
    static let version = 1

    struct Value: Codable, Equatable {
        var time: Int64
        var source: UUID
        var sequence: UInt64
        var text: String
        var lwwTimestamp: LWWTimestamp {
            LWWTimestamp(
                time: Timestamp(milliseconds: time), source: source.integer, sequence: sequence)
        }
    }
    var values: [String: Value] = [:]

    init() {}

    mutating func fold(_ event: Event) {
        guard event.type == "set", let subject = event.subject else { return }
        if let known = values[subject], known.lwwTimestamp > event.lwwTimestamp { return }
        values[subject] = Value(
            time: event.time.milliseconds, source: event.source, sequence: event.sequence,
            text: String(decoding: event.content.json ?? [], as: UTF8.self))
    }

    func retention(of event: Event) -> Retention {
        guard event.type == "set", let subject = event.subject else { return .unconcerned }
        guard let value = values[subject], value.lwwTimestamp != event.lwwTimestamp else {
            return .needed(.current)
        }
        return .superseded(by: [value.lwwTimestamp])
    }

    func encodedState() throws -> [UInt8]? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return Array(try encoder.encode(values))
    }

    init(encodedState: [UInt8]) throws {
        values = try JSONDecoder().decode([String: Value].self, from: Data(encodedState))
    }
}

/// The server has settled everything up to the number that the newest `settled` event names.
struct Settled: SettlementView, Codable {
    static let name = "settled"
    static let version = 1
    static let eventTypes: Set<String>? = ["settled"]
    var through: UInt64 = 0

    mutating func fold(_ event: Event) {
        guard event.type == "settled" else { return }
        through = max(through, UInt64(event.subject ?? "") ?? 0)
    }

    func isSettled(_ lwwTimestamp: LWWTimestamp) -> Bool { lwwTimestamp.sequence <= through }
}

/// Counts every event, in any order, without a retention. Its count depends on all events, but it allows
/// their removal.
struct Counter: Projection, Codable {
    static let name = "counter"
    static let version = 1
    static let allowsCompaction = true
    var count = 0
    mutating func fold(_ event: Event) { count += 1 }
}

/// A counter that is not stored.
struct UnstoredCounter: Projection {
    static let name = "unstored"
    static let version = 1
    static let allowsCompaction = true
    var count = 0
    mutating func fold(_ event: Event) { count += 1 }
}
