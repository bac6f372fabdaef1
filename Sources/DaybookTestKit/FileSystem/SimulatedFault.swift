// The faults of one file system call. Faults F7 and F8 of Spec/testing/testing.md.

import LogStorage

/// The fault of one call.
public enum SimulatedFault: Hashable, Sendable {
    /// The call fails without effect.
    case error(FileError.Code)
    /// A write fails after half of its bytes. Other calls fail without effect.
    case shortWrite(FileError.Code)
    /// A sync fails in one of these ways. Other calls fail without effect.
    case failedSync(FailedSync)

    /// Every fault that a call can have.
    public static let all: [SimulatedFault] =
        [.io, .noSpace, .readOnly].map { .error($0) } + [.io, .noSpace].map { .shortWrite($0) }
        + FailedSync.allCases.map { .failedSync($0) }
}

/// The state of the page cache and the medium after a failed sync (Rebello et al., "Can Applications Recover
/// from fsync Failures?", 2020).
public enum FailedSync: String, CaseIterable, Sendable {
    /// Nothing was written. The pages keep the new bytes and are marked clean, so a later sync that succeeds
    /// does not write them either (ext4, xfs).
    case pagesLookClean
    /// Nothing was written, and the pages have the old bytes again (btrfs).
    case pagesRevert
    /// The first half of the writes reached the medium; the others are as with `pagesLookClean`.
    case partlyWritten
    /// Everything reached the medium, although the call failed.
    case written
    /// Nothing was written; the pages stay dirty, and a later sync writes them.
    case pagesStayDirty
}
