// Rewrites synced bytes in place without the risk of losing them. After a failed sync the page cache may
// show bytes that the medium never received, so recovery writes the last commit again. A power cut during
// that write could tear a commit that was acknowledged: therefore a copy is made durable first, like
// InnoDB's doublewrite buffer. Spec/format/recovery.md, REC-9.

import LogFormat

/// A copy of bytes that are being rewritten in a segment.
struct RewriteJournal {
    /// The first position of the segment.
    private let segment: Position
    private let offset: Int
    private let bytes: [UInt8]

    private static let signature = Array("DAYBOOKR".utf8)
    /// Signature, segment, offset and length.
    private static let prefixBytes = 32
    private static let digestBytes = 8
    /// The size of the largest footer, which exceeds that of the largest commit.
    private static let contentBytesMax = FormatLimit.footerBytesMax
    /// The size from which bytes are rewritten in parts on a full disk. A smaller copy fits into one block of the
    /// file system.
    private static let partBytesMin = 4096

    // MARK: Rewriting

    /// Rewrites `bytes` at an offset where they are already stored, followed by `closing`, which needs no
    /// copy, and syncs. A power cut at any moment leaves `bytes` in the file or in the journal. On a full disk
    /// the bytes are rewritten in parts that fit.
    ///
    /// - Throws: `diskFull` with the bytes as they were and nothing left behind.
    static func rewrite(
        _ bytes: [UInt8], then closing: [UInt8], at offset: Int, of file: any File,
        segment: Position, in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        let journal = RewriteJournal(segment: segment, offset: offset, bytes: bytes)
        do throws(LogError) {
            try journal.store(in: directory, fileSystem)
        } catch {
            guard error.code == .diskFull, bytes.count >= partBytesMin else { throw error }
            let half = bytes.count / 2
            try rewrite(
                Array(bytes[..<half]), then: [], at: offset, of: file, segment: segment,
                in: directory, fileSystem)
            return try rewrite(
                Array(bytes[half...]), then: closing, at: offset + half, of: file,
                segment: segment, in: directory, fileSystem)
        }
        try journal.write(to: file, then: closing, in: directory, fileSystem)
    }

    /// Makes the journal durable. After an error its new file is removed.
    private func store(
        in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        let path = directory + "/" + LogDirectory.rewriteJournal
        let newPath = directory + "/" + LogDirectory.newRewriteJournal
        func makeDurable() throws(FileError) {
            // An existing journal may be the only intact copy: it is replaced by a rename, not overwritten.
            // A power cut during the rename can leave its file under both names.
            do throws(FileError) {
                try fileSystem.remove(newPath)
            } catch let error where error.code == .notFound {}
            let copy = try fileSystem.open(newPath, .createNew)
            try copy.write(encoded(), at: 0)
            try copy.sync()
            // A compaction may have been killed after it renamed the segment and before it synced the
            // folder. The copy must not outlive that name: it would be written into another file.
            try fileSystem.syncDirectory(directory)
            try fileSystem.rename(newPath, to: path)
            try fileSystem.syncDirectory(directory)
        }
        try ReserveFile(directory, fileSystem).drawing { () throws(LogError) in
            do throws(FileError) { try makeDurable() } catch {
                try? fileSystem.remove(newPath)
                throw LogError(error)
            }
        }
    }

    /// Writes the journal's bytes, and others after them, into the segment and syncs them. Then removes the
    /// journal.
    private func write(
        to file: any File, then closing: [UInt8], in directory: String,
        _ fileSystem: any FileSystem
    ) throws(LogError) {
        do throws(FileError) {
            try file.write(bytes + closing, at: offset)
            try file.sync()
        } catch {
            var failure = LogError(error)
            // The journal is needed now, and nothing may replace it by a copy of other bytes.
            if failure.code == .diskFull { failure.code = .io }
            throw failure
        }
        try Self.remove(from: directory, fileSystem)
    }

    private init(segment: Position, offset: Int, bytes: [UInt8]) {
        self.segment = segment
        self.offset = offset
        self.bytes = bytes
    }

    private func encoded() -> [UInt8] {
        var encoded = Self.signature
        encoded.append(littleEndian: segment.rawValue)
        encoded.append(littleEndian: UInt64(offset))
        encoded.append(littleEndian: UInt64(bytes.count))
        encoded += bytes
        encoded.append(littleEndian: XXH64.hash(encoded.span.bytes))
        return encoded
    }

