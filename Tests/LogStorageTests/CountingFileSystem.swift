// Counts the bytes that are read of each file.

import LogStorage

/// A file system whose reads are counted.
final class CountingFileSystem: ForwardingFileSystem {
    let base: any FileSystem
    private let count: @Sendable (_ path: String, _ bytes: Int) -> Void

    init(_ base: any FileSystem, count: @escaping @Sendable (String, Int) -> Void) {
        self.base = base
        self.count = count
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        Counted(try base.open(path, mode), path, count)
    }

    private final class Counted: ForwardingFile {
        let file: any File
        private let path: String
        private let count: @Sendable (String, Int) -> Void

        init(_ file: any File, _ path: String, _ count: @escaping @Sendable (String, Int) -> Void) {
            self.file = file
            self.path = path
            self.count = count
        }

        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            let bytes = try file.read(at: offset, count: count)
            self.count(path, bytes.count)
            return bytes
        }
    }
}
