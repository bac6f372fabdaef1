// The seam between the log and the world: the few operations a log needs of a file system. The
// POSIX implementation stands beside this file; DaybookTestKit has others. Spec/format/recovery.md says
// what each operation must guarantee.

/// What the log needs of a file system.
///
/// Paths are absolute or relative to the working directory. Only `list` and `syncDirectory` follow a
/// symbolic link in the last component of a path.
public protocol FileSystem: Sendable {
    /// Creates a folder that only its owner may enter (0700). Its parent must exist.
    func createDirectory(_ path: String) throws(FileError)
    /// The names of all entries of a folder but `.` and `..`, in any order.
    func list(_ path: String) throws(FileError) -> [String]
    /// Opens a file. A new one may be read and written by its owner only (0600).
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File
    /// Renames, replacing what was there; the new path is on the same device. Durable after
    /// `syncDirectory` of both folders.
    func rename(_ path: String, to newPath: String) throws(FileError)
    /// Removes a file, or a symbolic link itself. Durable after `syncDirectory`.
    ///
    /// - Throws: `wrongKind` for a folder (`readOnly` on systems that do not tell).
    func remove(_ path: String) throws(FileError)
    /// Removes an empty folder. Durable after `syncDirectory` of its parent.
    func removeDirectory(_ path: String) throws(FileError)
    /// Makes creations, renames and removals in a folder durable.
    func syncDirectory(_ path: String) throws(FileError)
}

extension FileSystem {
    /// Creates a folder and those that it lies in, as far as they are missing. Durable on return,
    /// also what was created before and may not have been synced.
    ///
    /// - Throws: as `createDirectoryIfMissing`.
    public func createDirectories(_ path: String) throws(FileError) {
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
        do throws(FileError) {
            try createDirectoryIfMissing(path)
        } catch let error where error.code == .notFound && !parent.isEmpty {
            try createDirectories(parent)
            try createDirectoryIfMissing(path)
        } catch { throw error }
        if !parent.isEmpty { try syncDirectory(parent) }
    }

    /// Creates a folder, or checks that there is one.
    ///
    /// - Throws: `symbolicLink` or `wrongKind` where something else stands there.
    public func createDirectoryIfMissing(_ path: String) throws(FileError) {
        do throws(FileError) {
            return try createDirectory(path)
        } catch let error where error.code == .exists {
        } catch { throw error }
        do throws(FileError) {
            _ = try open(path, .read)
        } catch let error where error.code == .wrongKind {
            // What can be listed is a folder.
            _ = try list(path)
            return
        } catch { throw error }
        throw FileError(
            .wrongKind, operation: "create", path: path,
            reason: "a file stands where a folder belongs")
    }
}

/// How to open a file.
public enum OpenMode: Sendable {
    /// An existing file, to read.
    case read
    /// An existing file, to read and write.
    case readWrite
    /// A file that must not exist yet, to read and write.
    case createNew
    /// A file to read and write that is created if missing.
    case createIfMissing
}

/// An open file. Closed when the last reference goes.
public protocol File: AnyObject, Sendable {
    /// The file's size in bytes.
    func size() throws(FileError) -> Int
    /// What tells this file from its copies on the same device: the inode number.
    func identity() throws(FileError) -> UInt64
    /// True while the file has a name in some folder. A file that was removed can still be written
    /// and synced, and all of that is lost once it is closed.
    func isLinked() throws(FileError) -> Bool
    /// Reads up to `count` bytes at `offset`; fewer only where the file ends.
    func read(at offset: Int, count: Int) throws(FileError) -> [UInt8]
    /// Writes all bytes at `offset`. Durable after `sync`.
    func write(_ bytes: [UInt8], at offset: Int) throws(FileError)
    /// Makes the file `size` bytes long with room reserved on the medium; the new part reads as
    /// zeros. Fails with the file unchanged.
    func allocate(size: Int) throws(FileError)
    /// Cuts the file to `size` bytes.
    func truncate(to size: Int) throws(FileError)
    /// Makes everything written to this file durable, power cuts included (`fdatasync`;
    /// `F_FULLFSYNC` on Apple systems).
    func sync() throws(FileError)
    /// Takes the file's exclusive lock; held until the file is closed, also where a process that is
    /// being spawned has a copy of the descriptor.
    ///
    /// - Returns: false if somebody else holds it.
    func lock() throws(FileError) -> Bool
}

extension File {
    /// Checks that what was synced stays: the file still has a name.
    ///
    /// - Throws: `notFound` where it was removed; what `isLinked` throws.
    func requireLinked(_ path: String) throws(FileError) {
        guard try isLinked() else {
            throw FileError(
                .notFound, operation: "write", path: path,
                reason: "the file was removed while the log was open")
        }
    }
}

/// A failed operation of a file system.
public struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: String, Sendable {
        /// There is no such file or folder.
        case notFound = "not-found"
        /// The file exists already.
        case exists
        /// The device or the quota is full.
        case noSpace = "no-space"
        /// The file system or the folder may not be written.
        case readOnly = "read-only"
        /// The path leads over a symbolic link.
        case symbolicLink = "symbolic-link"
        /// A path component is not a folder, or a folder stands where a file belongs.
        case wrongKind = "wrong-kind"
        /// Anything else.
        case io
    }

    /// The kind of failure.
    public let code: Code
    /// The operation: `open`, `write`, `sync`, …
    public let operation: String
    /// The path it was for.
    public let path: String
    /// The system's words.
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
