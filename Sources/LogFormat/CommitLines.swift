// The lines of one commit, each with its prefix, length and time, from the encoder to the log: no line
// is parsed twice. Spec/format/block-and-frame.md, FRM-4.

/// The lines of one commit, in order of position.
package struct CommitLines: Sendable {
    /// A line of the commit.
    package struct Line: Sendable {
        package let prefix: LinePrefix
        /// Bytes of the line, its newline not counted.
        package let byteCount: Int
        /// The event's time, in milliseconds since 1970; 0 for a line without one.
        package let time: Int64
    }

    /// The text of all lines, each with its newline.
    package private(set) var bytes: [UInt8] = []
    /// The lines, in the order of the text.
    package private(set) var lines: [Line] = []

    package init() {}

    /// Reads the lines of an encoded commit. O(bytes).
    ///
    /// - Precondition: each line ends with a newline and begins as a stored line must.
    package init(_ text: [UInt8]) {
        precondition(text.last == UInt8(ascii: "\n"), "the last line of a commit has no newline")
        bytes = text
        var start = 0
        while let end = text.span.bytes.offset(of: UInt8(ascii: "\n"), from: start) {
            let line = text.span.bytes.extracting(start..<end)
            guard let prefix = try? LinePrefix(line) else {
                preconditionFailure("a line does not begin as a stored line must")
            }
            lines.append(
                Line(
                    prefix: prefix, byteCount: end - start, time: LinePrefix.time(of: line) ?? 0))
            start = end + 1
        }
    }

    /// Reserves memory for `count` lines of `byteCount` bytes in total.
    package mutating func reserveCapacity(lines count: Int, bytes byteCount: Int) {
        lines.reserveCapacity(count)
        bytes.reserveCapacity(byteCount)
    }

    /// Appends a line.
    ///
    /// - Parameter write: appends the line's text, which begins with the prefix and ends with a newline.
    /// - Returns: the line's range in `bytes`, its newline not included.
    package mutating func append(
        _ prefix: LinePrefix, time: Int64, _ write: (inout [UInt8]) -> Void
    ) -> Range<Int> {
        let start = bytes.count
        write(&bytes)
        let end = bytes.count - 1
        lines.append(Line(prefix: prefix, byteCount: end - start, time: time))
        return start..<end
    }

    /// Appends the lines of another commit. O(its bytes).
    package mutating func append(_ other: CommitLines) {
        if lines.isEmpty { return self = other }
        bytes.append(contentsOf: other.bytes)
        lines.append(contentsOf: other.lines)
    }

    /// The first `count` lines. O(their bytes).
    package func prefix(_ count: Int) -> CommitLines {
        var first = CommitLines()
        first.lines = Array(lines[..<count])
        first.bytes = Array(bytes[..<first.lines.reduce(0) { $0 + $1.byteCount + 1 }])
        return first
    }
}
