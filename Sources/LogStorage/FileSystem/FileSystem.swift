// The file system operations that a log needs. POSIXFileSystem implements them; DaybookTestKit simulates
// them. Spec/format/recovery.md specifies what each operation must guarantee.

/// The operations that a log needs of a file system.
///
/// Paths are absolute or relative to the working directory. Only `list` and `syncDirectory` follow a
/// symbolic link in the last component of a path.
public protocol FileSystem: Sendable {
    /// Creates a folder that only its owner may enter (0700). Its parent must exist.
    func createDirectory(_ path: String) throws(FileError)
    /// Lists the names of all entries of a folder except `.` and `..`, in any order.
    func list(_ path: String) throws(FileError) -> [String]
    /// Opens a file. A new one is readable and writable by its owner only (0600).
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File
    /// The inode number of the file that a path leads to, without opening it; nil if there is none. A
    /// symbolic link counts as a file of its own.
    func identity(_ path: String) throws(FileError) -> UInt64?
    /// Renames an entry, replacing one with the new name. The new path is on the same device. Durable after
    /// `syncDirectory` of both folders.
    func rename(_ path: String, to newPath: String) throws(FileError)
    /// Removes a file, or a symbolic link itself. Durable after `syncDirectory`.
    ///
    /// - Throws: `wrongKind` for a folder (`readOnly` on systems that do not distinguish the two).
    func remove(_ path: String) throws(FileError)
    /// Removes an empty folder. Durable after `syncDirectory` of its parent.
    func removeDirectory(_ path: String) throws(FileError)
    /// Makes creations, renames and removals in a folder durable.
    func syncDirectory(_ path: String) throws(FileError)
    /// Acquires the exclusive lock of a folder. It stays valid if entries of the folder are removed or
    /// replaced, and if the folder is renamed.
    ///
    /// - Returns: nil if the lock is held through another value. Where folders cannot be locked, a value that
    ///   excludes nothing.
    func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)?
    /// The process that holds the lock of a file or folder, for messages; nil if it is not known.
    func lockHolder(of path: String) -> LockHolder?
    /// Creates a file with the content of a file that no program writes to any more, without copying its bytes:
    /// as a clone or as a further name of that file. The new file, like the old one, is accessible to its owner
    /// only. Durable after `sync` and `syncDirectory`.
    ///
    /// - Returns: false if the file system cannot do that; then nothing was created.
    func share(_ path: String, as newPath: String) -> Bool
}

extension FileSystem {
    /// Returns false: the caller copies the bytes.
    public func share(_ path: String, as newPath: String) -> Bool { false }

    /// Returns nil: messages do not name the process.
    public func lockHolder(of path: String) -> LockHolder? { nil }
}

/// The lock of a folder. Released with the last reference to the value, even if a process that is being
/// spawned has a copy of the descriptor.
public protocol DirectoryLock: AnyObject, Sendable {}

extension FileSystem {
    /// Creates a folder and its missing parents. Durable on return, including folders that were created
    /// before and may not have been synced.
    ///
    /// - Throws: as `createDirectoryIfMissing`.
    public func createDirectories(_ path: String) throws(FileError) {
        let parent = path.lastSlash.map { String(path[..<$0]) } ?? ""
        do throws(FileError) {
            try createDirectoryIfMissing(path)
        } catch let error where error.code == .notFound && !parent.isEmpty {
            try createDirectories(parent)
            try createDirectoryIfMissing(path)
        } catch { throw error }
        if !parent.isEmpty { try syncDirectory(parent) }
    }

    /// Creates a file with the first `count` bytes of an open one. Not durable.
    ///
    /// - Returns: the new file.
    /// - Complexity: O(bytes); memory for 1 MiB.
    @discardableResult
    func copy(_ file: any File, count: Int, to newPath: String) throws(FileError) -> any File {
        let copy = try open(newPath, .createNew)
        try file.copy(count, to: copy)
        return copy
    }

    /// Creates a folder, or checks that there is one.
    ///
    /// - Throws: `symbolicLink` or `wrongKind` if an entry of another kind exists.
    public func createDirectoryIfMissing(_ path: String) throws(FileError) {
        do throws(FileError) {
            return try createDirectory(path)
        } catch let error where error.code == .exists {
        } catch { throw error }
        do throws(FileError) {
            _ = try open(path, .read)
        } catch let error where error.code == .wrongKind {
            // An entry that can be listed is a folder.
            _ = try list(path)
            return
        } catch { throw error }
        throw FileError(
            .wrongKind, operation: "create", path: path,
            reason: "a file with this name exists, where a folder is needed")
    }
}

