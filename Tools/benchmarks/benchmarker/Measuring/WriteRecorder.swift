// Records the writes of a log, so that a contender can repeat them without a log.

import Foundation
import LogStorage
import Synchronization

/// A file system that records the writes to segments.
final class WriteRecorder: ForwardingFileSystem {
    /// A write at an offset of the segment.
    struct Write {
        var offset: Int
        var bytes: [UInt8]
    }

    let base: any FileSystem = POSIXFileSystem()
    private let recorded = Mutex<[Write]>([])

    /// Returns and removes the writes since the last call.
    func drain() -> [Write] {
        recorded.withLock { writes in
            defer { writes = [] }
            return writes
        }
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let file = try base.open(path, mode)
        return path.hasSuffix(".lz4") ? Recorded(file, self) : file
    }

    private final class Recorded: ForwardingFile {
        let file: any File
        private let recorder: WriteRecorder

        init(_ file: any File, _ recorder: WriteRecorder) {
            self.file = file
            self.recorder = recorder
        }

        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            recorder.recorded.withLock { $0.append(Write(offset: offset, bytes: bytes)) }
            try file.write(bytes, at: offset)
        }
    }
}
