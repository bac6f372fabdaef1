// The table of a log's events. Of the bounds of a query, those of position, id, type and time are applied while the
// log is read, so that frames and lines outside of them are not decoded, and sealed segments not read.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The table `events`.
final class EventsTable: SQLTable {
    /// The columns, in the order of their numbers.
    enum Column: Int, CaseIterable {
        case position, id, type, subject, lane, source, sequence, time, data, own, baseid
        case causationid, bytes, line

        fileprivate var declaration: String {
            switch self {
            case .position, .sequence, .own, .bytes: "\(self) INTEGER"
            case .line: "\(self) TEXT HIDDEN"
            default: "\(self) TEXT"
            }
        }
    }

    private let reader: LogReader
    private let last: Position

    /// - Parameter last: the last position of the table; later events are left out.
    init(_ reader: LogReader, through last: Position) {
        self.reader = reader
        self.last = last
        super.init(
            name: "events",
            declaration: Column.allCases.map(\.declaration).joined(separator: ", "))
    }

    override func cost(within bounds: [SQLBound]) -> SQLCost {
        var cost = SQLCost(lines: 1_000_000, rows: 1_000_000)
        for bound in bounds {
            switch (Column(rawValue: bound.column), bound.comparison) {
            case (.position, .equal), (.id, _):
                return SQLCost(lines: 100, rows: 1, isUnique: true)
            // All lines are read, if they are not decoded.
            case (.type, _): cost = SQLCost(lines: cost.lines / 2, rows: cost.rows / 20)
            default: cost = SQLCost(lines: cost.lines / 4, rows: cost.rows / 4)
            }
        }
        return cost
    }

    override func uses(_ bound: SQLBound) -> Bool {
        switch Column(rawValue: bound.column) {
        case .position, .time: true
        case .id, .type: bound.comparison == .equal
        default: false
        }
    }

    override func isSorted(byColumn column: Int) -> Bool { Column(rawValue: column) == .position }

    override func canSort(byColumn column: Int) -> Bool { Column(rawValue: column) == .type }

    override func rows(
        within bounds: [(SQLBound, SQLValue)], isSorted: Bool
    ) throws -> SQLRows {
        var first = Position(1)
        var last = last
        var type: [UInt8]?
        var times: [TimeBound] = []
        for (bound, value) in bounds {
            // A comparison with NULL is never true.
            if case .null = value { return SQLRows() }
            switch (Column(rawValue: bound.column), value) {
            case (.position, .integer(let number)):
                let position = Position(UInt64(max(0, number)))
                switch bound.comparison {
                case .equal:
                    first = max(first, position)
                    last = min(last, number < 0 ? .zero : position)
                case .greater: first = max(first, number < 0 ? first : position.next)
                case .greaterOrEqual: first = max(first, position)
                case .less:
                    last = min(last, position == .zero ? .zero : position.advanced(by: -1))
                case .lessOrEqual: last = min(last, position)
                }
            case (.id, .text(let text)):
                let id = UUID(uuidString: String(decoding: text, as: UTF8.self))
                guard let found = try id.flatMap({ try reader.position(of: $0.integer) }) else {
                    return SQLRows()
                }
                first = max(first, found)
                last = min(last, found)
            case (.type, .text(let text)): type = text
            case (.time, .text(let text)): times.append((bound.comparison, text))
            default: break
            }
        }
        if !times.isEmpty {
            guard let positions = try positions(within: times) else { return SQLRows() }
            (first, last) = (max(first, positions.lowerBound), min(last, positions.upperBound))
        }
        guard first <= last else { return SQLRows() }
        // Sorted rows may include other types, as all rows may.
        if isSorted { return TypeRows(reader, first...last) }
        return EventRows(reader, first...last, type)
    }

    /// The positions from the first to the last segment that may have a line within bounds of the time; nil if none
    /// has.
    private func positions(within times: [TimeBound]) throws -> ClosedRange<Position>? {
        let segments = try reader.outline()
        func mayMatch(_ segment: LogReader.SegmentOutline) -> Bool {
            times.allSatisfy { segment.mayMatch($0) }
        }
        guard let start = segments.firstIndex(where: mayMatch),
            let end = segments.lastIndex(where: mayMatch)
        else { return nil }
        let next = end + 1 < segments.count ? segments[end + 1].base : nil
        return segments[start].base...(next?.advanced(by: -1) ?? last)
    }
}

/// A comparison of the time with a text.
private typealias TimeBound = (comparison: SQLBound.Comparison, text: [UInt8])

