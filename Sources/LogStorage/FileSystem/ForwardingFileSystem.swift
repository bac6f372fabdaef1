// Default implementations for file systems that wrap another one and change single operations: progress bars
// observe reads; tests delay, count or damage them.

/// A file system that forwards to another one all operations that it does not implement itself.
package protocol ForwardingFileSystem: FileSystem {
    /// The wrapped file system.
    var base: any FileSystem { get }
}

extension ForwardingFileSystem {
    package func createDirectory(_ path: String) throws(FileError) {
        try base.createDirectory(path)
    }
    package func list(_ path: String) throws(FileError) -> [String] { try base.list(path) }
    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        try base.open(path, mode)
    }
    package func identity(_ path: String) throws(FileError) -> UInt64? {
        try base.identity(path)
    }
    package func rename(_ path: String, to newPath: String) throws(FileError) {
        try base.rename(path, to: newPath)
    }
    package func remove(_ path: String) throws(FileError) { try base.remove(path) }
    package func removeDirectory(_ path: String) throws(FileError) {
        try base.removeDirectory(path)
    }
    package func syncDirectory(_ path: String) throws(FileError) { try base.syncDirectory(path) }
    package func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)? {
        try base.lockDirectory(path)
    }
    package func lockHolder(of path: String) -> LockHolder? { base.lockHolder(of: path) }
    package func share(_ path: String, as newPath: String) -> Bool {
        base.share(path, as: newPath)
    }
}

/// A file that forwards to another one all operations that it does not implement itself.
package protocol ForwardingFile: File {
    /// The wrapped file.
    var file: any File { get }
}

extension ForwardingFile {
    package func size() throws(FileError) -> Int { try file.size() }
    package func identity() throws(FileError) -> UInt64 { try file.identity() }
    package func fingerprint() throws(FileError) -> UInt64 { try file.fingerprint() }
    package func permissions() throws(FileError) -> UInt16? { try file.permissions() }
    package func isLinked() throws(FileError) -> Bool { try file.isLinked() }
    package func linkCount() throws(FileError) -> Int { try file.linkCount() }
    package func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
        try file.read(at: offset, count: count)
    }
    package func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
        try file.write(bytes, at: offset)
    }
    package func allocate(size: Int) throws(FileError) { try file.allocate(size: size) }
    package func truncate(to size: Int) throws(FileError) { try file.truncate(to: size) }
    package func sync() throws(FileError) { try file.sync() }
    package func lock() throws(FileError) -> Bool { try file.lock() }
}
