// Disk space reserved for a full disk: the server's verdicts must still be recorded, and compaction must
// still be able to free space. Spec/format/segment.md, SEG-10.

import LogFormat

/// The reserve of a log: a file of zeros whose removal frees its space.
struct ReserveFile {
    private let path: String
    private let directory: String
    private let fileSystem: any FileSystem

    /// The size of the reserve for a number of events: enough for the server's verdicts, and in a large log
    /// for compacting a segment.
    static func bytes(events: UInt64) -> Int {
        events <= eventsOfSmallLogMax ? 64 * 1024 : 1024 * 1024
    }
    private static let eventsOfSmallLogMax: UInt64 = 100_000

    init(_ directory: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
        path = directory + "/" + LogDirectory.reserve
    }

    /// Allocates the reserve; durable on return.
    ///
    /// - Returns: true if the file has the full size.
    func allocate(bytes: Int) -> Bool {
        do throws(FileError) {
            let file = try fileSystem.open(path, .createIfMissing)
            guard try file.size() < bytes else { return true }
            try file.allocate(size: bytes)
            try file.sync()
            return true
        } catch { return false }
    }

    /// Releases the space by removing the file.
    ///
    /// - Returns: true if there was a reserve.
    func release() -> Bool {
        do throws(FileError) {
            try fileSystem.remove(path)
            // Some file systems free the space only when the removal is durable.
            try fileSystem.syncDirectory(directory)
            return true
        } catch { return false }
    }
}
