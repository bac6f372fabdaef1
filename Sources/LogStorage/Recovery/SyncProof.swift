// Torn or damaged? A writer never writes while an earlier commit is unsynced, so whatever stands
// behind a bad place and came with a later write proves that the bad place had been synced.
// Spec/format/recovery.md, REC-3, explains which finding proves what.

import LogFormat

/// Evidence that bytes before it had been synced.
struct SyncProof: Equatable {
    /// What it is, in words.
    var what: String
    /// Where it is, counted from the bad place.
    var offset: Int

    /// Looks for evidence in the bytes from a bad place on. O(n), but for the rare lookalikes.
    static func find(_ bytes: RawSpan, _ context: ScanDamage.Context) -> SyncProof? {
        if context == .frame {
            if let proof = runningFrame(bytes) { return proof }
            // Compaction never writes in place: where a list stands, nothing is torn.
            if isListOfRemovedIDs(bytes, at: 0) {
                return SyncProof(what: "a list of removed ids", offset: 0)
            }
        }
        let sizeMax = UInt32(FormatLimit.blockBytesMax)
        var offset = 1
        while offset <= bytes.byteCount - 4 {
            if mayBegin(bytes.integer(at: offset), sizeMax),
                let what = evidence(bytes, at: offset, blocksCount: context == .block)
            {
                return SyncProof(what: what, offset: offset)
            }
            offset += 1
        }
        return nil
    }

    /// Whether a word can be a block's size or one of the magic numbers, which all begin alike: almost
    /// none can.
    @inline(__always)
    private static func mayBegin(_ word: UInt32, _ sizeMax: UInt32) -> Bool {
        word != 0
            && (word & 0x7FFF_FFFF <= sizeMax || word >> 16 == FrameHeader.magic >> 16)
    }

    /// A frame whose header is damaged but behind which at least two good blocks follow each other
    /// as in a running frame: each was a commit of its own, so the first had been synced.
    private static func runningFrame(_ bytes: RawSpan) -> SyncProof? {
        guard let first = block(bytes, at: FrameHeader.runningBytes),
            block(bytes, at: first.end) != nil
        else { return nil }
        return SyncProof(what: "a later block", offset: first.end)
    }

    private static func evidence(_ bytes: RawSpan, at offset: Int, blocksCount: Bool) -> String? {
        switch bytes.integer(at: offset, as: UInt32.self) {
        case FrameHeader.magic:
            guard let header = try? FrameHeader(bytes, at: offset),
                block(bytes, at: offset + header.encodedBytes) != nil
            else { return nil }
            return "a later frame"
        case SkippableFrame.closeMark.rawValue:
            return CloseMark(bytes, at: offset) == nil ? nil : "a close mark"
        case SkippableFrame.footer.rawValue:
            guard let frame = SkippableFrame.read(bytes, at: offset) else { return nil }
            let end = offset + SkippableFrame.prefixBytes + frame.contentBytes
            guard end <= bytes.byteCount,
                (try? SegmentFooter(bytes.extracting(offset..<end))) != nil
            else { return nil }
            return "a footer"
        case SkippableFrame.removedIDs.rawValue:
            return isListOfRemovedIDs(bytes, at: offset) ? "a list of removed ids" : nil
        default:
            guard let first = block(bytes, at: offset) else { return nil }
            return blocksCount || isCommit(first, bytes, at: offset) ? "a later block" : nil
        }
    }

    private static func isListOfRemovedIDs(_ bytes: RawSpan, at offset: Int) -> Bool {
        guard let frame = SkippableFrame.read(bytes, at: offset) else { return false }
        let end = offset + SkippableFrame.prefixBytes + frame.contentBytes
        let records = offset + RemovedIDs.prefixBytes
        let digest = end - RemovedIDs.digestBytes
        guard end <= bytes.byteCount, records <= digest,
            var reader = try? RemovedIDsReader(
                prefix: bytes.extracting(offset..<records), base: .zero, through: Position(.max)),
            (try? reader.update(records: bytes.extracting(records..<digest))) != nil
        else { return false }
        return (try? reader.finish(digest: bytes.extracting(digest..<end))) != nil
    }

    /// Is a good block a commit of its own, with a later one behind it? Where a torn big commit may
    /// stand, its blocks prove nothing. But all of those are full except the last, and behind the
    /// last there is no block.
    private static func isCommit(
        _ found: (end: Int, dataBytes: Int), _ bytes: RawSpan, at offset: Int
    ) -> Bool {
        guard block(bytes, at: found.end) != nil,
            let header = try? BlockHeader.read(bytes.integer(at: offset))
        else { return false }
        let data = bytes.extracting(offset + 4..<offset + 4 + found.dataBytes)
        let plaintext =
            header.isStored ? data.byteCount : BlockDecompressor.plaintextBytes(ofCompressed: data)
        return plaintext.map { $0 != FormatLimit.bigCommitBlockPlaintextBytes } ?? false
    }

    /// The block at an offset if its checksum is right.
    private static func block(_ bytes: RawSpan, at offset: Int) -> (end: Int, dataBytes: Int)? {
        guard offset <= bytes.byteCount - 4,
            let header = try? BlockHeader.read(bytes.integer(at: offset)),
            offset + header.blockBytes <= bytes.byteCount
        else { return nil }
        let data = bytes.extracting(offset + 4..<offset + 4 + header.dataBytes)
        let checksum: UInt32 = bytes.integer(at: offset + 4 + header.dataBytes)
        guard XXH32.hash(data) == checksum else { return nil }
        return (offset + header.blockBytes, header.dataBytes)
    }
}
