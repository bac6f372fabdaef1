// The rows of `events` for a statement that uses no column but the type, and wants it sorted or grouped: SQLite need
// not sort them, which takes more time than reading the log.

import DaybookOffline
import LogFormat
import LogStorage

/// The types of a log's events, sorted; the events of a type by position.
final class TypeRows: SQLRows {
    private let types: [(text: [UInt8], positions: PositionList)]
    private var index = -1
    /// Where the type's next position begins.
    private var offset = 0
    private var position: UInt64 = 0
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
                if let end = line.endOfString(from: prefix.byteCount) {
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

    override var rowID: Int64 { Int64(clamping: position) }

    override func next() throws -> Bool {
        if index < 0 || offset == types[index].positions.bytes.count {
            (index, offset, position) = (index + 1, 0, 0)
        }
        guard index < types.count else {
            if let failure { throw failure }
            return false
        }
        let bytes = types[index].positions.bytes
        position += try bytes.span.bytes.varint(at: &offset, end: bytes.count)
        return true
    }

    override func write(_ column: Int, to result: SQLResult) throws {
        let text = types[index].text
        result.write(text: text.span.bytes)
    }
}

/// Ascending positions, each as its difference from the one before it: mostly one byte.
private struct PositionList {
    private(set) var bytes: [UInt8] = []
    private var last: UInt64 = 0

    mutating func append(_ position: UInt64) {
        bytes.append(varint: position - last)
        last = position
    }
}
