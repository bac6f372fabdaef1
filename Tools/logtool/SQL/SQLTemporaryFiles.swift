// The files in which SQLite sorts, with a limit on their sizes together: SQLite itself has none. A VFS that opens the
// system's files and counts how they grow: https://sqlite.org/vfs.html.

import Foundation
import GRDBSQLite
import Synchronization

/// A VFS whose files may have a number of bytes together.
enum SQLTemporaryFiles {
    private struct Usage {
        var bytesMax = Int.max
        var bytes = 0
        var isFull = false
    }

    /// SQLite's memory for a file: this, followed by the file of the system's VFS.
    private struct CountedFile {
        var base = sqlite3_file()
        var bytes: Int64 = 0
    }

    private static let usage = Mutex(Usage())

    /// True if a file could not grow because of the limit.
    static var isFull: Bool { usage.withLock { $0.isFull } }

    /// Sets the limit, and forgets that an earlier one was reached.
    static func begin(bytesMax: Int) {
        usage.withLock { ($0.bytesMax, $0.isFull) = (bytesMax, false) }
    }

    /// The name of the VFS, which is registered then; nil if SQLite does not register it.
    nonisolated(unsafe) static let name: UnsafePointer<CChar>? = {
        guard let system, let name = strdup("daybook-temporary") else { return nil }
        var vfs = system.pointee
        vfs.pNext = nil
        vfs.zName = UnsafePointer(name)
        vfs.szOsFile = Int32(MemoryLayout<CountedFile>.stride) + system.pointee.szOsFile
        vfs.xOpen = { _, path, file, flags, outFlags in
            guard let file, let system = SQLTemporaryFiles.system else { return SQLITE_CANTOPEN }
            let counted = SQLTemporaryFiles.counted(file)
            let systemFile = SQLTemporaryFiles.systemFile(file)
            systemFile.pointee.pMethods = nil
            let code = system.pointee.xOpen(system, path, systemFile, flags, outFlags)
            // A file with methods is closed also after an error.
            counted.pointee.base.pMethods =
                systemFile.pointee.pMethods == nil ? nil : UnsafePointer(SQLTemporaryFiles.methods)
            counted.pointee.bytes = 0
            return code
        }
        let pointer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        pointer.initialize(to: vfs)
        return sqlite3_vfs_register(pointer, 0) == SQLITE_OK ? UnsafePointer(name) : nil
    }()

    nonisolated(unsafe) private static let system = sqlite3_vfs_find(nil)

    private static func counted(
        _ file: UnsafeMutablePointer<sqlite3_file>
    ) -> UnsafeMutablePointer<CountedFile> {
        UnsafeMutableRawPointer(file).assumingMemoryBound(to: CountedFile.self)
    }

    private static func systemFile(
        _ file: UnsafeMutablePointer<sqlite3_file>
    ) -> UnsafeMutablePointer<sqlite3_file> {
        (UnsafeMutableRawPointer(file) + MemoryLayout<CountedFile>.stride)
            .assumingMemoryBound(to: sqlite3_file.self)
    }

    /// Counts the bytes of a file that has a new size.
    ///
    /// - Returns: false if the files would have too many; nothing is counted then.
    private static func resize(
        _ file: UnsafeMutablePointer<sqlite3_file>, to size: Int64
    ) -> Bool {
        let counted = counted(file)
        let growth = Int(size - counted.pointee.bytes)
        let isAllowed = usage.withLock { usage in
            guard growth <= 0 || growth <= usage.bytesMax - usage.bytes else {
                usage.isFull = true
                return false
            }
            usage.bytes += growth
            return true
        }
        if isAllowed { counted.pointee.bytes = size }
        return isAllowed
    }

    /// Calls a method of the system's file.
    private static func forward(
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ call: (sqlite3_io_methods, UnsafeMutablePointer<sqlite3_file>) -> Int32
    ) -> Int32 {
        guard let file else { return SQLITE_IOERR }
        let systemFile = systemFile(file)
        guard let methods = systemFile.pointee.pMethods else { return SQLITE_IOERR }
        return call(methods.pointee, systemFile)
    }

    /// Of version 1: without shared memory and mapping, which temporary files do not need.
    nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        var methods = sqlite3_io_methods()
        methods.iVersion = 1
        methods.xClose = { file in
            if let file { _ = SQLTemporaryFiles.resize(file, to: 0) }
            return SQLTemporaryFiles.forward(file) { $0.xClose($1) }
        }
        methods.xRead = { file, bytes, count, offset in
            SQLTemporaryFiles.forward(file) { $0.xRead($1, bytes, count, offset) }
        }
        methods.xWrite = { file, bytes, count, offset in
            guard let file else { return SQLITE_IOERR }
            let size = max(
                SQLTemporaryFiles.counted(file).pointee.bytes, offset + Int64(count))
            guard SQLTemporaryFiles.resize(file, to: size) else { return SQLITE_FULL }
            return SQLTemporaryFiles.forward(file) { $0.xWrite($1, bytes, count, offset) }
        }
        methods.xTruncate = { file, size in
            if let file { _ = SQLTemporaryFiles.resize(file, to: size) }
            return SQLTemporaryFiles.forward(file) { $0.xTruncate($1, size) }
        }
        methods.xSync = { file, flags in
            SQLTemporaryFiles.forward(file) { $0.xSync($1, flags) }
        }
        methods.xFileSize = { file, size in
            SQLTemporaryFiles.forward(file) { $0.xFileSize($1, size) }
        }
        methods.xLock = { file, lock in
            SQLTemporaryFiles.forward(file) { $0.xLock($1, lock) }
        }
        methods.xUnlock = { file, lock in
            SQLTemporaryFiles.forward(file) { $0.xUnlock($1, lock) }
        }
        methods.xCheckReservedLock = { file, result in
            SQLTemporaryFiles.forward(file) { $0.xCheckReservedLock($1, result) }
        }
        methods.xFileControl = { file, operation, argument in
            SQLTemporaryFiles.forward(file) { $0.xFileControl($1, operation, argument) }
        }
        methods.xSectorSize = { file in
            SQLTemporaryFiles.forward(file) { $0.xSectorSize($1) }
        }
        methods.xDeviceCharacteristics = { file in
            SQLTemporaryFiles.forward(file) { $0.xDeviceCharacteristics($1) }
        }
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: methods)
        return pointer
    }()
}
