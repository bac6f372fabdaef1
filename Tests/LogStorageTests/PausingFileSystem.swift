// Runs a writer before every operation of a reader. The counterpart of InterleavingFileSystem.

import LogStorage

/// A file system that pauses its reader for a writer.
final class PausingFileSystem: ForwardingFileSystem {
    let base: any FileSystem
    private let work: @Sendable () -> Void

    /// Wraps a file system.
    ///
    /// - Parameter work: called before every operation; must use `base` itself.
    init(_ base: any FileSystem, work: @escaping @Sendable () -> Void) {
        self.base = base
        self.work = work
    }

    func list(_ path: String) throws(FileError) -> [String] {
        work()
        return try base.list(path)
    }
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        work()
        return Paused(file: try base.open(path, mode), work: work)
    }

    private final class Paused: ForwardingFile {
        let file: any File
        private let work: @Sendable () -> Void

        init(file: any File, work: @escaping @Sendable () -> Void) {
            self.file = file
            self.work = work
        }

        func size() throws(FileError) -> Int {
            work()
            return try file.size()
        }
        func identity() throws(FileError) -> UInt64 {
            work()
            return try file.identity()
        }
        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            work()
            return try file.read(at: offset, count: count)
        }
    }
}
