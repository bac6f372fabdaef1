// A file system in RAM with the guarantees of POSIX, for tests that open a log thousands of times. Tests can
// damage bytes directly, make operations fail and set a quota. It does not simulate crashes or lost writes.

import Synchronization

/// A file system in memory.
public final class InMemoryFileSystem: FileSystem {
    private let state: Mutex<InMemoryState>

    /// Creates a file system with an empty root folder `/`.
    public init() { state = Mutex(InMemoryState()) }

    private init(_ state: sending InMemoryState) { self.state = Mutex(state) }

    // MARK: FileSystem

    /// Creates a folder; its parent must exist.
    public func createDirectory(_ path: String) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            try state.check("create", path)
            guard !state.exists(path) else { throw state.error(.exists, "create", path) }
            guard state.directories.contains(InMemoryState.parent(of: path)) else {
                throw state.error(.notFound, "create", path)
            }
            state.directories.insert(path)
        }
    }

    /// The names in a folder.
    public func list(_ path: String) throws(FileError) -> [String] {
        try state.withLock { (state) throws(FileError) in
            try state.check("list", path)
            guard state.directories.contains(path) else {
                throw state.error(state.exists(path) ? .wrongKind : .notFound, "list", path)
            }
            return state.entries(of: path)
        }
    }

    /// Opens a file.
    public func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let node = try state.withLock { (state) throws(FileError) in
            try state.open(path, mode)
        }
        return InMemoryFile(self, node: node, path: path, isReadOnly: mode == .read)
    }

    /// The number of the file at a path; nil if there is none.
    public func identity(_ path: String) throws(FileError) -> UInt64? {
        try state.withLock { (state) throws(FileError) in
            try state.check("inspect", path)
            return state.names[path]
        }
    }

    /// Renames a file, replacing one with the new name, or a folder with its content.
    public func rename(_ path: String, to newPath: String) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            try state.check("rename", path)
            if state.directories.contains(path) { return state.moveFolder(path, to: newPath) }
            guard let node = state.names.removeValue(forKey: path) else {
                throw state.error(.notFound, "rename", path)
            }
            let replaced = state.names.updateValue(node, forKey: newPath)
            if let replaced { state.dropIfUnused(replaced) }
        }
    }

    /// Removes a file's name. Open files stay usable.
    public func remove(_ path: String) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            try state.check("remove", path)
            guard let node = state.names.removeValue(forKey: path) else {
                throw state.error(
                    state.directories.contains(path) ? .wrongKind : .notFound, "remove", path)
            }
            state.dropIfUnused(node)
        }
    }

    /// Removes an empty folder.
    public func removeDirectory(_ path: String) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            try state.check("remove", path)
            guard state.directories.contains(path) else {
                throw state.error(state.exists(path) ? .wrongKind : .notFound, "remove", path)
            }
            guard state.entries(of: path).isEmpty else { throw state.error(.io, "remove", path) }
            state.directories.remove(path)
            state.directoryLocks[path] = nil
        }
    }

    /// Checks that the folder exists; everything is durable anyway.
    public func syncDirectory(_ path: String) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            try state.check("sync", path)
            guard state.directories.contains(path) else {
                throw state.error(.notFound, "sync", path)
            }
        }
    }

    /// Acquires a folder's lock, which moves with the folder.
    public func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)? {
        try state.withLock { (state) throws(FileError) -> (any DirectoryLock)? in
            try state.check("lock", path)
            guard state.directories.contains(path) else {
                throw state.error(.notFound, "lock", path)
            }
            if state.directoryLocks[path]?.lock != nil { return nil }
            let lock = InMemoryDirectoryLock()
            state.directoryLocks[path] = InMemoryState.WeakLock(lock: lock)
            return lock
        }
    }

    /// This process, if a folder is locked: no other one has this file system.
    public func lockHolder(of path: String) -> LockHolder? {
        state.withLock { $0.directoryLocks[path]?.lock == nil ? nil : .thisProcess }
    }

    // MARK: For tests

    /// Copies the whole file system, with the same identities, without open files, locks, quota and injected
    /// failures.
    public func snapshot() -> InMemoryFileSystem {
        state.withLock { InMemoryFileSystem($0.copy()) }
    }

    /// Copies a folder with its content. The copies have new identities.
    public func copyFolder(_ path: String, to newPath: String) {
        state.withLock { $0.copyFolder(path, to: newPath) }
    }

    /// The content of every file by its path.
    public var image: [String: [UInt8]] {
        state.withLock { state in state.names.mapValues { state.nodes[$0]?.bytes ?? [] } }
    }

    /// The content of a file, nil if there is none. Setting bytes creates the file or changes it in place;
    /// setting nil removes it.
    public subscript(path: String) -> [UInt8]? {
        get { state.withLock { state in state.names[path].flatMap { state.nodes[$0]?.bytes } } }
        set {
            state.withLock { state in
                if let newValue {
                    let node = state.names[path] ?? state.create(path)
                    state.nodes[node]?.bytes = newValue
                } else if let node = state.names.removeValue(forKey: path) {
                    state.dropIfUnused(node)
                }
            }
        }
    }

    /// Flips one bit of a file.
    public func flip(bit: Int, of path: String) {
        state.withLock { state in
            guard let node = state.names[path] else { return }
            state.nodes[node]?.bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
    }

    /// Limits the total size of all files; nil for no limit.
    public func setQuota(_ bytes: Int?) { state.withLock { $0.quota = bytes } }

    /// The total size of all files.
    public var usedBytes: Int { state.withLock { $0.usedBytes } }

    /// The number of open files.
    public var openFileCount: Int { state.withLock { $0.nodes.values.reduce(0) { $0 + $1.opens } } }

    /// Calls `decide` before every operation (`create`, `list`, `open`, `rename`, `remove`, `sync`,
    /// `inspect`, `read`, `write`, `grow`, `truncate`, `lock`). If it returns an error, the operation fails
    /// with that. `decide` must not call the file system.
    public func failing(_ decide: (@Sendable (_ operation: String, _ path: String) -> FileError?)?)
    {
        state.withLock { $0.failure = decide }
    }

    func access<T: Sendable>(
        _ body: (inout InMemoryState) throws(FileError) -> T
    ) throws(FileError) -> T {
        try state.withLock { (state) throws(FileError) in try body(&state) }
    }
}