extension LogReader.SegmentOutline {
    /// False if no line of a sealed segment has a time within a bound. Times are compared as texts, as SQLite does.
    fileprivate func mayMatch(_ bound: TimeBound) -> Bool {
        // Time 0 stands for a time that is written in another form.
        guard let times, times.lowerBound > 0 else { return true }
        func isAscending(_ first: some Sequence<UInt8>, _ second: some Sequence<UInt8>) -> Bool {
            !second.lexicographicallyPrecedes(first)
        }
        let oldest = Timestamp(milliseconds: times.lowerBound).description.utf8
        let newest = Timestamp(milliseconds: times.upperBound).description.utf8
        let text = bound.text
        return switch bound.comparison {
        case .equal: isAscending(oldest, text) && isAscending(text, newest)
        case .greater, .greaterOrEqual: isAscending(text, newest)
        case .less, .lessOrEqual: isAscending(oldest, text)
        }
    }
}

/// The lines of a log from one position to another.
private final class EventRows: SQLRows {
    private let directory: String
    private let portions: LinePortions
    private var portion = LinePortion()
    private var index = -1
    /// The members of the present line, nil if they need the decoder; nil until one is asked for.
    private var members: PlainLine??

    init(_ reader: LogReader, _ positions: ClosedRange<Position>, _ type: [UInt8]?) {
        directory = reader.directory
        // A type with a character that JSON escapes is compared by SQLite alone.
        let isPlain = type?.allSatisfy { $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C } ?? false
        // With the quotation mark that ends it.
        let text = isPlain ? type.map { $0 + [0x22] } : nil
        portions = LinePortions(reader, positions) { prefix, line in
            text.map { line.matches($0, at: prefix.byteCount) } ?? true
        }
    }

    deinit { portions.cancel() }

    override var rowID: Int64 { Int64(clamping: portion.lines[index].prefix.position.rawValue) }

    override func next() throws -> Bool {
        members = nil
        index += 1
        while index >= portion.lines.count {
            switch portion.end {
            case nil: (portion, index) = (portions.next(), 0)
            case .reached(let tail):
                if let tail { Message.note(Message.text(for: tail)) }
                return false
            // The lines before the damage came first.
            case .failed(let error): throw error
            }
        }
        return true
    }

    override func write(_ column: Int, to result: SQLResult) throws {
        let prefix = portion.lines[index].prefix
        let bytes = portion.bytes
        let line = bytes.span.bytes.extracting(portion.lines[index].range)
        switch EventsTable.Column(rawValue: column) {
        case .position: result.write(integer: Int64(clamping: prefix.position.rawValue))
        case .sequence: result.write(integer: Int64(clamping: prefix.sequence))
        case .own: result.write(integer: prefix.isOwn ? 1 : 0)
        case .bytes: result.write(integer: Int64(line.byteCount))
        case .line: result.write(text: line)
        case .id:
            result.write(text: line.extracting(LinePrefix.idOffset..<LinePrefix.idOffset + 36))
        case .source: result.write(UUID(integer: prefix.source).text)
        case .type:
            guard let end = line.endOfString(from: prefix.byteCount) else {
                return try writeDecoded(.type, line, to: result)
            }
            result.write(text: line.extracting(prefix.byteCount..<end))
        case let column?:
            if members == nil { members = PlainLine(line, prefix, to: .stored) }
            guard case .some(let plain?) = members else {
                return try writeDecoded(column, line, to: result)
            }
            let range: Range<Int>? =
                switch column {
                case .subject: plain.subject
                case .lane: plain.lane
                case .time: plain.timeText
                case .data: plain.data
                default: nil
                }
            if let range { result.write(text: line.extracting(range)) }
        case nil: break
        }
    }

    /// Writes a member of a line with escapes or extensions.
    private func writeDecoded(
        _ column: EventsTable.Column, _ line: RawSpan, to result: SQLResult
    ) throws {
        let event = try LogReader.event(line, OfflineModel.catalogue, directory: directory)
        switch column {
        case .type: result.write(event.type)
        case .subject: if let subject = event.subject { result.write(subject) }
        case .lane: result.write(event.lane)
        case .time: result.write(event.time.description)
        case .baseid: if let id = event.content.string("baseid") { result.write(id) }
        case .causationid: if let id = event.content.string("causationid") { result.write(id) }
        case .data: if let json = event.content.json { result.write(text: json.span.bytes) }
        default: break
        }
    }
}

extension PlainLine {
    /// The time as it is written.
    fileprivate var timeText: Range<Int> {
        let start = lane.upperBound + "\",\"time\":\"".utf8.count
        return start..<start + 24
    }
}

extension RawSpan {
    /// The offset of the quotation mark that ends a string; nil if the string has an escape.
    func endOfString(from start: Int) -> Int? {
        guard let end = offset(of: UInt8(ascii: "\""), from: start) else { return nil }
        let escape = extracting(start..<end).offset(of: UInt8(ascii: "\\"), from: 0)
        return escape == nil ? end : nil
    }
}
