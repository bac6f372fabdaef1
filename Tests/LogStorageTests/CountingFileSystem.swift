// Tells how much is read of which file.

import LogStorage

/// A file system whose reads are counted.
final class CountingFileSystem: FileSystem {
    private let base: any FileSystem
    private let count: @Sendable (_ path: String, _ bytes: Int) -> Void

    init(_ base: any FileSystem, count: @escaping @Sendable (String, Int) -> Void) {
        self.base = base
        self.count = count
    }

    func createDirectory(_ path: String) throws(FileError) { try base.createDirectory(path) }
    func list(_ path: String) throws(FileError) -> [String] { try base.list(path) }
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        Counted(try base.open(path, mode), path, count)
    }
    func rename(_ path: String, to newPath: String) throws(FileError) {
        try base.rename(path, to: newPath)
    }
    func remove(_ path: String) throws(FileError) { try base.remove(path) }
    func removeDirectory(_ path: String) throws(FileError) { try base.removeDirectory(path) }
    func syncDirectory(_ path: String) throws(FileError) { try base.syncDirectory(path) }

    private final class Counted: File {
        private let file: any File
        private let path: String
        private let count: @Sendable (String, Int) -> Void

        init(_ file: any File, _ path: String, _ count: @escaping @Sendable (String, Int) -> Void) {
            self.file = file
            self.path = path
            self.count = count
        }

        func size() throws(FileError) -> Int { try file.size() }
        func identity() throws(FileError) -> UInt64 { try file.identity() }
        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            let bytes = try file.read(at: offset, count: count)
            self.count(path, bytes.count)
            return bytes
        }
        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            try file.write(bytes, at: offset)
        }
        func allocate(size: Int) throws(FileError) { try file.allocate(size: size) }
        func truncate(to size: Int) throws(FileError) { try file.truncate(to: size) }
        func sync() throws(FileError) { try file.sync() }
        func lock() throws(FileError) -> Bool { try file.lock() }
    }
}
