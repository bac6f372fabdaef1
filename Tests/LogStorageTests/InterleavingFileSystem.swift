// Runs a reader between the writer's operations: before every operation that changes a file, and in the
// middle of a write, when only one half of it is in the file. Can also end the writer there, as a kill would.

import LogStorage
import Synchronization

/// A file system that interrupts its writer for a reader.
final class InterleavingFileSystem: ForwardingFileSystem {
    /// The interruption of one operation.
    struct Cut {
        /// The size of a write's first half, in percent.
        var percent = 50
        /// True if the second half is written first, as a reader may see it.
        var endsFirst = false
        /// True if the process ends in the middle of the operation.
        var kills = false
    }

    let base: any FileSystem
    private let look: @Sendable () -> Void
    private let state = Mutex((operations: 0, isDead: false))
    private let cut: @Sendable (_ operation: Int) -> Cut?

    /// Wraps a file system.
    ///
    /// - Parameters:
    ///   - cut: the interruption of the operation with this number; nil for none.
    ///   - look: called at an interruption; must use `base` itself.
    init(
        _ base: any FileSystem, cut: @escaping @Sendable (Int) -> Cut?,
        look: @escaping @Sendable () -> Void
    ) {
        self.base = base
        self.cut = cut
        self.look = look
    }

    fileprivate func change<T>(
        _ path: String, halves: ((Cut, _ first: Bool) throws(FileError) -> Void)? = nil,
        _ body: () throws(FileError) -> T
    ) throws(FileError) -> T {
        let number: Int? = state.withLock { state in
            guard !state.isDead else { return nil }
            state.operations += 1
            return state.operations
        }
        guard let number else {
            throw FileError(.io, operation: "change", path: path, reason: "the process is gone")
        }
        guard let cut = cut(number) else { return try body() }
        look()
        if let halves {
            try halves(cut, !cut.endsFirst)
            look()
        }
        if cut.kills {
            state.withLock { $0.isDead = true }
            throw FileError(.io, operation: "change", path: path, reason: "the process is gone")
        }
        if let halves { try halves(cut, cut.endsFirst) }
        return try body()
    }

    func createDirectory(_ path: String) throws(FileError) {
        try change(path) { () throws(FileError) in try base.createDirectory(path) }
    }
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        switch mode {
        case .read, .readWrite: Watched(try base.open(path, mode), path, self)
        case .createNew, .createIfMissing:
            try change(path) { () throws(FileError) in
                Watched(try base.open(path, mode), path, self)
            }
        }
    }
    func rename(_ path: String, to newPath: String) throws(FileError) {
        try change(path) { () throws(FileError) in try base.rename(path, to: newPath) }
    }
    func removeDirectory(_ path: String) throws(FileError) {
        try change(path) { () throws(FileError) in try base.removeDirectory(path) }
    }

    func remove(_ path: String) throws(FileError) {
        try change(path) { () throws(FileError) in try base.remove(path) }
    }

    private final class Watched: ForwardingFile {
        let file: any File
        private let path: String
        private let system: InterleavingFileSystem

        init(_ file: any File, _ path: String, _ system: InterleavingFileSystem) {
            self.file = file
            self.path = path
            self.system = system
        }

        func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
            let half = { (cut: Cut, first: Bool) throws(FileError) in
                let middle = bytes.count * cut.percent / 100
                if first {
                    try self.file.write(Array(bytes[..<middle]), at: offset)
                } else {
                    try self.file.write(Array(bytes[middle...]), at: offset + middle)
                }
            }
            try system.change(path, halves: half) { () throws(FileError) in
                try file.write(bytes, at: offset)
            }
        }
        func allocate(size: Int) throws(FileError) {
            try system.change(path) { () throws(FileError) in try file.allocate(size: size) }
        }
        func truncate(to size: Int) throws(FileError) {
            try system.change(path) { () throws(FileError) in try file.truncate(to: size) }
        }
        func sync() throws(FileError) {
            try system.change(path) { () throws(FileError) in try file.sync() }
        }
    }
}
