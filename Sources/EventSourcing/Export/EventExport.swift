// The lines of a log as they leave it: byte for byte and in order, without their place there.
// Spec/logtool.md, TOOL-10.

import LogFormat
import LogStorage

/// What an export has written.
public struct ExportSummary: Hashable, Sendable {
    /// How many events.
    public var events = 0
    /// How many bytes.
    public var bytes = 0
    /// The first of them.
    public var first: Position?
    /// The last of them.
    public var last: Position?
    /// The last position that was read, wanted or not.
    package var reached: Position?

    /// Nothing.
    public init() {}
}

/// Which events of a log are exported.
package struct EventExport: Sendable {
    /// Their types as stored; nil for all.
    package var types: Set<String>?
    /// From this position on …
    package var from = Position(1)
    /// … up to this one; nil for the end.
    package var to: Position?

    /// All events.
    package init() {}

    /// Reads a log and hands on each wanted line with its line feed.
    ///
    /// - Parameter summary: what was handed on, after each line.
    /// - Returns: how the reading ended.
    /// - Throws: `LogError`: `corrupt` where the log is damaged, after everything before that; what
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
