// A machine whose power can be cut at any operation. Operations are numbered; from the chosen one on
// nothing is carried out any more and every call fails, as if the process were gone. What the disk
// then holds follows from choices, so a property shrinks it. The fault model is in SimulatedDisk.

import LogStorage
import Synchronization

/// A file system with a power switch.
public final class SimulatedFileSystem: FileSystem {
    private struct State {
        var disk: SimulatedDisk
        var locks: [Int: ObjectIdentifier] = [:]
        var operations = 0
        var cutAt: Int?
        var failingSync: Int?
        var trace: [String] = []
    }

    private let state: Mutex<State>

    /// A machine with an empty disk.
    public init() { state = Mutex(State(disk: SimulatedDisk())) }

    private init(_ disk: SimulatedDisk) { state = Mutex(State(disk: disk)) }

    // MARK: Faults

    /// Cuts the power just before the operation with this number, counted from 0.
    public func cutPower(at operation: Int) { state.withLock { $0.cutAt = operation } }

    /// Makes the first file sync from the operation with this number on fail, once.
    public func failSync(from operation: Int) { state.withLock { $0.failingSync = operation } }

    /// How many operations that change something were carried out.
    public var operations: Int { state.withLock { $0.operations } }

    /// The operations that were carried out, in words.
    public var trace: [String] { state.withLock { $0.trace } }

    /// The machine after the power came back.
    public func afterPowerCut(_ choices: inout Choices) -> SimulatedFileSystem {
        SimulatedFileSystem(state.withLock { $0.disk }.afterPowerCut(&choices))
    }

    /// The machine after the process was killed: what it wrote is in the page cache.
    public func afterKill() -> SimulatedFileSystem {
        SimulatedFileSystem(state.withLock { $0.disk })
    }

    /// Runs an operation that changes something, unless the power is off.
    private func change<T: Sendable>(
        _ operation: String, _ path: String, _ body: (inout SimulatedDisk) throws(FileError) -> T
    ) throws(FileError) -> T {
        try state.withLock { (state) throws(FileError) in
            try Self.checkPower(state, operation, path)
            if state.operations == state.cutAt {
                throw FileError(.io, operation: operation, path: path, reason: "the power is off")
            }
            state.operations += 1
            state.trace.append("\(operation) \(path)")
            return try body(&state.disk)
        }
    }

    /// As `change`, for a sync: also says whether it is the one that fails.
    private func change<T: Sendable>(
        _ operation: String, _ path: String, _ body: (inout SimulatedDisk, Bool) -> T
    ) throws(FileError) -> T {
        let fails = state.withLock { state in
            guard let number = state.failingSync, state.operations >= number else { return false }
            state.failingSync = nil
            return true
        }
        return try change(fails ? operation + " (fails)" : operation, path) {
            (disk) throws(FileError) in body(&disk, fails)
        }
    }

    private func look<T: Sendable>(
        _ operation: String, _ path: String, _ body: (SimulatedDisk) throws(FileError) -> T
    ) throws(FileError) -> T {
        try state.withLock { (state) throws(FileError) in
            try Self.checkPower(state, operation, path)
            return try body(state.disk)
        }
    }

    private static func checkPower(
        _ state: State, _ operation: String, _ path: String
    ) throws(FileError) {
        guard state.cutAt.map({ state.operations < $0 }) ?? true else {
            throw FileError(.io, operation: operation, path: path, reason: "the power is off")
        }
    }

    // MARK: FileSystem

    /// Creates a folder.
    public func createDirectory(_ path: String) throws(FileError) {
        try change("create", path) { (disk) throws(FileError) in
            guard disk.folder(path) == nil else {
                throw FileError(.exists, operation: "create", path: path, reason: "it exists")
            }
            // Folders themselves are taken for durable: only what is in them is at stake.
            disk.folders[path] = SimulatedDisk.Folder()
        }
    }

    /// The names in a folder.
    public func list(_ path: String) throws(FileError) -> [String] {
        try look("list", path) { (disk) throws(FileError) in
            guard let folder = disk.folder(path) else {
                throw FileError(.notFound, operation: "list", path: path, reason: "no such folder")
            }
            return Array(folder.cached.keys) + disk.folders(in: path)
        }
    }

