// The real file system. All system calls of the log are in this file.

import LogFormat
import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif
#if os(Linux)
    import CStatx
#endif

/// The file system of the machine.
public struct POSIXFileSystem: FileSystem {
    /// Creates access to the machine's file system.
    public init() {}

    public func createDirectory(_ path: String) throws(FileError) {
        guard mkdir(path, 0o700) == 0 else { throw FileError(errno: errno, "create", path) }
    }

    public func list(_ path: String) throws(FileError) -> [String] {
        guard let directory = opendir(path) else { throw FileError(errno: errno, "list", path) }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else { break }
            // Read in place: a copy would read a whole `dirent`, but the system fills only the part that
            // the name needs.
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw FileError(errno: errno, "list", path) }
        return names
    }

    public func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let flags: Int32 =
            switch mode {
            // Without O_NONBLOCK, opening a pipe would block until another process opens it for writing.
            case .read: O_RDONLY | O_NONBLOCK
            case .readWrite: O_RDWR
            case .createNew: O_RDWR | O_CREAT | O_EXCL
            case .createIfMissing: O_RDWR | O_CREAT
            }
        let descriptor = try retrying("open", path) { () -> Int32 in
            #if canImport(Darwin)
                Darwin.open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
            #elseif canImport(Musl)
                Musl.open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
            #else
                Glibc.open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
            #endif
        }
        let file = POSIXFile(descriptor: descriptor, path: path)
        // Reads from a pipe or a device in a log's folder could block forever.
        guard try file.status("open").st_mode & S_IFMT == S_IFREG else {
            throw FileError(
                .wrongKind, operation: "open", path: path, reason: "it is not a regular file")
        }
        return file
    }

    public func identity(_ path: String) throws(FileError) -> UInt64? {
        var status = stat()
        if lstat(path, &status) == 0 { return UInt64(status.st_ino) }
        guard errno == ENOENT || errno == ENOTDIR else {
            throw FileError(errno: errno, "inspect", path)
        }
        return nil
    }

    public func rename(_ path: String, to newPath: String) throws(FileError) {
        #if canImport(Darwin)
            let result = Darwin.rename(path, newPath)
        #elseif canImport(Musl)
            let result = Musl.rename(path, newPath)
        #else
            let result = Glibc.rename(path, newPath)
        #endif
        guard result == 0 else { throw FileError(errno: errno, "rename", path) }
    }

    public func remove(_ path: String) throws(FileError) {
        guard unlink(path) == 0 else { throw FileError(errno: errno, "remove", path) }
    }

    public func removeDirectory(_ path: String) throws(FileError) {
        guard rmdir(path) == 0 else { throw FileError(errno: errno, "remove", path) }
    }

    public func syncDirectory(_ path: String) throws(FileError) {
        let descriptor = try openDirectory("sync", path)
        defer { close(descriptor) }
        #if canImport(Darwin)
            // fsync leaves the data in the drive's cache.
            _ = try retrying("sync", path) { fcntl(descriptor, F_FULLFSYNC) }
        #else
            _ = try retrying("sync", path) { fsync(descriptor) }
        #endif
    }

    public func share(_ path: String, as newPath: String) -> Bool {
        // A clone by `clonefile` and a further name have the mode of the file.
        guard let file = try? open(path, .read) as? POSIXFile,
            let permissions = try? file.permissions(), permissions & 0o077 == 0
        else { return false }
        #if canImport(Darwin)
            if clonefile(path, newPath, UInt32(CLONE_NOFOLLOW)) == 0 { return true }
        #elseif os(Linux)
            if file.clone(to: newPath, self) { return true }
        #endif
        // Without AT_SYMLINK_FOLLOW, a symbolic link is not followed.
        return linkat(AT_FDCWD, path, AT_FDCWD, newPath, 0) == 0
    }

    public func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)? {
        let lock = POSIXDirectoryLock(descriptor: try openDirectory("lock", path))
        switch acquireLock(lock.descriptor) {
        case 0:
            lock.setHeld()
            return lock
        case EBADF, EINVAL, ENOLCK, ENOSYS, ENOTSUP, EOPNOTSUPP: return lock
        case EWOULDBLOCK: return nil
        case let code: throw FileError(errno: code, "lock", path)
        }
    }

    public func lockHolder(of path: String) -> LockHolder? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        if POSIXDirectoryLock.isHeld(status) { return .thisProcess }
        #if os(Linux) || os(Android)
            return LockHolder(
                device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
        #else
            return nil
        #endif
    }

    private func openDirectory(_ operation: String, _ path: String) throws(FileError) -> Int32 {
        try retrying(operation, path) { () -> Int32 in
            #if canImport(Darwin)
                Darwin.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            #elseif canImport(Musl)
                Musl.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            #else
                Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            #endif
        }
    }
}

