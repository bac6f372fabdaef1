// Every bound of format 1, in one place. What a reader allocates is bounded by these and by the
// bytes that are really there, whichever is less. Spec/segment.md and Spec/block-and-frame.md.

/// The bounds of log format 1.
public enum FormatLimit {
    /// The format version this code writes and the newest it reads.
    public static let version: UInt16 = 1

    /// Plaintext bytes that fit one block. A commit up to this size is one block of the running
    /// frame; a larger one is a frame of its own. 60 KiB and not the frame's 64 KiB because the
    /// stock tool 1.9.4 misreads a stored block above 64 KiB at the end of a frame.
    public static let blockPlaintextBytesMax = 60 * 1024

    /// Block size announced in every frame header: what a block may decompress to at most.
    public static let announcedBlockBytesMax = 64 * 1024

    /// Plaintext after which a running frame takes no further block. Frames are seek points and
    /// bound what one damaged block takes along.
    public static let framePlaintextBytesTarget = 128 * 1024

    /// The most plaintext a running frame can hold: one byte under the target, then a full block.
    public static let runningFramePlaintextBytesMax =
        framePlaintextBytesTarget - 1 + blockPlaintextBytesMax

    /// Plaintext bytes of the largest commit.
    public static let commitPlaintextBytesMax = 4 * 1024 * 1024

    /// Bytes of one line, its newline not counted.
    public static let lineBytesMax = 1024 * 1024

    /// File size from which a segment takes no further commit.
    public static let segmentBytesTarget = 16 * 1024 * 1024

    /// Events from which a segment takes no further commit, so that its footer stays within bounds
    /// however small and alike its events are.
    public static let segmentEventsTarget = 1_000_000

    /// A live segment's size is a multiple of this, but right after it was closed or mended: a file
    /// of another size was cut by somebody else.
    public static let growthGranularityBytes = 4_096

    /// Bytes of the shortest line: its fixed beginning. What follows from it is how many lines bytes
    /// can have held that cannot be read any more.
    public static let lineBytesMin = 164

    /// The most lines a segment can have: one under its target, then a full commit.
    public static let segmentEventsMax =
        segmentEventsTarget - 1 + commitPlaintextBytesMax / lineBytesMin

    /// How far back in the plaintext of its frame a block may refer.
    public static let historyBytesMax = 64 * 1024

    /// UTF-8 bytes of an account name in a segment header.
    public static let accountBytesMax = 255

    /// Bytes of a segment file: a reader refuses more. The target, one more commit and a footer fit.
    public static let segmentBytesMax = 32 * 1024 * 1024

    /// Bytes of a footer: no segment has more events than its plaintext has prefixes, so a larger
    /// length can only be damage.
    public static let footerBytesMax = 8 * 1024 * 1024

    /// The last position that a line can have. The rest up to 2⁶⁴ is left free, so that a forged
    /// position makes no arithmetic overflow.
    public static let positionMax = UInt64.max - 1 << 32

    /// Plaintext bytes of a checkpoint. A state beyond is not stored but folded at every opening.
    public static let checkpointPlaintextBytesMax = 256 * 1024 * 1024
}
