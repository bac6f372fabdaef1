// Finds out whether another process has compacted a log since it was last looked at.

import LogFormat
import LogStorage

/// The sealed segments of a log when it was last looked at.
struct CompactionWatch {
    private var sealed: [Position: LogReader.SegmentOutline] = [:]

    /// Looks at the segments. True if one was rewritten since the last time. A segment that was not sealed
    /// then and is compacted now was rewritten between.
    mutating func isRewritten(_ outline: [LogReader.SegmentOutline]) -> Bool {
        let before = sealed
        sealed = Dictionary(
            outline.filter(\.isSealed).map { ($0.base, $0) }, uniquingKeysWith: { $1 })
        return sealed.contains { base, segment in
            guard let known = before[base] else { return segment.compactedThrough > .zero }
            return segment.bytes != known.bytes
                || segment.compactedThrough != known.compactedThrough
        }
    }
}
