// The real file system with an ear on what is read: how far the reading of a log is, is best told by
// the bytes of its files, since nobody knows before how many events are in the last one.

import Daybook
import LogStorage

/// A file system that tells a `Progress` of every read.
struct CountingFileSystem: FileSystem {
    private let base = POSIXFileSystem()
    private let progress: Progress

    init(_ progress: Progress) { self.progress = progress }

    /// The bytes that reading a log takes; 0 where they cannot be told.
    ///
    /// - Parameter verifying: whether the digests of sealed segments are read as well.
    static func bytes(of directory: String, verifying: Bool = false) -> Int {
        let outline = (try? LogReader(directory).outline()) ?? []
        return outline.reduce(0) { $0 + (verifying && $1.isSealed ? 2 : 1) * $1.bytes }
    }

    func createDirectory(_ path: String) throws(FileError) { try base.createDirectory(path) }
    func list(_ path: String) throws(FileError) -> [String] { try base.list(path) }
    func rename(_ path: String, to newPath: String) throws(FileError) {
        try base.rename(path, to: newPath)
    }
    func remove(_ path: String) throws(FileError) { try base.remove(path) }
    func removeDirectory(_ path: String) throws(FileError) { try base.removeDirectory(path) }
    func syncDirectory(_ path: String) throws(FileError) { try base.syncDirectory(path) }
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        CountingFile(try base.open(path, mode), progress)
    }
}

private final class CountingFile: File {
    private let file: any File
    private let progress: Progress

    init(_ file: any File, _ progress: Progress) {
        self.file = file
        self.progress = progress
    }

    func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
        let bytes = try file.read(at: offset, count: count)
        progress.add(bytes: bytes.count)
        return bytes
    }

    func size() throws(FileError) -> Int { try file.size() }
    func identity() throws(FileError) -> UInt64 { try file.identity() }
    func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
        try file.write(bytes, at: offset)
    }
    func allocate(size: Int) throws(FileError) { try file.allocate(size: size) }
    func truncate(to size: Int) throws(FileError) { try file.truncate(to: size) }
    func sync() throws(FileError) { try file.sync() }
    func lock() throws(FileError) -> Bool { try file.lock() }
}
