// A file system whose power can be cut and whose calls can fail. It numbers every *call*, and every
// *operation*, which is a call that changes something. The state after a power cut follows from choices, so
// that a property can shrink it; CrashPoint enumerates all states. SimulatedDisk and SimulatedDisk+Doubts are
// the model of the disk.
//
// The same seed gives the same trace: this file draws no random numbers and reads no clock.

import LogFormat
import LogStorage
import Synchronization

/// A file system in memory whose power can be cut and whose calls can fail.
///
/// ```swift
/// let files = SimulatedFileSystem()
/// files.cutPower(at: choices.int(in: 0...operations))
/// … // write a log until its calls fail
/// let machine = files.afterPowerCut(&choices)
/// … // open the log on `machine`: everything acknowledged is there
/// ```
public final class SimulatedFileSystem: FileSystem {
    struct State {
        var disk: SimulatedDisk
        var locks: [Int: ObjectIdentifier] = [:]
        var folderLocks: [String: FolderLock] = [:]
        var openFiles: [String: Int] = [:]
        var callNames: [StaticString] = []
        var cutAt: Int?
        var fault: (call: Int, fault: SimulatedFault, isForGood: Bool)?
        var faultsHit = 0
        var failingSync: (operation: Int, how: FailedSync)?
        var trace: [Operation] = []
        var recording: [CrashPoint]?
    }

    /// An operation that was carried out.
    struct Operation {
        var name: StaticString
        var path: String
        var numbers: [Int] = []
        /// The digest of the bytes written.
        var digest: UInt64 = 0
        var failed = false

        var description: String {
            let numbers =
                numbers.isEmpty ? "" : " " + numbers.map(String.init).joined(separator: "@")
            return "\(name)\(numbers)\(failed ? " (fails)" : "") \(path)"
        }
    }

    /// The lock of a folder while its holder keeps it.
    struct FolderLock {
        weak var lock: SimulatedDirectoryLock?
    }

    let state: Mutex<State>

    /// Creates a file system with an empty disk.
    public convenience init(medium: Medium = Medium()) { self.init(SimulatedDisk(medium: medium)) }

    init(_ disk: SimulatedDisk) { state = Mutex(State(disk: disk)) }

    // MARK: Faults

    /// Cuts the power just before the operation with this number, counted from 0. From then on every call
    /// fails without effect.
    public func cutPower(at operation: Int) { state.withLock { $0.cutAt = operation } }

    /// Makes the call with this number, counted from 0, fail; with `forGood`, all later calls as well.
    public func fail(call: Int, _ fault: SimulatedFault, forGood: Bool = false) {
        state.withLock { $0.fault = (call, fault, forGood) }
    }

    /// Removes all faults and power cuts that were set, permanent ones included.
    public func endFaults() {
        state.withLock { state in
            state.fault = nil
            state.cutAt = nil
            state.failingSync = nil
        }
    }

    /// Makes one sync of a file fail: the first from the operation with this number on.
    public func failSync(from operation: Int, _ how: FailedSync = .pagesLookClean) {
        state.withLock { $0.failingSync = (operation, how) }
    }

    /// The file system after a power cut at this moment. Choices that are all 0 leave only what was durable.
    public func afterPowerCut(_ choices: inout Choices) -> SimulatedFileSystem {
        SimulatedFileSystem(state.withLock { $0.disk }.afterPowerCut(&choices))
    }

    /// The file system after the process was killed at this moment: its writes are in the page cache.
    public func afterKill() -> SimulatedFileSystem {
        SimulatedFileSystem(state.withLock { $0.disk })
    }

    /// The guarantees of the disk.
    public var medium: Medium { state.withLock { $0.disk.medium } }

    // MARK: Trace

    /// The number of operations so far: calls that change something.
    public var operations: Int { state.withLock { $0.trace.count } }

    /// The number of calls so far, those that only read included.
    public var calls: Int { state.withLock { $0.callNames.count } }

