// What can go wrong in one call. The numbers of calls are SimulatedFileSystem's; design §10, fault
// model 7 and 8.

import LogStorage

/// How one call fails.
public enum SimulatedFault: Hashable, Sendable {
    /// The call fails and has done nothing.
    case error(FileError.Code)
    /// A write fails when half of its bytes are written. Other calls fail and have done nothing.
    case shortWrite(FileError.Code)
    /// A sync fails in one of these ways. Other calls fail and have done nothing.
    case failedSync(FailedSync)

    /// Every fault that a call can have.
    public static let all: [SimulatedFault] =
        [.io, .noSpace, .readOnly].map { .error($0) } + [.io, .noSpace].map { .shortWrite($0) }
        + FailedSync.allCases.map { .failedSync($0) }
}

/// What a failed sync leaves in the page cache and on the medium (Rebello et al., "Can Applications
/// Recover from fsync Failures?", 2020).
public enum FailedSync: String, CaseIterable, Sendable {
    /// Nothing was written. The pages keep the new bytes and look clean, so a later sync that
    /// succeeds does not write them either (ext4, xfs).
    case pagesLookClean
    /// Nothing was written, and the pages show the old bytes again (btrfs).
    case pagesRevert
    /// The first half of the writes reached the medium; the rest as `pagesLookClean`.
    case partlyWritten
    /// Everything reached the medium, and the call failed all the same.
    case written
    /// Nothing was written; the pages stay dirty, and a later sync writes them.
    case pagesStayDirty
}
