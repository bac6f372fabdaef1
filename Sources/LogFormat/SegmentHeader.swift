// The first 512 bytes of a segment: one skippable frame of fixed size, in a sector of its own, so
// that no later write touches it. Spec/format/segment.md, SEG-2.

/// The log and account of a segment, and its first position.
package struct SegmentHeader: Equatable, Sendable {
    /// The log that the segment belongs to.
    package var logID: UInt128
    /// The account that the log belongs to, if any.
    package var account: String?
    /// The first position that the segment may hold.
    package var base: Position
    /// The time of creation, in milliseconds since 1970.
    package var createdAt: Int64
    /// Features that a reader may ignore.
    package var compatibleFlags: UInt32 = 0

    /// The fixed size on disk.
    package static let encodedBytes = 512
    /// The incompatible features that this version supports: none yet.
    package static let knownIncompatibleFlags: UInt32 = 0

    private static let signature = Array("DAYBOOK\0".utf8)
    private static let accountOffset = 64
    private static let checksumOffset = 508

    package init(logID: UInt128, account: String?, base: Position, createdAt: Int64) {
        precondition((account?.utf8.count ?? 0) <= FormatLimit.accountBytesMax)
        self.logID = logID
        self.account = account
        self.base = base
        self.createdAt = createdAt
    }

    /// Encodes the header.
    package func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.encodedBytes)
        SkippableFrame.header.appendPrefix(
            contentBytes: Self.encodedBytes - SkippableFrame.prefixBytes, to: &bytes)
        bytes.append(contentsOf: Self.signature)
        bytes.append(littleEndian: FormatLimit.version)
        bytes.append(littleEndian: UInt16(0))
        bytes.append(littleEndian: Self.knownIncompatibleFlags)
        bytes.append(littleEndian: compatibleFlags)
        bytes.append(littleEndian: UInt32(0))
        bytes.append(littleEndian: logID)
        bytes.append(littleEndian: base.rawValue)
        bytes.append(littleEndian: createdAt)
        let account = Array((account ?? "").utf8)
        bytes.append(UInt8(account.count))
        bytes.append(contentsOf: account)
        bytes.append(
            contentsOf: repeatElement(UInt8(0), count: Self.checksumOffset - bytes.count))
        bytes.append(littleEndian: XXH32.hash(bytes.span.bytes))
        return bytes
    }

    /// Reads a header.
    ///
    /// The signature is checked first, then the checksum, then the version: a file of another program
    /// is `foreign`, a damaged one `checksum`, and only an intact one `newerVersion`.
    ///
    /// - Throws: `FormatError`: `truncated`, `foreign`, `checksum`, `newerVersion`,
    ///   `unknownFeature`, `malformed`.
    package init(_ bytes: RawSpan) throws(FormatError) {
        guard bytes.byteCount >= 16 else {
            throw FormatError(.truncated, "the file ends inside the segment header")
        }
        guard bytes.matches(Self.signature, at: 8) else {
            throw FormatError(.foreign, "the file does not begin as a Daybook segment does")
        }
        guard bytes.byteCount >= Self.encodedBytes else {
            throw FormatError(.truncated, "the file ends inside the segment header")
        }
        let covered = bytes.extracting(0..<Self.checksumOffset)
        guard XXH32.hash(covered) == bytes.integer(at: Self.checksumOffset, as: UInt32.self) else {
            throw FormatError(.checksum, "the segment header's checksum does not match")
        }
        let version: UInt16 = bytes.integer(at: 16)
        guard version == FormatLimit.version else {
            throw FormatError(
                .newerVersion,
                "the segment has format \(version); this version reads format "
                    + "\(FormatLimit.version). Update Daybook to open it")
        }
        let unknown = bytes.integer(at: 20, as: UInt32.self) & ~Self.knownIncompatibleFlags
        guard unknown == 0 else {
            throw FormatError(
                .unknownFeature,
                "the segment needs features (0x\(String(unknown, radix: 16))) that this version "
                    + "does not support. Update Daybook to open it")
        }
        guard let frame = SkippableFrame.read(bytes, at: 0), frame.kind == .header,
            frame.contentBytes == Self.encodedBytes - SkippableFrame.prefixBytes
        else { throw FormatError(.malformed, "the segment header's frame has a wrong size") }
        compatibleFlags = bytes.integer(at: 24)
        logID = bytes.integer(at: 32)
        base = Position(bytes.integer(at: 48))
        createdAt = bytes.integer(at: 56)
        let count = Int(bytes.byte(at: Self.accountOffset))
        let text = bytes.extracting(Self.accountOffset + 1..<Self.accountOffset + 1 + count)
        guard base >= Position(1), base.rawValue <= FormatLimit.positionMax,
            let account = String(utf8: text)
        else {
            throw FormatError(.malformed, "the segment header has an impossible value")
        }
        self.account = account.isEmpty ? nil : account
    }

    /// Reverts a single flipped bit in a header, or returns nil if no single bit explains the damage. The
    /// checksum identifies the bit: the chance that another of the 4,096 bits matches too is one in a
    /// million.
    package static func correctingBitFlip(in bytes: RawSpan) -> SegmentHeader? {
        guard bytes.byteCount >= encodedBytes else { return nil }
        var bytes = bytes.extracting(0..<encodedBytes).array
        for bit in 0..<encodedBytes * 8 {
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            let sum = XXH32.hash(bytes.span.bytes.extracting(0..<checksumOffset))
            if sum == bytes.span.bytes.integer(at: checksumOffset, as: UInt32.self) {
                return try? SegmentHeader(bytes.span.bytes)
            }
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
        return nil
    }
}
