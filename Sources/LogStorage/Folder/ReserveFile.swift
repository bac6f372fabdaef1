// Disk space reserved for a full disk: the log must still open, the server's verdicts must still be recorded, and
// compaction must still be able to free space. Spec/format/segment.md, SEG-10.

import LogFormat

/// The reserve of a log: a file of zeros whose removal frees its space.
struct ReserveFile {
    private let path: String
    private let directory: String
    private let fileSystem: any FileSystem

    /// The size of the reserve for a number of events: enough for the server's verdicts, and in a large log
    /// for compacting a segment.
    static func bytes(events: UInt64) -> Int {
        events <= eventsOfSmallLogMax ? bytesMin : 1024 * 1024
    }
    private static let eventsOfSmallLogMax: UInt64 = 100_000
    private static let bytesMin = 64 * 1024

    init(_ directory: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
        path = directory + "/" + LogDirectory.reserve
    }

    /// Allocates the reserve, or as much of it as a small log has; durable on return. A file without space is
    /// removed.
    ///
    /// - Returns: true if the file has the full size.
    func allocate(bytes: Int) -> Bool {
        func grow(_ file: any File, to size: Int) throws(FileError) {
            try file.allocate(size: size)
            try file.sync()
        }
        do throws(FileError) {
            let file = try fileSystem.open(path, .createIfMissing)
            let before = try file.size()
            guard before < bytes else { return true }
            if (try? grow(file, to: bytes)) != nil { return true }
            if before == 0, (try? grow(file, to: Self.bytesMin)) == nil {
                try fileSystem.remove(path)
            }
            return false
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

    /// Runs an operation of opening or repair. If the disk is full, releases the reserve, removes the file of an
    /// interrupted compaction, and runs the operation once more. The store allocates the reserve again when
    /// it is open.
    ///
    /// - Parameter body: leaves nothing behind if it throws `diskFull`.
    func drawing<T: ~Copyable>(_ body: () throws(LogError) -> T) throws(LogError) -> T {
        do throws(LogError) { return try body() } catch {
            guard error.code == .diskFull else { throw error }
            let new = directory + "/" + LogDirectory.newSegment
            let isRemoved = (try? fileSystem.remove(new)) != nil
            guard release() || isRemoved else { throw error }
            return try body()
        }
    }
}
