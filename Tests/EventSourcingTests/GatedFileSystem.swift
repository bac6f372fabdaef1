// Stops readers and syncs of a log's segments at a point that a test chooses.

import Dispatch
import LogStorage
import Synchronization

/// A file system with two gates.
final class GatedFileSystem: ForwardingFileSystem {
    /// A gate that is open until it is closed.
    final class Gate: Sendable {
        private let lock = DispatchSemaphore(value: 1)
        /// The number of calls that have reached the gate.
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
    let base: any FileSystem

    init(_ base: any FileSystem) { self.base = base }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let file = try base.open(path, mode)
        return path.hasSuffix(".lz4") ? Gated(file, reads: reads, syncs: syncs) : file
    }

    private final class Gated: ForwardingFile {
        let file: any File
        private let reads: Gate
        private let syncs: Gate

        init(_ file: any File, reads: Gate, syncs: Gate) {
            self.file = file
            self.reads = reads
            self.syncs = syncs
        }

        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            reads.pass()
            return try file.read(at: offset, count: count)
        }
        func sync() throws(FileError) {
            syncs.pass()
            try file.sync()
        }
    }
}
