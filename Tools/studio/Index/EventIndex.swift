// What the timeline filters and counts by, for all events of a log, in memory: one array for each column. The
// lines themselves stay on the disk. About 90 bytes an event.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The columns of a log's events, by ordinal: the number of the event in order of position, from 0.
struct EventIndex {
    private(set) var names = NameTable()
    private(set) var positions: [UInt64] = []
    /// Milliseconds since 1970.
    private(set) var times: [Int64] = []
    private(set) var types: [UInt32] = []
    private(set) var subjects: [UInt32] = []
    private(set) var lanes: [UInt32] = []
    private(set) var sources: [UInt32] = []
    /// The `userId` in the data.
    private(set) var accounts: [UInt32] = []
    private(set) var lineBytes: [UInt32] = []
    private(set) var origins: [Origin] = []
    private(set) var totalLineBytes = 0

    /// The ordinals by the key of the event's id.
    private var ordinals: [UInt64: UInt32] = [:]
    /// The ordinals of the events that name an event as their cause or base, by the key of its id.
    private var dependents: [UInt64: [UInt32]] = [:]
    private var kinds: [UInt32: TypeKind] = [:]
    /// The number of events by type and origin: the type's number, doubled, plus 1 for a foreign event.
    private var typeCounts: [UInt32: Int] = [:]
    private var lastSource: (id: UInt128, number: UInt32)?

    /// Where an event was recorded.
    enum Origin: UInt8 { case own, foreign }

    /// What the rules say of a type.
    enum TypeKind { case shipped, local, unknown, record }

    var count: Int { positions.count }

    // MARK: Appending

    /// Appends the next event of the log.
    ///
    /// - Throws: `LogError` `corrupt` for a line that is not an event.
    mutating func append(_ prefix: LinePrefix, _ line: RawSpan, in directory: String) throws {
        let ordinal = UInt32(count)
        if let plain = PlainLine(line, prefix, to: .stored) {
            let type = names.number(of: line.extracting(plain.type))
            if kinds[type] == nil { try classify(type, line, in: directory) }
            types.append(type)
            subjects.append(
                plain.subject.map { names.number(of: line.extracting($0)) } ?? NameTable.none)
            lanes.append(names.number(of: line.extracting(plain.lane)))
            times.append(plain.time)
            accounts.append(
                plain.data.flatMap { account(in: line.extracting($0)) } ?? NameTable.none)
        } else {
            let event = try LogReader.event(line, OfflineModel.catalogue, directory: directory)
            let type = number(of: event.type)
            if kinds[type] == nil { try classify(type, line, in: directory) }
            types.append(type)
            subjects.append(event.subject.map { number(of: $0) } ?? NameTable.none)
            lanes.append(number(of: event.lane))
            times.append(event.time.milliseconds)
            accounts.append(
                (event.content.json ?? []).withUnsafeBytes { bytes in
                    account(in: RawSpan(_unsafeBytes: bytes))
                } ?? NameTable.none)
            for cause in [event.content.string("causationid"), event.content.string("baseid")] {
                guard let cause = cause.flatMap(UUID.init(uuidString:)) else { continue }
                dependents[Self.key(of: cause.integer), default: []].append(ordinal)
            }
        }
        let origin: Origin = prefix.isOwn ? .own : .foreign
        typeCounts[types[Int(ordinal)] << 1 | UInt32(origin.rawValue), default: 0] += 1
        positions.append(prefix.position.rawValue)
        sources.append(number(ofSource: prefix.source))
        lineBytes.append(UInt32(clamping: line.byteCount))
        origins.append(origin)
        ordinals[Self.key(of: prefix.id)] = ordinal
        totalLineBytes += line.byteCount + 1
    }

    private mutating func number(of name: String) -> UInt32 {
        names.number(of: Array(name.utf8).span.bytes)
    }

