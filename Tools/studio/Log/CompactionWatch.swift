// Detects that another process has compacted a log.

import LogFormat
import LogStorage

/// The sealed segments of a log at the last observation.
struct CompactionWatch {
    private var sealed: [Position: LogReader.SegmentOutline] = [:]

    /// Observes the segments.
    ///
    /// - Returns: true if one was rewritten since the last observation. A segment that was not sealed then and
    ///   is compacted now was rewritten between the two.
    mutating func detectRewrite(in outline: [LogReader.SegmentOutline]) -> Bool {
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
