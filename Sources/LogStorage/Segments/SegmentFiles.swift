// The files of a log's sealed segments. Only a few are open at a time, since a log may have more segments
// than a process may have open files. Spec/format/segment.md, SEG-11;
// Spec/decisions/0063-open-files-are-bounded.md.

import Synchronization

/// The open files of a log's sealed segments: those that were read last.
package final class SegmentFiles: Sendable {
    private struct Entry {
        let id: ObjectIdentifier
        let opened: any File
        /// True for a file that has lost its name to a compacted one, and cannot be opened again.
        var isKept = false
    }

    private let fileSystem: any FileSystem
    /// The entries, the one used last at the end.
    private let entries = Mutex<[Entry]>([])

    /// The number of files that are kept open between reads.
    private let openMax: Int

    /// - Parameter openMax: the number of files that are kept open between reads.
    package init(_ fileSystem: any FileSystem, openMax: Int = 8) {
        (self.fileSystem, self.openMax) = (fileSystem, openMax)
    }

    /// Takes over a segment's open file.
    package func adopt(_ opened: any File, path: String) throws(FileError) -> SegmentFile {
        let file = SegmentFile(path, inode: try opened.identity(), self)
        insert(opened, file)
        return file
    }

    /// Replaces a segment's file by another one, to which `rename` gives its name. A reader of the old file
    /// reads on in it.
    func replace(
        _ old: SegmentFile, by opened: any File, _ rename: () throws(FileError) -> Void
    ) throws(FileError) -> SegmentFile {
        let file = SegmentFile(old.path, inode: try opened.identity(), self)
        insert(try open(old), old, isKept: true)
        do throws(FileError) { try rename() } catch {
            insert(try open(old), old, isKept: false)
            throw error
        }
        insert(opened, file)
        return file
    }

    /// The open file of a segment, opened again if it was closed.
    ///
    /// - Throws: `notFound` if the name belongs to another file by now.
    fileprivate func open(_ file: SegmentFile) throws(FileError) -> any File {
        if let opened = find(file) { return opened }
        let opened = try fileSystem.open(file.path, .read)
        guard try opened.identity() == file.inode else {
            // A compaction that has taken the name meanwhile has kept this file open.
            if let kept = find(file) { return kept }
            throw FileError(
                .notFound, operation: "open", path: file.path,
                reason: "another file has replaced the segment while the log was open")
        }
        insert(opened, file)
        return opened
    }

    private func find(_ file: SegmentFile) -> (any File)? {
        entries.withLock { entries in
            let id = ObjectIdentifier(file)
            guard let index = entries.lastIndex(where: { $0.id == id }) else { return nil }
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.opened
        }
    }

    /// Enters an open file, and closes the least recently used one if there are too many.
    ///
    /// - Parameter isKept: nil to leave it as it is: another reader may enter a file that is kept meanwhile.
    private func insert(_ opened: any File, _ file: SegmentFile, isKept: Bool? = nil) {
        let id = ObjectIdentifier(file)
        // Closed after the lock is released.
        _ = entries.withLock { entries -> [Entry] in
            var closed = entries.filter { $0.id == id }
            entries.removeAll { $0.id == id }
            let staysOpen = isKept ?? closed.contains(where: \.isKept)
            entries.append(Entry(id: id, opened: opened, isKept: staysOpen))
            let others = entries.count(where: { !$0.isKept })
            if others > openMax, let index = entries.firstIndex(where: { !$0.isKept }) {
                closed.append(entries.remove(at: index))
            }
            return closed
        }
    }

    fileprivate func close(_ id: ObjectIdentifier) {
        _ = entries.withLock { entries -> [Entry] in
            let closed = entries.filter { $0.id == id }
            entries.removeAll { $0.id == id }
            return closed
        }
    }
}

/// A sealed segment's file. A read opens it again by its name if it was closed, and checks by the inode number
/// that it is the same file.
package final class SegmentFile: ReadOnlyFile {
    let path: String
    fileprivate let inode: UInt64
    private let files: SegmentFiles

    fileprivate init(_ path: String, inode: UInt64, _ files: SegmentFiles) {
        self.path = path
        self.inode = inode
        self.files = files
    }

    deinit { files.close(ObjectIdentifier(self)) }

    package func size() throws(FileError) -> Int { try files.open(self).size() }
    package func identity() throws(FileError) -> UInt64 { inode }
    package func isLinked() throws(FileError) -> Bool { try files.open(self).isLinked() }
    package func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
        try files.open(self).read(at: offset, count: count)
    }
}