    /// The name of each call.
    var callNames: [StaticString] { state.withLock { $0.callNames } }

    /// The number of calls that failed because of `fail(call:_:forGood:)`.
    public var faultsHit: Int { state.withLock { $0.faultsHit } }

    /// The number of open handles of each file, by path. A program that has released its log has none.
    public var openFiles: [String: Int] { state.withLock { $0.openFiles } }

    /// A description of each operation.
    public var trace: [String] { state.withLock { $0.trace }.map(\.description) }

    /// A digest of all operations with the bytes that they wrote. The same seed gives the same digest.
    public var traceHash: UInt64 {
        var bytes: [UInt8] = []
        for operation in state.withLock({ $0.trace }) {
            bytes += Array("\(operation.description) \(operation.digest)\n".utf8)
        }
        return Self.digest(bytes)
    }

    fileprivate static func digest(_ bytes: [UInt8]) -> UInt64 {
        XXH64.hash(bytes.span.bytes)
    }

    /// The content of every file in the page cache, by path.
    public var image: [String: [UInt8]] {
        state.withLock { state in
            var image: [String: [UInt8]] = [:]
            for (path, folder) in state.disk.folders where !folder.isRemoved {
                for (name, node) in folder.cached {
                    image[path == "/" ? "/" + name : path + "/" + name] =
                        state.disk.nodes[node]?.cached
                }
            }
            return image
        }
    }

    /// Starts to record the disk before each operation; see `crashPoints`.
    public func record() { state.withLock { $0.recording = [] } }

    /// The disk before each operation since `record()`, and the disk now. The copies share equal content.
    public var crashPoints: [CrashPoint] {
        state.withLock { state in
            (state.recording ?? [])
                + [CrashPoint(operation: state.trace.count, next: "the end", disk: state.disk)]
        }
    }

    // MARK: Calls

    /// Performs an operation that changes something, unless the power is off or a fault is due.
    private func performOperation<T: Sendable>(
        _ name: StaticString, _ path: String, _ numbers: [Int] = [],
        whenFailing: ((inout SimulatedDisk, SimulatedFault) -> Void)? = nil,
        digest: () -> UInt64 = { 0 },
        _ body: (inout SimulatedDisk) throws(FileError) -> T
    ) throws(FileError) -> T {
        try state.withLock { (state) throws(FileError) in
            var operation = Operation(name: name, path: path, numbers: numbers, digest: digest())
            try Self.checkPower(state, name, path)
            if state.recording != nil {
                state.recording?.append(
                    CrashPoint(
                        operation: state.trace.count, next: operation.description, disk: state.disk)
                )
            }
            if let (fault, error) = Self.countCall(&state, name, path) {
                operation.failed = true
                state.trace.append(operation)
                whenFailing?(&state.disk, fault)
                throw error
            }
            state.trace.append(operation)
            return try body(&state.disk)
        }
    }

    /// Performs a call that changes nothing, unless the power is off or a fault is due.
    private func performRead<T: Sendable>(
        _ name: StaticString, _ path: String, _ body: (SimulatedDisk) throws(FileError) -> T
    ) throws(FileError) -> T {
        try state.withLock { (state) throws(FileError) in
            try Self.checkPower(state, name, path)
            if let (_, error) = Self.countCall(&state, name, path) { throw error }
            return try body(state.disk)
        }
    }

    private static func checkPower(
        _ state: State, _ name: StaticString, _ path: String
    ) throws(FileError) {
        guard state.cutAt.map({ state.trace.count < $0 }) ?? true else {
            throw FileError(.io, operation: "\(name)", path: path, reason: "the power is off")
        }
    }

