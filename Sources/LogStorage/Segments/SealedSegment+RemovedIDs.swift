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

    /// Reads the positions of the removed lines, in the order of their ids.
    ///
    /// - Parameter base: the first position of the segment; records store the distance from it.
    func positions(in file: any File, base: Position) throws(FileError) -> [Position] {
        var positions: [Position] = []
        var remaining = list.count
        var at = offset + RemovedIDs.prefixBytes
        while remaining > 0 {
            let count = min(remaining, Self.portionRecords)
            let records = try file.read(at: at, count: count * RemovedIDs.recordBytes)
            positions += RemovedIDs.positions(in: records.span.bytes, base: base)
            at += count * RemovedIDs.recordBytes
            remaining -= count
        }
        return positions
    }
}

extension [ClosedRange<Position>] {
    /// The ranges, which are in order, without the positions of lines that compaction has removed.
    ///
    /// - Parameter removed: the positions, in ascending order.
    /// - Complexity: O(ranges · log removed + removed positions in them).
    func subtracting(_ removed: [Position]) -> [ClosedRange<Position>] {
        guard !removed.isEmpty else { return self }
        var rest: [ClosedRange<Position>] = []
        for range in self {
            var next = range.lowerBound
            var index = removed.partitioningIndex { $0 >= range.lowerBound }
            while index < removed.count, removed[index] <= range.upperBound {
                if removed[index] > next { rest.append(next...removed[index].advanced(by: -1)) }
                next = removed[index].next
                index += 1
            }
            if next <= range.upperBound { rest.append(next...range.upperBound) }
        }
        return rest
    }
}

extension SealedSegment {
    /// The offset of the first list of removed ids, by the footer; that of the footer if there is none.
    var removedIDsStart: Int { footerAt - (footer.compaction?.removedIDBytes ?? 0) }

    /// Reads the lists of removed ids, oldest first.
    ///
    /// - Throws: `corrupt` if one is damaged, or if they do not fill the space between the last frame and the
    ///   footer.
    /// - Complexity: O(removed ids); memory for every 64th id.
    func removedIDs() throws(LogError) -> [RemovedIDsInFile] {
        var lists: [RemovedIDsInFile] = []
        var offset = removedIDsStart
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

    /// The positions of the lines that the lists name, in ascending order; empty if a list is damaged.
    ///
    /// - Complexity: O(removed ids · log removed ids), in memory as well.
    func removedPositions() throws(LogError) -> [Position] {
        guard let lists = try? removedIDs() else { return [] }
        return try storage { () throws(FileError) in
            var positions: [Position] = []
            for found in lists { positions += try found.positions(in: file, base: header.base) }
            return positions.sorted()
        }
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