/// An open folder and its lock.
private final class POSIXDirectoryLock: DirectoryLock {
    /// A folder, by its device and its inode number.
    private struct Folder: Hashable {
        let device: UInt64
        let inode: UInt64

        init(_ status: stat) {
            device = UInt64(truncatingIfNeeded: status.st_dev)
            inode = UInt64(status.st_ino)
        }
    }

    /// The folders that this process has locked: not every system names the process that holds a lock.
    private static let held = Mutex<Set<Folder>>([])

    let descriptor: Int32
    private let folder = Mutex<Folder?>(nil)

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit {
        if let folder = folder.withLock({ $0 }) { _ = Self.held.withLock { $0.remove(folder) } }
        releaseLock(descriptor)
    }

    /// Remembers that the lock was acquired.
    func setHeld() {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return }
        let locked = Folder(status)
        _ = Self.held.withLock { $0.insert(locked) }
        folder.withLock { $0 = locked }
    }

    /// True if this process has locked the folder.
    static func isHeld(_ status: stat) -> Bool { held.withLock { $0.contains(Folder(status)) } }
}

/// One open descriptor.
private final class POSIXFile: File {
    private let descriptor: Int32
    private let path: String

    init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { releaseLock(descriptor) }

    func status(_ operation: String) throws(FileError) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw FileError(errno: errno, operation, path)
        }
        return status
    }

    #if os(Linux)
        /// Creates a file that shares this one's blocks.
        ///
        /// - Returns: false if the file system cannot do that; then nothing was created.
        func clone(to newPath: String, _ fileSystem: POSIXFileSystem) -> Bool {
            guard let copy = try? fileSystem.open(newPath, .createNew) as? POSIXFile else {
                return false
            }
            if clone_file(copy.descriptor, descriptor) == 0 { return true }
            try? fileSystem.remove(newPath)
            return false
        }
    #endif

    func size() throws(FileError) -> Int { Int(try status("inspect").st_size) }

    func identity() throws(FileError) -> UInt64 { UInt64(try status("inspect").st_ino) }

    func fingerprint() throws(FileError) -> UInt64 {
        let inode = try identity()
        #if os(Linux)
            let birth = statx_birth_time(descriptor)
        #else
            let time = try status("inspect").st_birthtimespec
            let birth = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        #endif
        // Some file systems do not store the time.
        guard birth > 0 else { return inode }
        var bytes: [UInt8] = []
        bytes.append(littleEndian: inode)
        bytes.append(littleEndian: UInt64(birth))
        return XXH64.hash(bytes.span.bytes)
    }

    func permissions() throws(FileError) -> UInt16? {
        UInt16(try status("inspect").st_mode & 0o777)
    }

    func isLinked() throws(FileError) -> Bool { try linkCount() > 0 }

    func linkCount() throws(FileError) -> Int {
        #if os(Linux)
            // Not fstat, which also returns the times: after that the next write changes them, and its sync writes
            // the inode, too. An append took 30 µs more. Spec/decisions/0058-link-count-without-times.md.
            let count = statx_link_count(descriptor)
            if count >= 0 { return count }
        #endif
        return Int(try status("inspect").st_nlink)
    }

    func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
        var failure: FileError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let remaining = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
                let result = pread(
                    descriptor, remaining.baseAddress, remaining.count, off_t(offset + filled))
                if result == 0 { return }
                if result < 0 {
                    if errno == EINTR { continue }
                    failure = FileError(errno: errno, "read", path)
                    return
                }
                filled += result
            }
        }
        if let failure { throw failure }
        return bytes
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
        let failure = bytes.withUnsafeBytes { buffer -> FileError? in
            var written = 0
            while written < buffer.count {
                let remaining = UnsafeRawBufferPointer(rebasing: buffer[written...])
                let result = pwrite(
                    descriptor, remaining.baseAddress, remaining.count, off_t(offset + written))
                if result < 0 {
                    if errno == EINTR { continue }
                    return FileError(errno: errno, "write", path)
                }
                written += result
            }
            return nil
        }
        if let failure { throw failure }
    }

    func allocate(size: Int) throws(FileError) {
        let old = try self.size()
        guard size > old else { return }
        #if canImport(Darwin)
            // Allocates the space, or fails if the disk is full; does not change the size.
            var store = fstore_t(
                fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0,
                fst_length: off_t(size - old), fst_bytesalloc: 0)
            // ENOTSUP: the file system cannot preallocate.
            if fcntl(descriptor, F_PREALLOCATE, &store) == -1, errno != ENOTSUP {
                throw FileError(errno: errno, "grow", path)
            }
            _ = try retrying("grow", path) { ftruncate(descriptor, off_t(size)) }
        #else
            while true {
                let result = posix_fallocate(descriptor, off_t(old), off_t(size - old))
                if result == 0 { return }
                if result == EINTR { continue }
                // An emulation that writes zeros may have grown the file partly.
                _ = ftruncate(descriptor, off_t(old))
                throw FileError(errno: result, "grow", path)
            }
        #endif
    }

    func truncate(to size: Int) throws(FileError) {
        _ = try retrying("truncate", path) { ftruncate(descriptor, off_t(size)) }
    }

    func sync() throws(FileError) {
        #if canImport(Darwin)
            _ = try retrying("sync", path) { fcntl(descriptor, F_FULLFSYNC) }
        #else
            _ = try retrying("sync", path) { fdatasync(descriptor) }
        #endif
    }

    func lock() throws(FileError) -> Bool {
        switch acquireLock(descriptor) {
        case 0: true
        case EWOULDBLOCK: false
        case let code: throw FileError(errno: code, "lock", path)
        }
    }
}

