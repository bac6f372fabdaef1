// The name of a segment file is its first position: sorted by name, the segments are the history.
// Spec/format/segment.md, SEG-1.

import LogFormat

/// The file name of a segment.
package enum SegmentName {
    private static let suffix = ".lz4"

    /// The name of the segment that begins at a position.
    package static func of(_ base: Position) -> String {
        var bytes: [UInt8] = []
        LineText.append(number: base.rawValue, to: &bytes)
        return String(decoding: bytes, as: UTF8.self) + suffix
    }

    /// The position in a segment's name, or nil if `name` is not the name of a segment.
    package static func base(_ name: String) -> Position? {
        let bytes = Array(name.utf8)
        guard bytes.count == 20 + suffix.utf8.count, name.hasSuffix(suffix),
            let number = LineText.number(bytes.span.bytes, at: 0),
            (1...FormatLimit.positionMax).contains(number)
        else { return nil }
        return Position(number)
    }
}
