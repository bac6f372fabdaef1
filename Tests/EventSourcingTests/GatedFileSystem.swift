// Stops readers and syncs of a log's segments where a test wants them to stop.

import Dispatch
import LogStorage
import Synchronization

/// A file system with two gates.
final class GatedFileSystem: FileSystem {
    /// A gate that is open until it is closed.
    final class Gate: Sendable {
        private let lock = DispatchSemaphore(value: 1)
        /// How many came to the gate.
        let arrivals = Mutex(0)

        func close() { lock.wait() }
        func open() { lock.signal() }
        fileprivate func pass() {
            arrivals.withLock { $0 += 1 }
            lock.wait()
            lock.signal()
        }
    }

    let reads = Gate()
    let syncs = Gate()
    private let base: any FileSystem

    init(_ base: any FileSystem) { self.base = base }

    func createDirectory(_ path: String) throws(FileError) { try base.createDirectory(path) }
    func list(_ path: String) throws(FileError) -> [String] { try base.list(path) }
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let file = try base.open(path, mode)
        return path.hasSuffix(".lz4") ? Gated(file, reads: reads, syncs: syncs) : file
    }
    func rename(_ path: String, to newPath: String) throws(FileError) {
        try base.rename(path, to: newPath)
    }
    func remove(_ path: String) throws(FileError) { try base.remove(path) }
    func removeDirectory(_ path: String) throws(FileError) { try base.removeDirectory(path) }
    func syncDirectory(_ path: String) throws(FileError) { try base.syncDirectory(path) }

    private final class Gated: File {
        private let file: any File
        private let reads: Gate
        private let syncs: Gate

        init(_ file: any File, reads: Gate, syncs: Gate) {
            self.file = file
            self.reads = reads
            self.syncs = syncs
        }

        func size() throws(FileError) -> Int { try file.size() }
        func identity() throws(FileError) -> UInt64 { try file.identity() }
        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            reads.pass()
            return try file.read(at: offset, count: count)
        }
        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            try file.write(bytes, at: offset)
        }
        func allocate(size: Int) throws(FileError) { try file.allocate(size: size) }
        func truncate(to size: Int) throws(FileError) { try file.truncate(to: size) }
        func sync() throws(FileError) {
            syncs.pass()
            try file.sync()
        }
        func lock() throws(FileError) -> Bool { try file.lock() }
    }
}
