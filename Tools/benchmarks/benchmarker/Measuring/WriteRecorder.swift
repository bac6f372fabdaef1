// What a log writes while it records, so that somebody else can write the same without a log.

import Foundation
import LogStorage
import Synchronization

/// A file system that remembers the writes to segments.
final class WriteRecorder: ForwardingFileSystem {
    /// Bytes written at a place of the segment.
    struct Write {
        var offset: Int
        var bytes: [UInt8]
    }

    let base: any FileSystem = POSIXFileSystem()
    private let recorded = Mutex<[Write]>([])

    /// Takes what was written since the last call.
    func take() -> [Write] {
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
