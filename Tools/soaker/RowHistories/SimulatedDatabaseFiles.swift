// A file system of SQLite (a VFS) whose files are stored in a `FileSystem` of this project. On a
// `SimulatedFileSystem`, a database loses what a kill or a power cut loses, at the same operation as the log beside
// it. Paths of other files go to the system's own VFS, so that ATTACH works.
//
// It has no shared memory: WAL needs `PRAGMA locking_mode = EXCLUSIVE`. It locks nothing: a file has one connection.

import DaybookTestKit
import GRDBSQLite
import LogStorage
import Synchronization

/// The files of databases in a file system, as SQLite opens them.
package final class SimulatedDatabaseFiles: Sendable {
    /// The state that is shared with open files.
    fileprivate final class Disk: Sendable {
        let files: any FileSystem
        /// The number of bytes that may still be written; nil without a limit.
        let bytesLeft = Mutex<Int?>(nil)

        init(_ files: any FileSystem) { self.files = files }
    }

    private let number: Int

    fileprivate static let name = "daybook-simulated"
    fileprivate static let root = "/daybook-simulated/"
    private static let disks = Mutex<(last: Int, disks: [Int: Disk])>((0, [:]))

    /// Makes the files known to SQLite, until this object is released.
    package init(_ files: any FileSystem) {
        _ = registration
        number = Self.disks.withLock { state in
            state.last += 1
            state.disks[state.last] = Disk(files)
            return state.last
        }
    }

    deinit {
        let number = number
        Self.disks.withLock { $0.disks[number] = nil }
    }

    /// Replaces the file system for the files that are opened from now on. Their paths stay: a journal may have the
    /// path of another.
    package func replace(by files: any FileSystem) {
        Self.disks.withLock { $0.disks[number] = Disk(files) }
    }

    /// The path with which SQLite opens a file.
    ///
    /// - Parameter path: the path in the file system, from its root.
    package func uri(of path: String) -> String {
        "file:\(Self.root)\(number)\(path)?vfs=\(Self.name)"
    }

    /// Makes writes fail as on a full disk, once this number of bytes is written; nil ends that.
    package func setBytesLeft(_ bytes: Int?) {
        let disk = Self.disks.withLock { $0.disks[number] }
        disk?.bytesLeft.withLock { $0 = bytes }
    }

    /// The disk of a file that SQLite names, and the file's path there; nil for files of the system.
    fileprivate static func find(_ name: UnsafePointer<CChar>?) -> (disk: Disk, path: String)? {
        guard let name else { return nil }
        let path = String(cString: name)
        guard path.hasPrefix(root) else { return nil }
        let place = path.dropFirst(root.count)
        guard let slash = place.firstIndex(of: "/"), let number = Int(place[..<slash]),
            let disk = disks.withLock({ $0.disks[number] })
        else { return nil }
        return (disk, String(place[slash...]))
    }
}

/// An open file of a simulated disk.
private final class OpenFile {
    let disk: SimulatedDatabaseFiles.Disk
    let file: any File
    let path: String
    /// True if the name is not durable yet. SQLite's own VFS for Unix syncs it with the first sync of a journal.
    var isNameUnsynced: Bool
    let isDeletedOnClose: Bool

    init(
        _ disk: SimulatedDatabaseFiles.Disk, _ file: any File, _ path: String,
        isNameUnsynced: Bool, isDeletedOnClose: Bool
    ) {
        self.disk = disk
        self.file = file
        self.path = path
        self.isNameUnsynced = isNameUnsynced
        self.isDeletedOnClose = isDeletedOnClose
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
        let isFull = disk.bytesLeft.withLock { left in
            guard let present = left else { return false }
            left = max(0, present - bytes.count)
            return present < bytes.count
        }
        if isFull {
            throw FileError(.noSpace, operation: "write", path: path, reason: "the disk is full")
        }
        try file.write(bytes, at: offset)
    }

    func sync() throws(FileError) {
        try file.sync()
        guard isNameUnsynced else { return }
        try disk.files.syncDirectory(folder(of: path))
        isNameUnsynced = false
    }
}

/// The memory that SQLite allocates for an open file.
private struct Handle {
    var base: sqlite3_file
    var file: Unmanaged<OpenFile>?
}

