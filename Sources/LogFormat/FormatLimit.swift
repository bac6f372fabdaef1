// The bounds of format 1. A reader allocates no more than these bounds, and no more than the bytes
// present need. A lower value would make old logs malformed; WriterSizes has the sizes that this writer
// chooses. Spec/format/segment.md and Spec/format/block-and-frame.md.

/// The bounds of log format 1.
public enum FormatLimit {
    /// The format version that this code writes, and the newest that it reads.
    public static let version: UInt16 = 1

    /// Bytes of a block, compressed or not: the size that every frame header announces.
    public static let blockBytesMax = 64 * 1024

    /// Plaintext bytes of every block of a big commit but the last. By this length, recovery recognizes
    /// the blocks of a torn big commit. 60 KiB and not 64 because the stock tool 1.9.4 misreads a stored
    /// block above 64 KiB at the end of a frame.
    public static let bigCommitBlockPlaintextBytes = 60 * 1024

    /// Plaintext bytes of a running frame.
    public static let runningFramePlaintextBytesMax = 256 * 1024

    /// Plaintext bytes of the largest commit.
    public static let commitPlaintextBytesMax = 4 * 1024 * 1024

    /// Bytes of one line, its newline not counted.
    public static let lineBytesMax = 1024 * 1024

    /// The unit of a live segment's size. Only recovery and an orderly close leave another size, so any
    /// other file was truncated by another program.
    public static let growthGranularityBytes = 4_096

    /// Bytes of the shortest line: its prefix. Bounds how many lines unreadable bytes can have held.
    public static let lineBytesMin = 164

    /// Lines of a segment before its last commit.
    static let segmentEventsBeforeLastCommitMax = 999_999

    /// The maximum of lines in a segment, as repair assumes it: `segmentEventsBeforeLastCommitMax`, then
    /// a commit full of the shortest lines.
    public static let segmentEventsMax =
        segmentEventsBeforeLastCommitMax + commitPlaintextBytesMax / lineBytesMin

    /// UTF-8 bytes of an account name in a segment header.
    public static let accountBytesMax = 255

    /// Bytes of the last segment of a log. Opening refuses a larger one; repair reads the first bytes of any
    /// segment up to this bound.
    public static let segmentBytesMax = 32 * 1024 * 1024

    /// Bytes of a footer. The prefixes in a segment's plaintext bound its events, so a larger length can
    /// only be damage.
    public static let footerBytesMax = 8 * 1024 * 1024

    /// The greatest position of a line. The numbers above it stay unused, so that arithmetic on a forged
    /// position does not overflow.
    public static let positionMax = UInt64.max - 1 << 32

    /// Bytes of a checkpoint's file, and of its plaintext.
    public static let checkpointPlaintextBytesMax = 256 * 1024 * 1024
}
