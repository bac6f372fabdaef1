// Finds a footer from the end of its file, and checks the file against it.

import LogFormat

extension SegmentFooter {
    /// Reads the footer at the end of a file, and its offset; nil if there is no valid one.
    package static func read(
        atEndOf file: any File
    ) throws(FileError) -> (footer: SegmentFooter, start: Int)? {
        let size = try file.size()
        let guess = min(size, 64 * 1024)
        var bytes = try file.read(at: size - guess, count: guess)
        // A writer may meanwhile have sealed the segment and truncated its preallocated space.
        let end = size - guess + bytes.count
        guard let length = length(atEnd: bytes.span.bytes), length <= end else { return nil }
        if length > bytes.count { bytes = try file.read(at: end - length, count: length) }
        guard bytes.count >= length,
            let footer = try? SegmentFooter(
                bytes.span.bytes.extracting(bytes.count - length..<bytes.count))
        else { return nil }
        return (footer, end - length)
    }

    /// True if a footer, damaged or not, reaches from an offset to the file's end, according to its frame
    /// header or its last bytes. A footer that is being written does not: preallocated space follows it.
    static func isExpected(at offset: Int, of file: any File) throws(FileError) -> Bool {
        let length = try file.size() - offset
        guard length >= SkippableFrame.prefixBytes else { return false }
        let start = try file.read(at: offset, count: SkippableFrame.prefixBytes)
        let end = try file.read(
            at: offset + length - SkippableFrame.prefixBytes, count: SkippableFrame.prefixBytes)
        let frame = SkippableFrame.read(start.span.bytes, at: 0)
        return frame.map { $0.kind == .footer && $0.contentBytes == length - start.count } ?? false
            || Self.length(atEnd: end.span.bytes) == length
    }

    /// True if the footer covers at least one position and, unless the segment is compacted, none after its
    /// last line.
    ///
    /// - Parameter base: the segment's first position.
    func coversItsLines(from base: Position) -> Bool {
        coveredThrough >= base && (isCompacted || coveredThrough == lines?.upperBound)
    }

    /// The lines that the footer declares, for messages.
    var linesDescription: String {
        "its footer says \(lines?.lowerBound ?? .zero) to \(lines?.upperBound ?? .zero), "
            + "\(eventCount) lines, and that it covers positions up to \(coveredThrough)"
    }

    /// Computes the XXH64 of a file's bytes before an offset.
    package static func digest(of file: any File, through end: Int) throws(FileError) -> UInt64 {
        var hash = XXH64()
        var offset = 0
        while offset < end {
            let bytes = try file.read(at: offset, count: min(256 * 1024, end - offset))
            guard !bytes.isEmpty else { break }
            hash.update(bytes.span.bytes)
            offset += bytes.count
        }
        return hash.value()
    }
}