    /// Counts a call.
    ///
    /// - Returns: the fault that is due, with its error; nil if the call succeeds.
    private static func countCall(
        _ state: inout State, _ name: StaticString, _ path: String
    ) -> (SimulatedFault, FileError)? {
        let number = state.callNames.count
        state.callNames.append(name)
        let fault: SimulatedFault
        if let set = state.fault, set.call == number || set.isForGood && set.call < number {
            fault = set.fault
            state.faultsHit += 1
        } else if let failing = state.failingSync, state.trace.count >= failing.operation,
            "\(name)" == "sync"
        {
            state.failingSync = nil
            fault = .failedSync(failing.how)
        } else {
            return nil
        }
        let code: FileError.Code =
            switch fault {
            case .error(let code), .shortWrite(let code): code
            case .failedSync: .io
            }
        return (
            fault,
            FileError(code, operation: "\(name)", path: path, reason: "the simulated medium failed")
        )
    }

    // MARK: FileSystem

    /// Creates a folder.
    public func createDirectory(_ path: String) throws(FileError) {
        try performOperation("create", path) { (disk) throws(FileError) in
            guard disk.folder(path) == nil else {
                throw FileError(.exists, operation: "create", path: path, reason: "it exists")
            }
            // A created folder is durable at once in this model; its entries are not.
            disk.folders[path] = SimulatedDisk.Folder()
        }
    }

    /// The names in a folder.
    public func list(_ path: String) throws(FileError) -> [String] {
        try performRead("list", path) { (disk) throws(FileError) in
            guard let folder = disk.folder(path) else {
                throw FileError(.notFound, operation: "list", path: path, reason: "no such folder")
            }
            // Sorted, so that the same seed gives the same trace.
            return (Array(folder.cached.keys) + disk.folders(in: path)).sorted()
        }
    }