    // MARK: Applying

    /// Reads the journal in a log's folder; nil if there is none or it is incomplete.
    static func read(
        in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> RewriteJournal? {
        let encoded: [UInt8]
        do throws(FileError) {
            let file = try fileSystem.open(directory + "/" + LogDirectory.rewriteJournal, .read)
            encoded = try file.read(
                at: 0, count: prefixBytes + contentBytesMax + digestBytes)
        } catch let error where error.code == .notFound {
            return nil
        } catch { throw LogError(error) }
        return RewriteJournal(encoded)
    }

    private init?(_ encoded: [UInt8]) {
        let span = encoded.span.bytes
        guard encoded.count > Self.prefixBytes + Self.digestBytes,
            span.matches(Self.signature, at: 0),
            span.integer(at: 24, as: UInt64.self)
                == UInt64(encoded.count - Self.prefixBytes - Self.digestBytes),
            span.integer(at: 16, as: UInt64.self) <= UInt64(FormatLimit.segmentBytesMax)
        else { return nil }
        let end = encoded.count - Self.digestBytes
        guard XXH64.hash(span.extracting(0..<end)) == span.integer(at: end) else { return nil }
        segment = Position(span.integer(at: 8))
        offset = Int(span.integer(at: 16, as: UInt64.self))
        bytes = Array(encoded[Self.prefixBytes..<end])
    }

    /// True if the bytes are within the file. They were read from the segment, so a shorter file is not
    /// that segment: an older copy has replaced it.
    private func fits(_ file: any File) throws(LogError) -> Bool {
        let size = try storage { () throws(FileError) in try file.size() }
        return offset + bytes.count <= size
    }

    /// Finishes an interrupted rewrite of the segment `name`; durable on return. Does nothing if the journal
    /// belongs to another file.
    func apply(to name: String, in directory: String, _ fileSystem: any FileSystem) throws(LogError)
    {
        guard SegmentName.base(name) == segment else { return }
        let file = try storage { () throws(FileError) in
            try fileSystem.open(directory + "/" + name, .readWrite)
        }
        guard try fits(file) else { return }
        // The journal may be in the page cache only, so it is written again first: as a whole, since the segment
        // may lack any of its bytes. Without space for a second copy the first one is synced.
        do throws(LogError) { try store(in: directory, fileSystem) } catch {
            guard error.code == .diskFull else { throw error }
            try storage { () throws(FileError) in
                let path = directory + "/" + LogDirectory.rewriteJournal
                try fileSystem.open(path, .readWrite).sync()
                try fileSystem.syncDirectory(directory)
            }
        }
        try write(to: file, then: [], in: directory, fileSystem)
    }

    /// A read-only view of a segment's file as it will be after `apply`.
    func overlaid(on file: any File, name: String) throws(LogError) -> any File {
        guard SegmentName.base(name) == segment, try fits(file) else { return file }
        return OverlaidFile(file, bytes, at: offset)
    }

    /// Removes the journal; durable on return, since it must not reappear after later commits.
    static func remove(
        from directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        var isChanged = false
        for name in [LogDirectory.rewriteJournal, LogDirectory.newRewriteJournal] {
            do throws(FileError) {
                try fileSystem.remove(directory + "/" + name)
                isChanged = true
            } catch let error where error.code == .notFound {
                continue
            } catch { throw LogError(error) }
        }
        guard isChanged else { return }
        try storage { () throws(FileError) in try fileSystem.syncDirectory(directory) }
    }
}

/// A read-only file in which some bytes are replaced.
final class OverlaidFile: ReadOnlyFile {
    private let file: any File
    private let bytes: [UInt8]
    private let offset: Int

    init(_ file: any File, _ bytes: [UInt8], at offset: Int) {
        self.file = file
        self.bytes = bytes
        self.offset = offset
    }

    func size() throws(FileError) -> Int { try file.size() }
    func identity() throws(FileError) -> UInt64 { try file.identity() }
    func isLinked() throws(FileError) -> Bool { try file.isLinked() }

    func read(at start: Int, count: Int) throws(FileError) -> [UInt8] {
        var result = try file.read(at: start, count: count)
        let common = (start..<start + result.count).clamped(to: offset..<offset + bytes.count)
        guard !common.isEmpty else { return result }
        result.replaceSubrange(
            common.lowerBound - start..<common.upperBound - start,
            with: bytes[common.lowerBound - offset..<common.upperBound - offset])
        return result
    }
}
