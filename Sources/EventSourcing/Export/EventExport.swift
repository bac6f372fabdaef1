// Exports the lines of a log byte for byte, in order, without their positions.
// Spec/operations/logtool.md, TOOL-10.

import LogFormat
import LogStorage

/// The result of an export.
public struct ExportSummary: Hashable, Sendable {
    /// The number of events.
    public var events = 0
    /// The number of bytes.
    public var bytes = 0
    /// The position of the first exported event; nil without any.
    public var first: Position?
    /// The position of the last exported event; nil without any.
    public var last: Position?
    /// The last position read, exported or not.
    package var reached: Position?

    /// Creates an empty summary.
    public init() {}
}

extension ExportSummary: CustomStringConvertible {
    /// The number of events, their bytes, and the first and the last position.
    public var description: String {
        var text = "\(events.counted("event")), \(bytes.counted("byte"))"
        if let first, let last {
            text += first == last ? ", position \(first)" : ", positions \(first) to \(last)"
        }
        return text
    }
}

/// A selection of a log's events to export.
package struct EventExport: Sendable {
    /// Their types as stored; nil for all.
    package var types: Set<String>?
    /// The first position to export.
    package var from = Position(1)
    /// The last position to export; nil for the end of the log.
    package var to: Position?

    /// Creates an export of all events.
    package init() {}

    /// Reads a log and writes each selected line with its line feed.
    ///
    /// - Parameter summary: the events and bytes written so far, updated after each line.
    /// - Returns: the outcome of the read.
    /// - Throws: `LogError`: `corrupt` if the log is damaged, after all lines before the damage; what
    ///   `write` throws; `CancellationError`.
    @discardableResult
    package func write(
        _ reader: LogReader, _ summary: inout ExportSummary,
        isCancelled: () -> Bool = { false },
        to write: (_ line: [UInt8], _ summary: ExportSummary) throws -> Void
    ) throws -> LogReader.Outcome {
        var line: [UInt8] = []
        return try reader.forEachLine(from: from) { prefix, stored in
            if isCancelled() { throw CancellationError() }
            if let to, prefix.position > to { return false }
            summary.reached = prefix.position
            if let types, !types.contains(try Self.type(of: stored, prefix, reader.directory)) {
                return true
            }
            line.removeAll(keepingCapacity: true)
            prefix.appendExported(stored, to: &line)
            line.append(UInt8(ascii: "\n"))
            summary.events += 1
            summary.bytes += line.count
            summary.first = summary.first ?? prefix.position
            summary.last = prefix.position
            try write(line, summary)
            return true
        }
    }

    private static func type(
        of line: RawSpan, _ prefix: LinePrefix, _ directory: String
    ) throws(LogError) -> String {
        do throws(EventError) {
            return try LineDecoder.decode(line, to: .stored).draft.type
        } catch {
            throw LogError(
                .corrupt, path: directory, positions: prefix.position...prefix.position,
                "the line is not an event: \(error.detail)")
        }
    }
}
