// Reads single lines of a log by their positions.

import LogFormat
import LogStorage

/// Reads of lines at known positions.
enum LineReading {
    /// The greatest distance of two positions that are read in one pass.
    private static let gapMax: UInt64 = 512

    /// Calls a closure with the lines at some positions. A position without a line is skipped.
    ///
    /// - Parameter positions: ascending.
    /// - Throws: `LogError`, and what `body` throws.
    /// - Complexity: O(bytes from the frame of the first position of each dense run to its last).
    static func forEachLine(
        at positions: [UInt64], in folder: LogFolder,
        _ body: (LinePrefix, RawSpan) throws -> Void
    ) throws {
        var start = 0
        while start < positions.count {
            var end = start
            while end + 1 < positions.count, positions[end + 1] - positions[end] <= gapMax {
                end += 1
            }
            let first = Position(positions[start])
            var cursor = folder.cursor(after: first.advanced(by: -1))
            var next = start
            try cursor.poll(through: Position(positions[end])) { prefix, line in
                while next <= end, positions[next] < prefix.position.rawValue { next += 1 }
                if next <= end, positions[next] == prefix.position.rawValue {
                    try body(prefix, line)
                    next += 1
                }
                return next <= end
            }
            start = end + 1
        }
    }
}