/// The mode of opening a file.
public enum OpenMode: Sendable {
    /// Opens an existing file for reading.
    case read
    /// Opens an existing file for reading and writing.
    case readWrite
    /// Creates a file for reading and writing; fails if it exists.
    case createNew
    /// Opens a file for reading and writing, creating it if it is missing.
    case createIfMissing
}

/// An open file. Closed when its last reference is released.
public protocol File: AnyObject, Sendable {
    /// The file's size in bytes.
    func size() throws(FileError) -> Int
    /// The inode number, which distinguishes the file from its copies on the same device.
    func identity() throws(FileError) -> UInt64
    /// A number made of the inode number and the creation time. A file that gets the inode number of a
    /// removed one has another fingerprint.
    func fingerprint() throws(FileError) -> UInt64
    /// The permission bits (`0o600`); nil if the file system has none.
    func permissions() throws(FileError) -> UInt16?
    /// True while the file has a name in some folder. A file that was removed can still be written
    /// and synced, and all of that is lost once it is closed.
    func isLinked() throws(FileError) -> Bool
    /// The number of names that the file has in folders: more than one through hard links.
    func linkCount() throws(FileError) -> Int
    /// Reads up to `count` bytes at `offset`; fewer only where the file ends.
    func read(at offset: Int, count: Int) throws(FileError) -> [UInt8]
    /// Writes all bytes at `offset`. Durable after `sync`.
    func write(_ bytes: [UInt8], at offset: Int) throws(FileError)
    /// Grows the file to `size` bytes of space allocated on the medium; the new part reads as zeros. An
    /// error leaves the file unchanged.
    func allocate(size: Int) throws(FileError)
    /// Truncates the file to `size` bytes.
    func truncate(to size: Int) throws(FileError)
    /// Makes everything written to this file durable, power cuts included (`fdatasync`;
    /// `F_FULLFSYNC` on Apple systems).
    func sync() throws(FileError)
    /// Acquires the file's exclusive lock. It is released when the file is closed, even if a process that is
    /// being spawned has a copy of the descriptor.
    ///
    /// - Returns: false if the lock is held through another open file.
    func lock() throws(FileError) -> Bool
}

extension File {
    /// The inode number, for file systems that never give one to another file.
    public func fingerprint() throws(FileError) -> UInt64 { try identity() }
    /// The number of names, for file systems without hard links.
    public func linkCount() throws(FileError) -> Int { try isLinked() ? 1 : 0 }
    /// A file without permissions.
    public func permissions() throws(FileError) -> UInt16? { nil }

    /// Writes the first `count` bytes into an empty file. Not durable.
    ///
    /// - Complexity: O(bytes); memory for 1 MiB.
    func copy(_ count: Int, to target: any File) throws(FileError) {
        var offset = 0
        while offset < count {
            let bytes = try read(at: offset, count: min(1024 * 1024, count - offset))
            guard !bytes.isEmpty else { return }
            try target.write(bytes, at: offset)
            offset += bytes.count
        }
    }

    /// Checks that the file still has a name, since synced bytes of a removed file are lost.
    ///
    /// - Throws: `notFound` if it was removed or replaced; the errors of `isLinked`.
    func requireLinked(_ path: String) throws(FileError) {
        guard try isLinked() else {
            throw FileError(
                .notFound, operation: "write", path: path,
                reason: "the file was removed, or replaced by another one, while the log was open")
        }
    }
}

/// A failed operation of a file system.
public struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public enum Code: String, Sendable {
        /// The file or folder does not exist.
        case notFound = "not-found"
        /// The file exists already.
        case exists
        /// The device or the quota is full.
        case noSpace = "no-space"
        /// The file system or the folder is not writable.
        case readOnly = "read-only"
        /// The last component of the path is a symbolic link.
        case symbolicLink = "symbolic-link"
        /// A path component is not a folder, or the entry is a folder or a device instead of a file.
        case wrongKind = "wrong-kind"
        /// Any other failure.
        case io
    }

    /// The kind of failure.
    public let code: Code
    /// The operation: `open`, `write`, `sync`, …
    public let operation: String
    /// The path that the operation was called with.
    public let path: String
    /// The system's message.
    public let reason: String

    /// Creates an error.
    public init(_ code: Code, operation: String, path: String, reason: String) {
        self.code = code
        self.operation = operation
        self.path = path
        self.reason = reason
    }

    /// Operation, path and reason in one line.
    public var description: String { "\(operation) \(path): \(reason)" }
}
