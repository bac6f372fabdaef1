// Checkpoints: the bytes of a file, or of a checkpoint's content. Spec/format/checkpoint.md.

import LogFormat
import LogStorage

/// Bit 0 of the mode repairs checksums; with bit 1 the input is a checkpoint's content, which is packed.
struct CheckpointCheck {
    let mode: UInt8

    func check(_ input: [UInt8]) throws {
        var bytes = mode & 2 != 0 ? Self.packed(input) : input
        if mode & 1 != 0 { Self.repairChecksums(&bytes) }
        guard let checkpoint = try? Checkpoint(bytes.span.bytes) else { return }
        let header = Checkpoint.header(bytes.span.bytes)
        try expect(
            header?.position == checkpoint.position && header?.createdAt == checkpoint.createdAt,
            "a checkpoint's header differs from the checkpoint")
        let encoded: [UInt8]
        let reread: Checkpoint
        do throws(FormatError) {
            encoded = try checkpoint.encoded()
            reread = try Checkpoint(encoded.span.bytes)
        } catch { throw BrokenProperty(description: "a written checkpoint is refused: \(error)") }
        try expect(reread == checkpoint, "a checkpoint changes when it is written and read")
        guard let live = checkpoint.live, let index = try? IDIndex(live.footer.idIndex) else {
            return
        }
        var contents = SegmentContents(resuming: live)
        contents.setOlderIDs(index)
        _ = contents.olderFrames(id: 77)
        _ = contents.footer(seed: 5, digest: 0)
    }

    /// An empty id index.
    private static let idIndex = IDIndex.encode([], frameCount: 0, seed: 0)

    /// Packs content into a complete checkpoint.
    private static func packed(_ input: [UInt8]) -> [UInt8] {
        var body = input
        let hasLive = repairContent(&body)
        var bytes = Array("DAYBOOKC".utf8)
        bytes.append(littleEndian: Checkpoint.version)
        bytes += [UInt8](repeating: 0, count: 6 + 16)
        bytes.append(littleEndian: UInt64(1_000))
        bytes += [UInt8](repeating: 0, count: 16 + 8)
        bytes.append(littleEndian: UInt64(body.count))
        bytes.append(littleEndian: UInt64(0))
        if !body.isEmpty {
            BigCommit.append(body.span.bytes, to: &bytes)
            bytes.append(littleEndian: UInt32(0))
        }
        ChecksumRepair.set(UInt64(bytes.count + 8), at: 72, of: &bytes)
        bytes.append(littleEndian: ChecksumRepair.digest(bytes, 0..<bytes.count))
        return hasLive ? bytes + Self.idIndex : bytes
    }

    /// Repairs the checksums of the blocks in a file's head, and its digest.
    static func repairChecksums(_ bytes: inout [UInt8]) {
        guard bytes.count >= Checkpoint.headerBytes + 8 else { return }
        let head = Checkpoint.header(bytes.span.bytes)?.headBytes ?? bytes.count
        let end = min(max(head, Checkpoint.headerBytes + 8), bytes.count) - 8
        ChecksumRepair.repairFrames(&bytes, from: Checkpoint.headerBytes)
        ChecksumRepair.set(ChecksumRepair.digest(bytes, 0..<end), at: end, of: &bytes)
    }

    /// Repairs the footer in a checkpoint's content, the length and digest of the id index, and the
    /// hashes of the states.
    ///
    /// - Returns: whether there is a live segment.
    private static func repairContent(_ body: inout [UInt8]) -> Bool {
        guard body.count >= 5 else { return false }
        var offset = 4 + 16 * Int(body.span.bytes.integer(at: 0, as: UInt32.self) & 0xFFFF)
        guard offset < body.count else { return false }
        let hasLive = body[offset] != 0
        offset += 1
        if hasLive {
            guard offset + 36 <= body.count else { return true }
            ChecksumRepair.set(UInt64(idIndex.count), at: offset + 16, of: &body)
            ChecksumRepair.set(
                ChecksumRepair.digest(idIndex, 0..<idIndex.count), at: offset + 24, of: &body)
            let length = Int(body.span.bytes.integer(at: offset + 32, as: UInt32.self))
            offset += 36
            guard length >= 104, offset + length <= body.count else { return true }
            let end = offset + length - 4
            ChecksumRepair.set(ChecksumRepair.hash(body, offset..<end), at: end, of: &body)
            offset += length
        }
        guard offset + 4 <= body.count else { return hasLive }
        offset += 4
        while offset + 2 <= body.count {
            offset += 2 + Int(body.span.bytes.integer(at: offset, as: UInt16.self)) + 20
            guard offset + 16 <= body.count else { return hasLive }
            let length = Int(body.span.bytes.integer(at: offset, as: UInt32.self))
            let start = offset + 16
            guard start + length <= body.count else { return hasLive }
            ChecksumRepair.set(
                ChecksumRepair.digest(body, start..<start + length), at: offset + 8, of: &body)
            offset = start + length
        }
        return hasLive
    }
}
