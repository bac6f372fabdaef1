// A result of verification. Spec/format/recovery.md, REC-7, lists the codes with their offsets and positions.

import LogFormat

/// A damage or inconsistency in a log.
package struct Finding: Hashable, Sendable {
    /// The kind of damage.
    package var code: String
    /// The segment file, or another entry of the log's folder.
    package var segment: String
    package var offset: Int?
    package var positions: ClosedRange<Position>?
    package var detail: String
    /// The positions whose lines cannot be read, in order; empty if there are none, or none is known.
    package var lost: [ClosedRange<Position>]
    /// False if lines after the last range of `lost` are lost as well, and their number is not known.
    package var lostEndIsKnown = true
    /// True if the position through which the log is compacted was in the damaged bytes, so that no stored state
    /// can be compared with a fold of the lines that are left.
    package var losesCompactedThrough = false
    /// The file whose damage has caused this finding; nil for damage of its own.
    package var cause: String?

    package init(
        code: String, segment: String, offset: Int?, positions: ClosedRange<Position>?,
        detail: String, lost: [ClosedRange<Position>] = []
    ) {
        self.code = code
        self.segment = segment
        self.offset = offset
        self.positions = positions
        self.detail = detail
        self.lost = lost
    }

    /// Creates a finding from an error of a segment.
    init(_ error: LogError, in segment: String, lost: [ClosedRange<Position>] = []) {
        self.init(
            code: error.code.rawValue, segment: segment, offset: error.offset,
            positions: error.positions, detail: error.detail, lost: lost)
    }

    /// Creates a finding for an entry that cannot be read, or that is no file or no folder although its name
    /// belongs to one.
    init(unreadable name: String, _ reason: String, lost: [ClosedRange<Position>] = []) {
        self.init(
            code: "unreadable", segment: name, offset: nil, positions: nil, detail: reason,
            lost: lost)
    }
}