/// Acquires the exclusive lock without waiting.
///
/// - Returns: 0, or the system's error number.
private func acquireLock(_ descriptor: Int32) -> Int32 {
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
        if errno != EINTR { return errno }
    }
    return 0
}

/// Releases the lock and closes the descriptor. Closing alone would not release the lock while a process is
/// being spawned: it has a copy of every descriptor until it executes its own program.
private func releaseLock(_ descriptor: Int32) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
}

private func retrying(
    _ operation: String, _ path: String, _ call: () -> Int32
) throws(FileError) -> Int32 {
    while true {
        let result = call()
        if result >= 0 { return result }
        if errno != EINTR { throw FileError(errno: errno, operation, path) }
    }
}

extension FileError {
    fileprivate init(errno code: Int32, _ operation: String, _ path: String) {
        let kind: Code =
            switch code {
            case ENOENT: .notFound
            case EEXIST: .exists
            case ENOSPC, EDQUOT: .noSpace
            case EROFS, EACCES, EPERM: .readOnly
            case ELOOP: .symbolicLink
            // ENXIO: a socket.
            case ENOTDIR, EISDIR, ENXIO: .wrongKind
            #if canImport(Darwin)
                // EOPNOTSUPP: a socket.
                case EOPNOTSUPP: .wrongKind
            #endif
            default: .io
            }
        self.init(
            kind, operation: operation, path: path,
            reason: kind == .symbolicLink
                ? "it is a symbolic link, which is never followed"
                : String(cString: strerror(code)))
    }
}
