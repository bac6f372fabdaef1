// The sizes that this writer chooses. No reader relies on them: a log may have blocks, frames and segments
// of other sizes, as long as they are within FormatLimit. Spec/format/block-and-frame.md, FRM-2.

/// The sizes of the blocks, frames and segments that a writer writes.
package struct WriterSizes: Sendable {
    /// The largest commit, in plaintext bytes, that becomes a block of a running frame; at most
    /// `FormatLimit.blockBytesMax`. A larger commit is a frame of its own.
    package var blockPlaintextBytes = FormatLimit.bigCommitBlockPlaintextBytes

    /// Plaintext bytes from which a running frame accepts no further block. Frames are seek points, and a
    /// damaged block makes the rest of its frame unreadable.
    package var framePlaintextBytes = 128 * 1024

    /// File size from which a segment accepts no further commit.
    package var segmentBytes = 16 * 1024 * 1024

    /// Events from which a segment accepts no further commit, so that its footer stays within bounds
    /// however small and compressible its events are.
    package var segmentEvents = FormatLimit.segmentEventsBeforeLastCommitMax + 1

    /// Bytes of a commit's lines, newlines counted.
    package static let commitPlaintextBytesMax = 4 * 1024 * 1024

    /// Bytes of a line, its newline not counted.
    package static let lineBytesMax = 1024 * 1024

    /// Plaintext bytes of a checkpoint. A larger state is folded at every opening instead of stored.
    package static let checkpointPlaintextBytesMax = 256 * 1024 * 1024

    package init() {}

    /// The upper bound of a running frame's plaintext: one byte below its size, then a full block.
    package var runningFramePlaintextBytesMax: Int { framePlaintextBytes - 1 + blockPlaintextBytes }

    /// The upper bound of a segment's file: one byte below its size, then the largest commit, then the
    /// largest footer.
    private var segmentFileBytesMax: Int {
        segmentBytes - 1 + BigCommit.encodedBytesMax(plaintextBytes: Self.commitPlaintextBytesMax)
            + FormatLimit.footerBytesMax
    }

    /// True if every reader accepts segments written with these sizes.
    package var areReadable: Bool {
        blockPlaintextBytes <= FormatLimit.blockBytesMax
            && runningFramePlaintextBytesMax <= FormatLimit.runningFramePlaintextBytesMax
            && segmentEvents <= FormatLimit.segmentEventsBeforeLastCommitMax + 1
            && segmentFileBytesMax <= FormatLimit.segmentBytesMax
    }
}
