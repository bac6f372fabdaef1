// The segment reader on arbitrary bytes: header, scanner, footer. Commits must be in order and within
// the limits, and every step must make progress. Spec/format/segment.md.

import LogFormat
import LogStorage

/// Bit 0 of the mode repairs checksums, bit 1 allows holes.
struct SegmentCheck {
    let mode: UInt8

    func check(_ input: [UInt8]) throws {
        var bytes = input
        if mode & 1 != 0 { ChecksumRepair.repairSegment(&bytes) }
        let file = BytesFile(bytes)
        var base = Position(1)
        if let header = try? SegmentHeader(bytes.span.bytes) {
            base = header.base
            let encoded = header.encoded()
            let reread = try? SegmentHeader(encoded.span.bytes)
            try expect(reread == header, "a header changes when it is written and read")
        }
        try scan(file, from: base, allowsHoles: mode & 2 != 0)
        if let footer = try SegmentFooter.read(atEndOf: file) {
            try expect(
                footer.start >= 0 && footer.start < bytes.count, "a footer begins outside the file")
        }
    }

    /// Scans to the first bytes that are not a commit.
    private func scan(_ file: BytesFile, from base: Position, allowsHoles: Bool) throws {
        var scanner = SegmentScanner(file, expecting: base, allowsHoles: allowsHoles)
        var end = SegmentHeader.encodedBytes
        var last = Position(base.rawValue - 1)
        var frame = 0
        while true {
            let plaintextBefore = scanner.plaintextBytes
            guard case .commit(let commit) = try scanner.next() else { break }
            try expect(
                commit.offset >= end && commit.end > commit.offset
                    && commit.end <= file.bytes.count, "a commit does not follow the one before")
            try expect(!commit.lines.isEmpty, "a commit has no line")
            try expect(
                commit.frameOffset == frame || commit.beginsFrame,
                "a commit is in another frame and does not begin it")
            var text = commit.beginsFrame ? 0 : plaintextBefore
            for line in commit.lines {
                let position = line.prefix.position
                try expect(
                    allowsHoles ? position > last : position == last.next,
                    "position \(position) follows \(last)")
                last = position
                try expect(
                    line.range.lowerBound == text
                        && line.range.upperBound < scanner.plaintextBytes
                        && line.range.count <= FormatLimit.lineBytesMax, "a line has no end")
                text = line.range.upperBound + 1
                var encodedPrefix: [UInt8] = []
                line.prefix.append(to: &encodedPrefix)
                let stored = scanner.plaintext[line.range]
                try expect(
                    stored.starts(with: encodedPrefix),
                    "an encoded prefix differs from the stored one")
            }
            try expect(text == scanner.plaintextBytes, "bytes of a block are in no line")
            try expect(
                scanner.plaintextBytes
                    <= (commit.isBig
                        ? FormatLimit.commitPlaintextBytesMax
                        : FormatLimit.runningFramePlaintextBytesMax),
                "a frame has too many bytes of plaintext")
            frame = commit.frameOffset
            end = commit.end
        }
    }
}

/// A read-only file in an array, for speed.
final class BytesFile: File {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func size() -> Int { bytes.count }
    func identity() -> UInt64 { 1 }
    func isLinked() -> Bool { true }
    func read(at offset: Int, count: Int) -> [UInt8] {
        guard offset < bytes.count else { return [] }
        return Array(bytes[offset..<min(bytes.count, offset + count)])
    }
    func write(_ bytes: [UInt8], at offset: Int) throws(FileError) { throw Self.readOnly }
    func allocate(size: Int) throws(FileError) { throw Self.readOnly }
    func truncate(to size: Int) throws(FileError) { throw Self.readOnly }
    func sync() {}
    func lock() -> Bool { true }

    private static let readOnly = FileError(
        .readOnly, operation: "write", path: "", reason: "the file is read-only")
}