private func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "/"
}

private func openFile(_ file: UnsafeMutablePointer<sqlite3_file>?) -> OpenFile? {
    file?.withMemoryRebound(to: Handle.self, capacity: 1) { $0.pointee.file }?
        .takeUnretainedValue()
}

/// Runs a body, and returns the result code of its error.
private func resultCode(
    _ ioError: Int32, _ body: () throws(FileError) -> Void
) -> Int32 {
    do throws(FileError) {
        try body()
        return SQLITE_OK
    } catch {
        return error.code == .noSpace ? SQLITE_FULL : ioError
    }
}

private func ioError(_ number: Int32) -> Int32 { SQLITE_IOERR | number << 8 }

// Written once, before SQLite reads them.
private nonisolated(unsafe) let systemVFS = findSystemVFS()
private nonisolated(unsafe) let fileMethods = makeFileMethods()
private let registration: Int32 = sqlite3_vfs_register(makeVFS(), 0)

private func findSystemVFS() -> UnsafeMutablePointer<sqlite3_vfs> {
    guard let vfs = sqlite3_vfs_find(nil) else {
        preconditionFailure("SQLite has no file system of its own")
    }
    return vfs
}

private func makeFileMethods() -> UnsafeMutablePointer<sqlite3_io_methods> {
    var methods = sqlite3_io_methods()
    methods.iVersion = 1
    methods.xClose = { file in
        guard let open = openFile(file) else { return SQLITE_OK }
        if open.isDeletedOnClose { try? open.disk.files.remove(open.path) }
        file?.withMemoryRebound(to: Handle.self, capacity: 1) { handle in
            handle.pointee.file?.release()
            handle.pointee.file = nil
        }
        return SQLITE_OK
    }
    methods.xRead = { file, buffer, count, offset in
        guard let open = openFile(file), let buffer else { return SQLITE_MISUSE }
        var isShort = false
        let code = resultCode(ioError(1)) { () throws(FileError) in
            let bytes = try open.file.read(at: Int(offset), count: Int(count))
            let target = UnsafeMutableRawBufferPointer(start: buffer, count: Int(count))
            target.copyBytes(from: bytes)
            isShort = bytes.count < count
            // SQLite expects zeros after the end of the file.
            for index in bytes.count..<Int(count) { target[index] = 0 }
        }
        return code == SQLITE_OK && isShort ? ioError(2) : code
    }
    methods.xWrite = { file, buffer, count, offset in
        guard let open = openFile(file), let buffer else { return SQLITE_MISUSE }
        let bytes = [UInt8](UnsafeRawBufferPointer(start: buffer, count: Int(count)))
        return resultCode(ioError(3)) { () throws(FileError) in
            try open.write(bytes, at: Int(offset))
        }
    }
    methods.xTruncate = { file, size in
        guard let open = openFile(file) else { return SQLITE_MISUSE }
        return resultCode(ioError(6)) { () throws(FileError) in
            try open.file.truncate(to: Int(size))
        }
    }
    methods.xSync = { file, _ in
        guard let open = openFile(file) else { return SQLITE_MISUSE }
        return resultCode(ioError(4)) { () throws(FileError) in try open.sync() }
    }
    methods.xFileSize = { file, size in
        guard let open = openFile(file) else { return SQLITE_MISUSE }
        return resultCode(ioError(7)) { () throws(FileError) in
            size?.pointee = Int64(try open.file.size())
        }
    }
    methods.xLock = { _, _ in SQLITE_OK }
    methods.xUnlock = { _, _ in SQLITE_OK }
    methods.xCheckReservedLock = { _, result in
        result?.pointee = 0
        return SQLITE_OK
    }
    methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    methods.xSectorSize = { file in
        let simulated = openFile(file)?.disk.files as? SimulatedFileSystem
        return Int32(simulated?.medium.sectorBytes ?? 4_096)
    }
    methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
    let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    pointer.initialize(to: methods)
    return pointer
}

