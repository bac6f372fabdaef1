// The bounds of format 1 that a reader accepts. What it allocates is bounded by these and by the bytes
// that are really there, whichever is less. A lower value would make old logs malformed; the sizes that
// a writer chooses are WriterSizes. Spec/format/segment.md and Spec/format/block-and-frame.md.

/// The bounds of log format 1.
public enum FormatLimit {
    /// The format version this code writes and the newest it reads.
    public static let version: UInt16 = 1

    /// Bytes of a block, compressed or not: the size that every frame header announces.
    public static let blockBytesMax = 64 * 1024

    /// Plaintext bytes of every block of a big commit but the last. Recovery tells by this length whether
    /// a block is part of a torn big commit. 60 KiB and not 64 because the stock tool 1.9.4 misreads a
    /// stored block above 64 KiB at the end of a frame.
    public static let bigCommitBlockPlaintextBytes = 60 * 1024

    /// Plaintext bytes of a running frame.
    public static let runningFramePlaintextBytesMax = 256 * 1024

    /// Plaintext bytes of the largest commit.
    public static let commitPlaintextBytesMax = 4 * 1024 * 1024

    /// Bytes of one line, its newline not counted.
    public static let lineBytesMax = 1024 * 1024

    /// A live segment's size is a multiple of this, but right after it was closed or mended: a file
    /// of another size was cut by somebody else.
    public static let growthGranularityBytes = 4_096

    /// Bytes of the shortest line: its fixed beginning. What follows from it is how many lines bytes
    /// can have held that cannot be read any more.
    public static let lineBytesMin = 164

    /// Lines of a segment before its last commit.
    static let segmentEventsBeforeLastCommitMax = 999_999

    /// Lines that repair assumes a segment can have: those before its last commit, then a commit full of
    /// the shortest ones.
    public static let segmentEventsMax =
        segmentEventsBeforeLastCommitMax + commitPlaintextBytesMax / lineBytesMin

    /// UTF-8 bytes of an account name in a segment header.
    public static let accountBytesMax = 255

    /// Bytes of a segment file: a reader refuses more.
    public static let segmentBytesMax = 32 * 1024 * 1024

    /// Bytes of a footer: no segment has more events than its plaintext has prefixes, so a larger
    /// length can only be damage.
    public static let footerBytesMax = 8 * 1024 * 1024

    /// The last position that a line can have. The rest up to 2⁶⁴ is left free, so that a forged
    /// position makes no arithmetic overflow.
    public static let positionMax = UInt64.max - 1 << 32

    /// Bytes of a checkpoint's file, and of its plaintext.
    public static let checkpointPlaintextBytesMax = 256 * 1024 * 1024
}
