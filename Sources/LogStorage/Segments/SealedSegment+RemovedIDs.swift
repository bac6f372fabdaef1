// Reads the lists of removed ids of a compacted segment. A list is first read in full, in portions, to check
// its digest. After that a lookup reads at most 64 records. Spec/format/segment.md, SEG-8.

import LogFormat

/// A list of removed ids and its offset in the segment.
struct RemovedIDsInFile: Sendable {
    var list: RemovedIDs
    var offset: Int

    var end: Int { offset + RemovedIDs.encodedBytes(count: list.count) }

    /// The number of records to read at a time.
    private static let portionRecords = 8 * 1_024

    /// Reads the list that begins at an offset and ends at `end` or before.
    ///
    /// - Throws: `corrupt` if it is damaged.
    static func read(
        _ file: any File, path: String, at offset: Int, until end: Int,
        of positions: ClosedRange<Position>
    ) throws(LogError) -> RemovedIDsInFile {
        func bytes(_ at: Int, _ count: Int) throws(LogError) -> [UInt8] {
            try storage { () throws(FileError) in
                try file.read(at: at, count: min(count, end - at))
            }
        }
        func format<T>(_ body: () throws(FormatError) -> T) throws(LogError) -> T {
            do throws(FormatError) { return try body() } catch {
                throw LogError(error, path: path, offset: offset)
            }
        }
        let prefix = try bytes(offset, RemovedIDs.prefixBytes)
        var reader = try format { () throws(FormatError) in
            try RemovedIDsReader(
                prefix: prefix.span.bytes, base: positions.lowerBound,
                through: positions.upperBound)
        }
        try format { () throws(FormatError) in
            guard offset + reader.encodedBytes <= end else {
                throw FormatError(.truncated, "a list of removed ids overlaps the footer")
            }
        }
        var at = offset + prefix.count
        while reader.remaining > 0 {
            let count = min(reader.remaining, portionRecords) * RemovedIDs.recordBytes
            let records = try bytes(at, count)
            try format { () throws(FormatError) in
                guard records.count == count else {
                    throw FormatError(.truncated, "the file ends inside a list of removed ids")
                }
                try reader.update(records: records.span.bytes)
            }
            at += count
        }
        let digest = try bytes(at, RemovedIDs.digestBytes)
        let list = try format { () throws(FormatError) in
            try reader.finish(digest: digest.span.bytes)
        }
        return RemovedIDsInFile(list: list, offset: offset)
    }
}

extension SealedSegment {
    /// Reads the lists of removed ids, oldest first.
    ///
    /// - Throws: `corrupt` if one is damaged, or if they do not fill the space between the last frame and the
    ///   footer.
    /// - Complexity: O(removed ids); memory for every 64th id.
    func removedIDs() throws(LogError) -> [RemovedIDsInFile] {
        var lists: [RemovedIDsInFile] = []
        var offset = footerAt - (footer.compaction?.removedIDBytes ?? 0)
        do throws(FormatError) {
            guard offset >= SegmentHeader.encodedBytes,
                offset == footerAt || footer.coveredThrough >= header.base
            else {
                throw FormatError(
                    .malformed, "the footer names a size of removed ids that the file cannot have")
            }
        } catch { throw LogError(error, path: path, offset: footerAt) }
        while offset < footerAt {
            let list = try RemovedIDsInFile.read(
                file, path: path, at: offset, until: footerAt,
                of: header.base...footer.coveredThrough)
            lists.append(list)
            offset = list.end
        }
        return lists
    }

    /// Finds the record of an id in one of the lists. O(log removed ids), and one read.
    func find(_ id: UInt128, in removed: RemovedIDsInFile) throws(LogError) -> RemovedID? {
        guard let range = removed.list.recordRange(of: id) else { return nil }
        let bytes = try storage { () throws(FileError) in
            try file.read(at: removed.offset + range.lowerBound, count: range.count)
        }
        return RemovedIDs.find(id, in: bytes.span.bytes, base: header.base)
    }
}
