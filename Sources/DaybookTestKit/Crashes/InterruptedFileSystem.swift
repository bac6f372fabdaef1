// The file system as one of several simulated processes sees it: at a chosen call, other processes run, or the process
// is killed. Calls are counted, so that a history names the moment.

import Dispatch
import LogStorage
import Synchronization

/// One process's access to a file system.
package final class InterruptedFileSystem: ForwardingFileSystem {
    private struct State {
        var calls = 0
        var interruptAt: Int?
        var interruption: (@Sendable () async -> Void)?
        var killAt: Int?
        var isKilled = false
    }

    package let base: any FileSystem
    private let state = Mutex(State())

    package init(_ base: any FileSystem) { self.base = base }

    /// True after the process was killed: then every call fails.
    package var isKilled: Bool { state.withLock { $0.isKilled } }

    /// Counts calls anew. Before the call with a number, runs an interruption; before another, kills the process.
    package func arm(
        interruptAt: Int?, killAt: Int?, _ interruption: @escaping @Sendable () async -> Void
    ) {
        state.withLock { state in
            let isKilled = state.isKilled
            state = State(
                interruptAt: interruptAt, interruption: interruption, killAt: killAt,
                isKilled: isKilled)
        }
    }

    /// Removes the interruption and the kill that were not reached.
    package func disarm() { arm(interruptAt: nil, killAt: nil) {} }

    private func call(_ name: String, _ path: String) throws(FileError) {
        let interruption = state.withLock { state -> (@Sendable () async -> Void)? in
            defer { state.calls += 1 }
            return state.calls == state.interruptAt ? state.interruption : nil
        }
        if let interruption {
            // On a thread of the process's store or of blocking work, never of the cooperative pool.
            let end = DispatchSemaphore(value: 0)
            Task.detached {
                await interruption()
                end.signal()
            }
            end.wait()
        }
        let isKilled = state.withLock { state in
            if let killAt = state.killAt, state.calls > killAt { state.isKilled = true }
            return state.isKilled
        }
        guard !isKilled else {
            throw FileError(.io, operation: name, path: path, reason: "the process was killed")
        }
    }

    package func createDirectory(_ path: String) throws(FileError) {
        try call("create", path)
        try base.createDirectory(path)
    }
    package func list(_ path: String) throws(FileError) -> [String] {
        try call("list", path)
        return try base.list(path)
    }
    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        try call("open", path)
        return Interrupted(try base.open(path, mode), self, path)
    }
    package func identity(_ path: String) throws(FileError) -> UInt64? {
        try call("inspect", path)
        return try base.identity(path)
    }
    package func rename(_ path: String, to newPath: String) throws(FileError) {
        try call("rename", path)
        try base.rename(path, to: newPath)
    }
    package func remove(_ path: String) throws(FileError) {
        try call("remove", path)
        try base.remove(path)
    }
    package func removeDirectory(_ path: String) throws(FileError) {
        try call("remove", path)
        try base.removeDirectory(path)
    }
    package func syncDirectory(_ path: String) throws(FileError) {
        try call("sync", path)
        try base.syncDirectory(path)
    }
    package func lockDirectory(_ path: String) throws(FileError) -> (any DirectoryLock)? {
        try call("lock", path)
        return try base.lockDirectory(path)
    }

    private final class Interrupted: ForwardingFile {
        let file: any File
        private let system: InterruptedFileSystem
        private let path: String

        init(_ file: any File, _ system: InterruptedFileSystem, _ path: String) {
            self.file = file
            self.system = system
            self.path = path
        }

        func size() throws(FileError) -> Int {
            try system.call("inspect", path)
            return try file.size()
        }
        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            try system.call("read", path)
            return try file.read(at: offset, count: count)
        }
        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            try system.call("write", path)
            try file.write(bytes, at: offset)
        }
        func allocate(size: Int) throws(FileError) {
            try system.call("allocate", path)
            try file.allocate(size: size)
        }
        func truncate(to size: Int) throws(FileError) {
            try system.call("truncate", path)
            try file.truncate(to: size)
        }
        func sync() throws(FileError) {
            try system.call("sync", path)
            try file.sync()
        }
        func lock() throws(FileError) -> Bool {
            try system.call("lock", path)
            return try file.lock()
        }
    }
}