    /// Opens a file.
    public func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let (folder, name) = SimulatedDisk.split(path)
        let node = try look("open", path) { (disk) throws(FileError) in
            disk.folder(folder)?.cached[name]
        }
        if let node {
            if case .createNew = mode {
                throw FileError(.exists, operation: "open", path: path, reason: "it exists")
            }
            return SimulatedFile(self, node, path)
        }
        switch mode {
        case .read, .readWrite:
            throw FileError(.notFound, operation: "open", path: path, reason: "no such file")
        case .createNew, .createIfMissing:
            let created = try change("create", path) { (disk) throws(FileError) in
                guard disk.folder(folder) != nil else {
                    throw FileError(
                        .notFound, operation: "open", path: path, reason: "no such folder")
                }
                let node = disk.createNode()
                disk.folders[folder]?.cached[name] = node
                return node
            }
            return SimulatedFile(self, created, path)
        }
    }

    /// Renames a file.
    public func rename(_ path: String, to newPath: String) throws(FileError) {
        let (folder, name) = SimulatedDisk.split(path)
        let (newFolder, newName) = SimulatedDisk.split(newPath)
        try change("rename", path) { (disk) throws(FileError) in
            guard let node = disk.folders[folder]?.cached.removeValue(forKey: name) else {
                throw FileError(.notFound, operation: "rename", path: path, reason: "no such file")
            }
            disk.folders[newFolder]?.cached[newName] = node
        }
    }

    /// Removes a name.
    public func remove(_ path: String) throws(FileError) {
        let (folder, name) = SimulatedDisk.split(path)
        try change("remove", path) { (disk) throws(FileError) in
            guard disk.folders[folder]?.cached.removeValue(forKey: name) != nil else {
                throw FileError(
                    disk.folder(path) == nil ? .notFound : .wrongKind, operation: "remove",
                    path: path, reason: "no such file")
            }
        }
    }

    /// Removes an empty folder.
    public func removeDirectory(_ path: String) throws(FileError) {
        try change("remove folder", path) { (disk) throws(FileError) in
            guard let folder = disk.folder(path) else {
                throw FileError(
                    .notFound, operation: "remove", path: path, reason: "no such folder")
            }
            guard folder.cached.isEmpty, disk.folders(in: path).isEmpty else {
                throw FileError(.io, operation: "remove", path: path, reason: "it is not empty")
            }
            disk.folders[path]?.isRemoved = true
        }
    }

    /// Makes a folder's entries durable.
    public func syncDirectory(_ path: String) throws(FileError) {
        try change("sync folder", path) { (disk) throws(FileError) in disk.sync(folder: path) }
    }

    /// An open file.
    private final class SimulatedFile: File {
        private let system: SimulatedFileSystem
        private let node: Int
        private let path: String

        init(_ system: SimulatedFileSystem, _ node: Int, _ path: String) {
            self.system = system
            self.node = node
            self.path = path
        }

        deinit {
            system.state.withLock { state in
                if state.locks[node] == ObjectIdentifier(self) { state.locks[node] = nil }
            }
        }

        func size() throws(FileError) -> Int {
            try system.look("inspect", path) { (disk) throws(FileError) in disk.size(node) }
        }

        func identity() throws(FileError) -> UInt64 { UInt64(node) }

        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            try system.look("read", path) { (disk) throws(FileError) in
                let bytes = disk.nodes[node]?.cached ?? []
                guard offset < bytes.count else { return [] }
                return Array(bytes[offset..<min(bytes.count, offset + count)])
            }
        }

        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            try system.change("write \(bytes.count)@\(offset)", path) { (disk) throws(FileError) in
                disk.write(node, bytes, at: offset)
            }
        }

        func allocate(size: Int) throws(FileError) {
            try system.change("allocate \(size)", path) { (disk) throws(FileError) in
                if size > disk.size(node) { disk.resize(node, to: size) }
            }
        }

        func truncate(to size: Int) throws(FileError) {
            try system.change("truncate \(size)", path) { (disk) throws(FileError) in
                disk.resize(node, to: size)
            }
        }

        func sync() throws(FileError) {
            let fails = try system.change("sync", path) { [node] (disk, fails) in
                if fails { disk.failSync(node) } else { disk.sync(node) }
                return fails
            }
            if fails {
                throw FileError(.io, operation: "sync", path: path, reason: "the medium failed")
            }
        }

        func lock() throws(FileError) -> Bool {
            system.state.withLock { state in
                guard state.locks[node] == nil else { return false }
                state.locks[node] = ObjectIdentifier(self)
                return true
            }
        }
    }
}
