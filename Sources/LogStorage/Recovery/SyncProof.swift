// Distinguishes a torn write from damage. A writer never writes while an earlier commit is unsynced, so
// bytes of a later write after the damage prove that the damaged bytes had been synced.
// Spec/format/recovery.md, REC-3, lists what proves what.

import LogFormat

/// Evidence that the bytes before it had been synced.
struct SyncProof: Equatable {
    /// The name of the evidence, for messages.
    var name: String
    /// The offset of the evidence from the damage.
    var offset: Int

    /// Searches the bytes from the damage on for evidence. O(n), except for rare lookalikes.
    static func find(_ bytes: RawSpan, _ context: ScanDamage.Context) -> SyncProof? {
        if context == .frame {
            if let proof = runningFrame(bytes) { return proof }
            // Compaction never writes in place, so a file with such a list has no torn write.
            if isListOfRemovedIDs(bytes, at: 0) {
                return SyncProof(name: "a list of removed ids", offset: 0)
            }
        }
        let sizeMax = UInt32(FormatLimit.blockBytesMax)
        var offset = 1
        while offset <= bytes.byteCount - 4 {
            if mayBegin(bytes.integer(at: offset), sizeMax),
                let name = evidence(bytes, at: offset, acceptsSingleBlock: context == .block)
            {
                return SyncProof(name: name, offset: offset)
            }
            offset += 1
        }
        return nil
    }

    /// True if a word can be a block's size or one of the magic numbers, which share their upper half. A
    /// quick test that rejects almost all words.
    @inline(__always)
    private static func mayBegin(_ word: UInt32, _ sizeMax: UInt32) -> Bool {
        word != 0
            && (word & 0x7FFF_FFFF <= sizeMax || word >> 16 == FrameHeader.magic >> 16)
    }

    /// Finds a running frame with a damaged header, followed by at least two intact blocks. Each block was
    /// a separate commit, so the second proves that the first had been synced.
    private static func runningFrame(_ bytes: RawSpan) -> SyncProof? {
        guard let first = block(bytes, at: FrameHeader.runningBytes),
            block(bytes, at: first.end) != nil
        else { return nil }
        return SyncProof(name: "a later block", offset: first.end)
    }

    /// The name of the evidence at an offset; nil if there is none.
    private static func evidence(_ bytes: RawSpan, at offset: Int, acceptsSingleBlock: Bool)
        -> String?
    {
        switch bytes.integer(at: offset, as: UInt32.self) {
        case FrameHeader.magic:
            guard let header = try? FrameHeader(bytes, at: offset),
                block(bytes, at: offset + header.encodedBytes) != nil
            else { return nil }
            return "a later frame"
        case SkippableFrame.cleanShutdownMarker.rawValue:
            return CleanShutdownMarker(bytes, at: offset) == nil
                ? nil : "a clean-shutdown marker"
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
            return acceptsSingleBlock || isCommit(first, bytes, at: offset) ? "a later block" : nil
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

    /// True if an intact block is a separate commit that a later block follows. The blocks of a torn big
    /// commit prove nothing. They are recognized by their size: all but the last are full, and no block
    /// follows the last.
    private static func isCommit(
        _ first: (end: Int, dataBytes: Int), _ bytes: RawSpan, at offset: Int
    ) -> Bool {
        guard block(bytes, at: first.end) != nil,
            let header = try? BlockHeader.read(bytes.integer(at: offset))
        else { return false }
        let data = bytes.extracting(offset + 4..<offset + 4 + first.dataBytes)
        let plaintext =
            header.isStored ? data.byteCount : BlockDecompressor.plaintextBytes(ofCompressed: data)
        return plaintext.map { $0 != FormatLimit.bigCommitBlockPlaintextBytes } ?? false
    }

    /// The block at an offset; nil unless its checksum matches.
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
