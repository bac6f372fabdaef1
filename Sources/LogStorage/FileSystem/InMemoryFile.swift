// An open file of InMemoryFileSystem. Like a POSIX descriptor, it outlives the file's name, and its lock
// is released with it.

/// One open file in memory.
final class InMemoryFile: File {
    private let system: InMemoryFileSystem
    private let node: UInt64
    private let path: String
    private let isReadOnly: Bool

    init(_ system: InMemoryFileSystem, node: UInt64, path: String, isReadOnly: Bool) {
        self.system = system
        self.node = node
        self.path = path
        self.isReadOnly = isReadOnly
    }

    deinit {
        let owner = ObjectIdentifier(self)
        try? system.access { [node] (state) throws(FileError) in state.close(node, owner) }
    }

    func size() throws(FileError) -> Int {
        try system.access { (state) throws(FileError) in
            try state.check("inspect", path)
            return state.nodes[node]?.bytes.count ?? 0
        }
    }

    func identity() throws(FileError) -> UInt64 { node }

    func isLinked() throws(FileError) -> Bool {
        try system.access { (state) throws(FileError) in
            try state.check("inspect", path)
            return state.names[path] == node || state.names.values.contains(node)
        }
    }

    func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
        try system.access { (state) throws(FileError) in
            try state.check("read", path)
            guard let bytes = state.nodes[node]?.bytes, offset < bytes.count else { return [] }
            return Array(bytes[offset..<min(bytes.count, offset + count)])
        }
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(FileError) {
        try writing("write") { (state) throws(FileError) in
            let end = offset + bytes.count
            if end > state.nodes[node]?.bytes.count ?? 0 {
                try state.resize(node, to: end, "write", path)
            }
            state.nodes[node]?.bytes.replaceSubrange(offset..<end, with: bytes)
        }
    }

    func allocate(size: Int) throws(FileError) {
        try writing("grow") { (state) throws(FileError) in
            if size > state.nodes[node]?.bytes.count ?? 0 {
                try state.resize(node, to: size, "grow", path)
            }
        }
    }

    func truncate(to size: Int) throws(FileError) {
        try writing("truncate") { (state) throws(FileError) in
            try state.resize(node, to: size, "truncate", path)
        }
    }

    func sync() throws(FileError) {
        try system.access { (state) throws(FileError) in try state.check("sync", path) }
    }

    func lock() throws(FileError) -> Bool {
        let owner = ObjectIdentifier(self)
        return try system.access { (state) throws(FileError) in
            try state.check("lock", path)
            if let lockOwner = state.nodes[node]?.lockedBy { return lockOwner == owner }
            state.nodes[node]?.lockedBy = owner
            return true
        }
    }

    private func writing(
        _ operation: String, _ body: (inout InMemoryState) throws(FileError) -> Void
    ) throws(FileError) {
        try system.access { (state) throws(FileError) in
            try state.check(operation, path)
            guard !isReadOnly else { throw state.error(.io, operation, path) }
            try body(&state)
        }
    }
}
