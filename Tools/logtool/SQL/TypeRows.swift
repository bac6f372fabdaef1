// The rows of `events` for a statement that uses no column but the type, and wants it sorted or grouped: SQLite need
// not sort them, which takes more time than reading the log.

import DaybookOffline
import LogFormat
import LogStorage

/// The types of a log's events, sorted; the events of a type by position.
final class TypeRows: SQLRows {
    private let types: [(text: [UInt8], positions: PositionList)]
    private var index = -1
    private var positions = PositionList().makeIterator()
    private var position: UInt64?
    /// The error that ended the reading; it comes after the rows of the lines before it.
    private var failure: (any Error)?

    /// Reads the lines of a log.
    init(_ reader: LogReader, _ range: ClosedRange<Position>) {
        var types: [[UInt8]: PositionList] = [:]
        do {
            let outcome = try Self.read(reader, range, into: &types)
            if let tail = outcome.tornTail { Message.note(Message.text(for: tail)) }
        } catch { failure = error }
        // By bytes, as the collation BINARY.
        self.types = types.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            .map { ($0.key, $0.value) }
    }

    private static func read(
        _ reader: LogReader, _ range: ClosedRange<Position>,
        into types: inout [[UInt8]: PositionList]
    ) throws -> LogReader.Outcome {
        try reader.forEachLine(from: range.lowerBound) { prefix, line in
            guard prefix.position <= range.upperBound else { return false }
            let text: [UInt8] =
                if let end = LineMembers.endOfString(line, from: prefix.byteCount) {
                    line.extracting(prefix.byteCount..<end).array
                } else {
                    Array(
                        try LogReader.event(
                            line, OfflineModel.catalogue, directory: reader.directory
                        ).type.utf8)
                }
            types[text, default: PositionList()].append(prefix.position.rawValue)
            return prefix.position < range.upperBound
        }
    }

    override var rowID: Int64 { Int64(clamping: position ?? 0) }

    override func next() throws -> Bool {
        position = positions.next()
        while position == nil {
            index += 1
            guard index < types.count else {
                if let failure { throw failure }
                return false
            }
            positions = types[index].positions.makeIterator()
            position = positions.next()
        }
        return true
    }

    override func write(_ column: Int, to result: SQLResult) throws {
        let text = types[index].text
        result.write(text: text.span.bytes)
    }
}

/// Ascending positions, each as its difference from the one before it, in LEB128: mostly one byte.
private struct PositionList: Sequence {
    private var bytes: [UInt8] = []
    private var last: UInt64 = 0

    mutating func append(_ position: UInt64) {
        var value = position - last
        last = position
        while value > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }

    struct Iterator: IteratorProtocol {
        fileprivate let bytes: [UInt8]
        fileprivate var offset = 0
        fileprivate var last: UInt64 = 0

        mutating func next() -> UInt64? {
            guard offset < bytes.count else { return nil }
            var (value, shift): (UInt64, UInt64) = (0, 0)
            while bytes[offset] > 0x7F {
                value |= UInt64(bytes[offset] & 0x7F) << shift
                (offset, shift) = (offset + 1, shift + 7)
            }
            last += value | UInt64(bytes[offset]) << shift
            offset += 1
            return last
        }
    }

    func makeIterator() -> Iterator { Iterator(bytes: bytes) }
}