    /// Opens a file.
    public func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let (folder, name) = SimulatedDisk.split(path)
        let node = try performRead("open", path) { (disk) throws(FileError) in
            guard disk.folder(path) == nil else {
                throw FileError(.wrongKind, operation: "open", path: path, reason: "it is a folder")
            }
            return disk.folder(folder)?.cached[name]
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
            let created = try performOperation("create", path) { (disk) throws(FileError) in
                guard disk.folder(folder) != nil else {
                    throw FileError(
                        .notFound, operation: "open", path: path, reason: "no such folder")
                }
                let node = disk.createNode()
                disk.folders[folder]?.set(name, node)
                return node
            }
            return SimulatedFile(self, created, path)
        }
    }

    /// The number of the file at a path; nil if there is none.
    public func identity(_ path: String) throws(FileError) -> UInt64? {
        let (folder, name) = SimulatedDisk.split(path)
        return try performRead("inspect", path) { (disk) throws(FileError) in
            disk.folder(folder)?.cached[name].map(UInt64.init)
        }
    }

    /// Renames a file.
    public func rename(_ path: String, to newPath: String) throws(FileError) {
        let (folder, name) = SimulatedDisk.split(path)
        let (newFolder, newName) = SimulatedDisk.split(newPath)
        try performOperation("rename", path) { (disk) throws(FileError) in
            guard let node = disk.folders[folder]?.cached[name] else {
                throw FileError(.notFound, operation: "rename", path: path, reason: "no such file")
            }
            disk.folders[folder]?.set(name, nil)
            disk.folders[newFolder]?.set(newName, node)
        }
    }

    /// Removes a name.
    public func remove(_ path: String) throws(FileError) {
        let (folder, name) = SimulatedDisk.split(path)
        try performOperation("remove", path) { (disk) throws(FileError) in
            guard disk.folders[folder]?.cached[name] != nil else {
                throw FileError(
                    disk.folder(path) == nil ? .notFound : .wrongKind, operation: "remove",
                    path: path, reason: "no such file")
            }
            disk.folders[folder]?.set(name, nil)
        }
    }

    /// Removes an empty folder.
    public func removeDirectory(_ path: String) throws(FileError) {
        try performOperation("remove folder", path) { (disk) throws(FileError) in
            guard let folder = disk.folder(path) else {
                throw FileError(
                    .notFound, operation: "remove", path: path, reason: "no such folder")
            }
            guard folder.cached.isEmpty, disk.folders(in: path).isEmpty else {
                throw FileError(.io, operation: "remove", path: path, reason: "it is not empty")
            }
            disk.folders[path]?.isRemoved = true
        }
        // A folder that is created again is another one.
        state.withLock { $0.folderLocks[path] = nil }
    }

    /// Makes the entries of a folder durable.
    public func syncDirectory(_ path: String) throws(FileError) {
        try performOperation("sync folder", path) { (disk) throws(FileError) in
            disk.sync(folder: path)
        }
    }

    /// Acquires a folder's lock, which the model keeps by the folder's path.
    public func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)? {
        try performRead("lock", path) { (disk) throws(FileError) in
            guard disk.folder(path) != nil else {
                throw FileError(.notFound, operation: "lock", path: path, reason: "no such folder")
            }
        }
        return state.withLock { state -> (any DirectoryLock)? in
            if state.folderLocks[path]?.lock != nil { return nil }
            let lock = SimulatedDirectoryLock()
            state.folderLocks[path] = FolderLock(lock: lock)
            return lock
        }
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
            system.state.withLock { $0.openFiles[path, default: 0] += 1 }
        }

        deinit {
            system.state.withLock { state in
                let remaining = state.openFiles[path, default: 0] - 1
                state.openFiles[path] = remaining > 0 ? remaining : nil
                if state.locks[node] == ObjectIdentifier(self) { state.locks[node] = nil }
            }
        }

        func size() throws(FileError) -> Int {
            try system.performRead("inspect", path) { (disk) throws(FileError) in disk.size(node) }
        }

        func identity() throws(FileError) -> UInt64 {
            try system.performRead("inspect", path) { (_) throws(FileError) in UInt64(node) }
        }

        func isLinked() throws(FileError) -> Bool {
            try system.performRead("inspect", path) { [node] (disk) throws(FileError) in
                disk.folders.values.contains { $0.cached.values.contains(node) }
            }
        }

        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            try system.performRead("read", path) { (disk) throws(FileError) in
                let bytes = disk.nodes[node]?.cached ?? []
                guard offset < bytes.count else { return [] }
                return Array(bytes[offset..<min(bytes.count, offset + count)])
            }
        }

        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            let failing: (inout SimulatedDisk, SimulatedFault) -> Void = { [node] disk, fault in
                guard case .shortWrite = fault else { return }
                disk.write(node, Array(bytes[..<(bytes.count / 2)]), at: offset)
            }
            try system.performOperation(
                "write", path, [bytes.count, offset], whenFailing: failing,
                digest: { SimulatedFileSystem.digest(bytes) }
            ) { (disk) throws(FileError) in disk.write(node, bytes, at: offset) }
        }

        func allocate(size: Int) throws(FileError) {
            try system.performOperation("allocate", path, [size]) { (disk) throws(FileError) in
                if size > disk.size(node) { disk.resize(node, to: size) }
            }
        }

        func truncate(to size: Int) throws(FileError) {
            try system.performOperation("truncate", path, [size]) { (disk) throws(FileError) in
                disk.resize(node, to: size)
            }
        }

        func sync() throws(FileError) {
            let failing: (inout SimulatedDisk, SimulatedFault) -> Void = { [node] disk, fault in
                switch fault {
                case .failedSync(let how): disk.failSync(node, how)
                case .error, .shortWrite: disk.failSync(node, .pagesLookClean)
                }
            }
            try system.performOperation("sync", path, whenFailing: failing) {
                (disk) throws(FileError) in
                disk.sync(node)
            }
        }

        func lock() throws(FileError) -> Bool {
            let isFree = try system.performRead("lock", path) { (_) throws(FileError) in true }
            return system.state.withLock { state in
                guard isFree, state.locks[node] == nil else { return false }
                state.locks[node] = ObjectIdentifier(self)
                return true
            }
        }
    }
}

/// The lock of a simulated folder.
final class SimulatedDirectoryLock: DirectoryLock {}
