// The real file system with an ear on what is read: how far the reading of a log is, is best told by
// the bytes of its files, since nobody knows before how many events are in the last one.

import DaybookOffline
import LogStorage

/// A file system that tells a `Progress` of every read.
struct CountingFileSystem: ForwardingFileSystem {
    let base: any FileSystem = POSIXFileSystem()
    private let progress: Progress

    init(_ progress: Progress) { self.progress = progress }

    /// The bytes that reading a log takes; 0 where they cannot be told.
    ///
    /// - Parameter verifying: whether the digests of sealed segments are read as well.
    static func bytes(of directory: String, verifying: Bool = false) -> Int {
        let outline = (try? LogReader(directory).outline()) ?? []
        return outline.reduce(0) { $0 + (verifying && $1.isSealed ? 2 : 1) * $1.bytes }
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        CountingFile(try base.open(path, mode), progress)
    }
}

private final class CountingFile: ForwardingFile {
    let file: any File
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
}
