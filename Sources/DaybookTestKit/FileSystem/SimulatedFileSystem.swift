// A machine whose power can be cut and whose calls can fail. Two counters number what happens: every
// *call*, and every *operation*, which is a call that changes something. What the disk holds after a
// power cut follows from choices, so a property shrinks it, or is searched through (CrashPoint).
// The model of the disk is in SimulatedDisk and SimulatedDisk+Doubts.
//
// One seed gives one trace: nothing here draws numbers or looks at a clock.

import LogFormat
import LogStorage
import Synchronization

/// A file system with a power switch.
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
        /// Of the bytes written.
        var digest: UInt64 = 0
        var failed = false

        var description: String {
            let numbers =
                numbers.isEmpty ? "" : " " + numbers.map(String.init).joined(separator: "@")
            return "\(name)\(numbers)\(failed ? " (fails)" : "") \(path)"
        }
    }

    let state: Mutex<State>

    /// A machine with an empty disk.
    public convenience init(medium: Medium = Medium()) { self.init(SimulatedDisk(medium: medium)) }

    init(_ disk: SimulatedDisk) { state = Mutex(State(disk: disk)) }

    // MARK: Faults

    /// Cuts the power just before the operation with this number, counted from 0: from then on every
    /// call fails and does nothing.
    public func cutPower(at operation: Int) { state.withLock { $0.cutAt = operation } }

    /// Makes the call with this number, counted from 0, fail; and all calls behind it, if `forGood`.
    public func fail(call: Int, _ fault: SimulatedFault, forGood: Bool = false) {
        state.withLock { $0.fault = (call, fault, forGood) }
    }

    /// Ends faults and power cuts that were set and have not happened yet, or were for good.
    public func endFaults() {
        state.withLock { state in
            state.fault = nil
            state.cutAt = nil
            state.failingSync = nil
        }
    }

    /// Makes the first sync of a file from the operation with this number on fail, once.
    public func failSync(from operation: Int, _ how: FailedSync = .pagesLookClean) {
        state.withLock { $0.failingSync = (operation, how) }
    }

    /// The machine after the power came back.
    public func afterPowerCut(_ choices: inout Choices) -> SimulatedFileSystem {
        SimulatedFileSystem(state.withLock { $0.disk }.afterPowerCut(&choices))
    }

    /// The machine after the process was killed: what it wrote is in the page cache.
    public func afterKill() -> SimulatedFileSystem {
        SimulatedFileSystem(state.withLock { $0.disk })
    }

    /// What the disk promises.
    public var medium: Medium { state.withLock { $0.disk.medium } }

    // MARK: What happened

    /// How many operations that change something were carried out.
    public var operations: Int { state.withLock { $0.trace.count } }

    /// How many calls were made, those that only look included.
    public var calls: Int { state.withLock { $0.callNames.count } }

    /// What each call was.
    var callNames: [StaticString] { state.withLock { $0.callNames } }

    /// How many calls failed because of `fail(call:_:forGood:)`.
    public var faultsHit: Int { state.withLock { $0.faultsHit } }

    /// The paths of the files that are open, with how often each is. A program that has ended its
    /// work should have none.
    public var openFiles: [String: Int] { state.withLock { $0.openFiles } }

    /// The operations that were carried out, in words.
    public var trace: [String] { state.withLock { $0.trace }.map(\.description) }

    /// A digest of all operations with the bytes that they wrote: the same for the same seed.
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

    /// The content of every file by its path, as the page cache shows it.
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

    /// Keeps, from now on, the disk as it is before each operation; see `crashPoints`.
    public func record() { state.withLock { $0.recording = [] } }

    /// The disk before each operation since `record()`, and as it is now. Copies share what is equal.
    public var crashPoints: [CrashPoint] {
        state.withLock { state in
            (state.recording ?? [])
                + [CrashPoint(operation: state.trace.count, next: "the end", disk: state.disk)]
        }
    }

    // MARK: Calls

    /// Runs an operation that changes something, unless the power is off or it is to fail.
    private func change<T: Sendable>(
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
            if let (fault, error) = Self.fault(&state, name, path) {
                operation.failed = true
                state.trace.append(operation)
                whenFailing?(&state.disk, fault)
                throw error
            }
            state.trace.append(operation)
            return try body(&state.disk)
        }
    }

    /// Runs a call that changes nothing.
    private func look<T: Sendable>(
        _ name: StaticString, _ path: String, _ body: (SimulatedDisk) throws(FileError) -> T
    ) throws(FileError) -> T {
        try state.withLock { (state) throws(FileError) in
            try Self.checkPower(state, name, path)
            if let (_, error) = Self.fault(&state, name, path) { throw error }
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

    /// Counts the call; says whether it is to fail.
    private static func fault(
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
            // Any order would do; the same in every run makes runs the same.
            return (Array(folder.cached.keys) + disk.folders(in: path)).sorted()
        }
    }

    /// Opens a file.
    public func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        let (folder, name) = SimulatedDisk.split(path)
        let node = try look("open", path) { (disk) throws(FileError) in
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
            let created = try change("create", path) { (disk) throws(FileError) in
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

    /// Renames a file.
    public func rename(_ path: String, to newPath: String) throws(FileError) {
        let (folder, name) = SimulatedDisk.split(path)
        let (newFolder, newName) = SimulatedDisk.split(newPath)
        try change("rename", path) { (disk) throws(FileError) in
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
        try change("remove", path) { (disk) throws(FileError) in
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
            system.state.withLock { $0.openFiles[path, default: 0] += 1 }
        }

        deinit {
            system.state.withLock { state in
                let rest = state.openFiles[path, default: 0] - 1
                state.openFiles[path] = rest > 0 ? rest : nil
                if state.locks[node] == ObjectIdentifier(self) { state.locks[node] = nil }
            }
        }

        func size() throws(FileError) -> Int {
            try system.look("inspect", path) { (disk) throws(FileError) in disk.size(node) }
        }

        func identity() throws(FileError) -> UInt64 {
            try system.look("inspect", path) { (_) throws(FileError) in UInt64(node) }
        }

        func isLinked() throws(FileError) -> Bool {
            try system.look("inspect", path) { [node] (disk) throws(FileError) in
                disk.folders.values.contains { $0.cached.values.contains(node) }
            }
        }

        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            try system.look("read", path) { (disk) throws(FileError) in
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
            try system.change(
                "write", path, [bytes.count, offset], whenFailing: failing,
                digest: { SimulatedFileSystem.digest(bytes) }
            ) { (disk) throws(FileError) in disk.write(node, bytes, at: offset) }
        }

        func allocate(size: Int) throws(FileError) {
            try system.change("allocate", path, [size]) { (disk) throws(FileError) in
                if size > disk.size(node) { disk.resize(node, to: size) }
            }
        }

        func truncate(to size: Int) throws(FileError) {
            try system.change("truncate", path, [size]) { (disk) throws(FileError) in
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
            try system.change("sync", path, whenFailing: failing) { (disk) throws(FileError) in
                disk.sync(node)
            }
        }

        func lock() throws(FileError) -> Bool {
            let isFree = try system.look("lock", path) { (_) throws(FileError) in true }
            return system.state.withLock { state in
                guard isFree, state.locks[node] == nil else { return false }
                state.locks[node] = ObjectIdentifier(self)
                return true
            }
        }
    }
}
