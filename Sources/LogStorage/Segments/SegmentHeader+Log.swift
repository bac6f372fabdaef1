// The log that segments belong to, where a folder holds files of several logs. Repair and verification decide
// alike. Spec/format/repair.md, REP-2, P1.

import LogFormat

extension SegmentHeader {
    /// True if both segments belong to the same log and account.
    func isOfOneLog(with other: SegmentHeader) -> Bool {
        logID == other.logID && account == other.account
    }

    /// The first header of the log and account to which most of `headers` belong; of two with equally many, the
    /// one whose header comes first. Nil without headers. O(n).
    static func ofMost(_ headers: [SegmentHeader]) -> SegmentHeader? {
        struct Identity: Hashable {
            let logID: UInt128
            let account: String?
            init(_ header: SegmentHeader) { (logID, account) = (header.logID, header.account) }
        }
        var counts: [Identity: Int] = [:]
        for header in headers { counts[Identity(header), default: 0] += 1 }
        let most = counts.values.max()
        return headers.first { counts[Identity($0)] == most }
    }
}
