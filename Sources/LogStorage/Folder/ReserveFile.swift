// Room that is set aside on the device for a day when there is none: what the server has said must
// be recorded, and compaction must be able to free something, although the disk is full.
// Spec/format/segment.md, SEG-10.

import LogFormat

/// The reserve of a log: a file of zeros that can be given up.
struct ReserveFile {
    private let path: String
    private let directory: String
    private let fileSystem: any FileSystem

    /// How much a log of so many events keeps: enough for the server's words, and in a long log for
    /// compacting a segment.
    static func bytes(events: UInt64) -> Int {
        events <= eventsOfSmallLogMax ? 64 * 1024 : 1024 * 1024
    }
    private static let eventsOfSmallLogMax: UInt64 = 100_000

    init(_ directory: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
        path = directory + "/" + LogDirectory.reserve
    }

    /// Sets the room aside.
    ///
    /// - Returns: whether all of it is there.
    func keep(bytes: Int) -> Bool {
        do throws(FileError) {
            let file = try fileSystem.open(path, .createIfMissing)
            guard try file.size() < bytes else { return true }
            try file.allocate(size: bytes)
            try file.sync()
            return true
        } catch { return false }
    }

    /// Gives the room back to the device.
    ///
    /// - Returns: whether there was any.
    func release() -> Bool {
        do throws(FileError) {
            try fileSystem.remove(path)
            // Some file systems free the room only when the removal is durable.
            try fileSystem.syncDirectory(directory)
            return true
        } catch { return false }
    }
}