    private mutating func number(ofSource id: UInt128) -> UInt32 {
        if let last = lastSource, last.id == id { return last.number }
        let number = number(of: "urn:uuid:" + UUID(integer: id).text)
        lastSource = (id, number)
        return number
    }

    /// Finds out the kind of a type, once for each type, by the rules that the log has recorded.
    private mutating func classify(_ type: UInt32, _ line: RawSpan, in directory: String) throws {
        kinds[type] = Self.kind(
            of: try LogReader.event(
                line, LogReader(directory).adding(recordedRulesTo: OfflineModel.catalogue),
                directory: directory))
    }

    private static func kind(of event: Event) -> TypeKind {
        if event.isRecord { return .record }
        if event.action != nil { return .shipped }
        return event.isKnownType || event.hasRecordedRule ? .local : .unknown
    }

    /// The number of the `userId` in an event's data; nil if they have none. Data that begin with a plain one
    /// are not parsed.
    private mutating func account(in data: RawSpan) -> UInt32? {
        let start = Self.accountStart.utf8CodeUnitCount
        if data.matches(Self.accountStart, at: 0),
            let end = data.offset(of: UInt8(ascii: "\""), from: start), end > start,
            data.offset(of: UInt8(ascii: "\\"), from: start).map({ $0 > end }) ?? true
        {
            return names.number(of: data.extracting(start..<end))
        }
        guard data.contains("userId"), let fields = try? JSONFields(data.array),
            let json = fields.raw(named: "userId"), json.count > 2,
            json.first == UInt8(ascii: "\"")
        else { return nil }
        return number(of: JSONText.string(json.span.bytes, 1..<json.count - 1))
    }

    private static let accountStart: StaticString = "{\"userId\":\""

    // MARK: Finding

    /// Eight bytes that stand for an id. Made of both halves: the ids of version 1 that one program makes have the
    /// same low half.
    private static func key(of id: UInt128) -> UInt64 { UInt64(truncatingIfNeeded: id ^ id >> 64) }

    /// The number of events by origin and kind. O(types).
    func kindCounts() -> [Origin: [TypeKind: Int]] {
        var counts: [Origin: [TypeKind: Int]] = [:]
        for (number, events) in typeCounts {
            let origin = Origin(rawValue: UInt8(number & 1)) ?? .own
            counts[origin, default: [:]][kinds[number >> 1] ?? .unknown, default: 0] += events
        }
        return counts
    }

    /// The kind of an event's type.
    func kind(_ ordinal: Int) -> TypeKind { kinds[types[ordinal]] ?? .unknown }

    /// The ordinal of the first event at or after a position. O(log n).
    func ordinal(from position: UInt64) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if positions[middle] < position { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The ordinal of the event at a position; nil if there is none. O(log n).
    func ordinal(at position: UInt64) -> Int? {
        let ordinal = ordinal(from: position)
        return ordinal < count && positions[ordinal] == position ? ordinal : nil
    }

    /// The ordinal of the event with an id; nil if there is none. O(1).
    func ordinal(of id: UUID) -> Int? {
        ordinals[Self.key(of: id.integer)].map(Int.init)
    }

    /// The ordinals of the events that name an event as their cause or base.
    func dependents(of id: UUID) -> [Int] {
        (dependents[Self.key(of: id.integer)] ?? []).map(Int.init)
    }

    /// The positions of the events of some types, ascending. O(n).
    func positions(ofTypes wanted: Set<String>) -> [UInt64] {
        let numbers = Set(wanted.compactMap { names.existingNumber(of: $0) })
        return types.indices.filter { numbers.contains(types[$0]) }.map { positions[$0] }
    }
}

extension RawSpan {
    /// True if the bytes contain a text. O(bytes).
    fileprivate func contains(_ text: StaticString) -> Bool {
        var start = 0
        let first = text.utf8Start.pointee
        while let found = offset(of: first, from: start) {
            if matches(text, at: found) { return true }
            start = found + 1
        }
        return false
    }
}
