// The footer of a segment and the id index in it. Spec/format/segment.md, SEG-5 and SEG-6.

import LogFormat

/// Bit 0 of the mode repairs checksum and length; with bit 1 the input is an id index alone.
struct FooterCheck {
    let mode: UInt8

    /// The number of ids that are looked up, since a lookup decodes up to 128 entries.
    private static let lookups = 6

    func check(_ input: [UInt8]) throws {
        guard mode & 2 == 0 else { return try check(index: input, frameCount: 300) }
        var bytes = input
        if mode & 1 != 0, bytes.count >= 104 {
            ChecksumRepair.set(SkippableFrame.footer.rawValue, at: 0, of: &bytes)
            ChecksumRepair.set(UInt32(bytes.count - 8), at: 4, of: &bytes)
            ChecksumRepair.set(UInt32(bytes.count), at: bytes.count - 8, of: &bytes)
            let end = bytes.count - 4
            ChecksumRepair.set(ChecksumRepair.hash(bytes, 0..<end), at: end, of: &bytes)
        }
        if let length = SegmentFooter.length(atEnd: bytes.span.bytes) {
            try expect(length <= FormatLimit.footerBytesMax, "a footer is longer than the limit")
        }
        guard let footer = try? SegmentFooter(bytes.span.bytes) else { return }
        try expect(
            footer.frames.allSatisfy { $0.first <= footer.coveredThrough },
            "a footer names a frame after its end")
        let encoded = footer.encoded()
        let reread = try? SegmentFooter(encoded.span.bytes)
        try expect(reread == footer, "a footer changes when it is written and read")
        try check(index: footer.idIndex, frameCount: footer.frames.count)
    }

    /// Checks that each entry of an index is found after the index is written again.
    private func check(index bytes: [UInt8], frameCount: Int) throws {
        guard let index = try? IDIndex(bytes) else { return }
        for hash in [0, UInt32.max, index.hash(77)] { _ = try? index.frames(hash: hash) }
        guard let entries = try? index.entries() else { return }
        try expect(entries.count == index.count, "an index has another number of entries")
        for entry in entries.prefix(Self.lookups) { _ = try? index.frames(hash: entry.hash) }
        guard entries.allSatisfy({ $0.frame < frameCount }) else { return }
        let encoded = IDIndex.encode(entries, frameCount: frameCount, seed: index.hashSeed)
        let reread: IDIndex
        let all: [IDIndexEntry]
        do throws(FormatError) {
            reread = try IDIndex(encoded)
            all = try reread.entries()
        } catch { throw BrokenProperty(description: "a written index is refused: \(error)") }
        let sorted = entries.sorted { ($0.hash, $0.frame) < ($1.hash, $1.frame) }
        try expect(all == sorted, "an index changes when it is written and read")
        for entry in entries.prefix(Self.lookups) {
            let frames = (try? reread.frames(hash: entry.hash)) ?? []
            try expect(frames.contains(entry.frame), "an index does not find its own entry")
        }
    }
}