private func makeVFS() -> UnsafeMutablePointer<sqlite3_vfs> {
    var vfs = systemVFS.pointee
    vfs.pNext = nil
    vfs.szOsFile = max(vfs.szOsFile, Int32(MemoryLayout<Handle>.size))
    vfs.zName = UnsafePointer(sqliteCopy(of: SimulatedDatabaseFiles.name))
    vfs.xOpen = { _, name, file, flags, outFlags in
        guard let (disk, path) = SimulatedDatabaseFiles.find(name) else {
            return systemVFS.pointee.xOpen(systemVFS, name, file, flags, outFlags)
        }
        file?.pointee.pMethods = nil
        return resultCode(SQLITE_CANTOPEN) { () throws(FileError) in
            let open = try openFile(disk, path, flags)
            file?.withMemoryRebound(to: Handle.self, capacity: 1) { handle in
                handle.pointee.file = Unmanaged.passRetained(open)
                handle.pointee.base.pMethods = UnsafePointer(fileMethods)
            }
            outFlags?.pointee = flags
        }
    }
    vfs.xDelete = { _, name, syncsFolder in
        guard let (disk, path) = SimulatedDatabaseFiles.find(name) else {
            return systemVFS.pointee.xDelete(systemVFS, name, syncsFolder)
        }
        var isMissing = false
        let code = resultCode(ioError(10)) { () throws(FileError) in
            do throws(FileError) {
                try disk.files.remove(path)
            } catch let error where error.code == .notFound {
                isMissing = true
            } catch { throw error }
            if syncsFolder != 0 { try disk.files.syncDirectory(folder(of: path)) }
        }
        return isMissing ? ioError(23) : code
    }
    vfs.xAccess = { _, name, flags, result in
        guard let (disk, path) = SimulatedDatabaseFiles.find(name) else {
            return systemVFS.pointee.xAccess(systemVFS, name, flags, result)
        }
        return resultCode(ioError(13)) { () throws(FileError) in
            do throws(FileError) {
                let size = try disk.files.open(path, .read).size()
                // As SQLite's own VFS for Unix: an empty file does not exist.
                result?.pointee = size > 0 || flags != SQLITE_ACCESS_EXISTS ? 1 : 0
            } catch let error where error.code == .notFound {
                result?.pointee = 0
            } catch { throw error }
        }
    }
    vfs.xFullPathname = { _, name, count, result in
        guard SimulatedDatabaseFiles.find(name) != nil, let name, let result else {
            return systemVFS.pointee.xFullPathname(systemVFS, name, count, result)
        }
        let bytes = Array(String(cString: name).utf8CString)
        guard bytes.count <= count else { return SQLITE_CANTOPEN }
        for (index, byte) in bytes.enumerated() { result[index] = byte }
        return SQLITE_OK
    }
    vfs.xRandomness = { _, count, result in
        systemVFS.pointee.xRandomness(systemVFS, count, result)
    }
    vfs.xSleep = { _, microseconds in systemVFS.pointee.xSleep(systemVFS, microseconds) }
    vfs.xCurrentTime = { _, result in systemVFS.pointee.xCurrentTime(systemVFS, result) }
    vfs.xCurrentTimeInt64 = { _, result in
        systemVFS.pointee.xCurrentTimeInt64(systemVFS, result)
    }
    vfs.xGetLastError = { _, count, result in
        systemVFS.pointee.xGetLastError(systemVFS, count, result)
    }
    let pointer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    pointer.initialize(to: vfs)
    return pointer
}

private func openFile(
    _ disk: SimulatedDatabaseFiles.Disk, _ path: String, _ flags: Int32
) throws(FileError) -> OpenFile {
    let isCreated = flags & SQLITE_OPEN_CREATE != 0
    let isExclusive = flags & SQLITE_OPEN_EXCLUSIVE != 0
    let mode: OpenMode =
        isExclusive && isCreated ? .createNew : isCreated ? .createIfMissing : .readWrite
    let isJournal = flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL)
    return OpenFile(
        disk, try disk.files.open(path, mode), path,
        isNameUnsynced: isCreated && isJournal != 0,
        isDeletedOnClose: flags & SQLITE_OPEN_DELETEONCLOSE != 0)
}

/// A copy of a text that is never freed.
private func sqliteCopy(of text: String) -> UnsafeMutablePointer<CChar> {
    let bytes = Array(text.utf8CString)
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    copy.initialize(from: bytes, count: bytes.count)
    return copy
}
