// Counts a log's writes to the disk: bytes, writes, syncs.

import LogStorage
import Synchronization

/// The real file system, with counters of the writes.
final class WriteCounter: ForwardingFileSystem {
    /// The counts so far.
    struct Counts {
        var bytes = 0
        var writes = 0
        /// The syncs of files and of folders.
        var syncs = 0
    }

    let base: any FileSystem = POSIXFileSystem()
    private let counted = Mutex(Counts())

    var counts: Counts { counted.withLock { $0 } }

    private func add(bytes: Int) {
        counted.withLock { counts in
            counts.bytes += bytes
            counts.writes += 1
        }
    }

    private func addSync() { counted.withLock { $0.syncs += 1 } }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        Counted(try base.open(path, mode), self)
    }

    func syncDirectory(_ path: String) throws(FileError) {
        addSync()
        try base.syncDirectory(path)
    }

    private final class Counted: ForwardingFile {
        let file: any File
        private let counter: WriteCounter

        init(_ file: any File, _ counter: WriteCounter) {
            self.file = file
            self.counter = counter
        }

        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            counter.add(bytes: bytes.count)
            try file.write(bytes, at: offset)
        }

        func sync() throws(FileError) {
            counter.addSync()
            try file.sync()
        }
    }
}
