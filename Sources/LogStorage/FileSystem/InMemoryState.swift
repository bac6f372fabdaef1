// The tables of InMemoryFileSystem. Names are separate from files, as in a POSIX file system, so that an open
// file outlives its name.

/// The lock of a folder in memory.
final class InMemoryDirectoryLock: DirectoryLock {}

/// Names, files and folders.
struct InMemoryState {
    struct Node {
        var bytes: [UInt8] = []
        var opens = 0
        var lockedBy: ObjectIdentifier?
    }

    /// The lock of a folder while its holder keeps it.
    struct WeakLock {
        weak var lock: InMemoryDirectoryLock?
    }

    var names: [String: UInt64] = [:]
    var nodes: [UInt64: Node] = [:]
    var directories: Set<String> = ["/"]
    var directoryLocks: [String: WeakLock] = [:]
    var quota: Int?
    var failure: (@Sendable (String, String) -> FileError?)?
    private var lastNode: UInt64 = 0

    var usedBytes: Int { nodes.values.reduce(0) { $0 + $1.bytes.count } }

    func exists(_ path: String) -> Bool { names[path] != nil || directories.contains(path) }

    /// The names in a folder.
    func entries(of path: String) -> [String] {
        let prefix = path == "/" ? "/" : path + "/"
        let all = Array(names.keys) + Array(directories)
        return all.filter { $0.count > prefix.count && Self.parent(of: $0) == path }
            .map { String($0.dropFirst(prefix.count)) }
    }

    func error(_ code: FileError.Code, _ operation: String, _ path: String) -> FileError {
        FileError(code, operation: operation, path: path, reason: code.rawValue)
    }

    func check(_ operation: String, _ path: String) throws(FileError) {
        if let error = failure?(operation, path) { throw error }
    }

    mutating func open(_ path: String, _ mode: OpenMode) throws(FileError) -> UInt64 {
        try check("open", path)
        guard !directories.contains(path) else {
            throw error(mode == .createNew ? .exists : .wrongKind, "open", path)
        }
        let existing = names[path]
        switch mode {
        case .read, .readWrite:
            if existing == nil { throw error(.notFound, "open", path) }
        case .createNew:
            if existing != nil { throw error(.exists, "open", path) }
        case .createIfMissing: break
        }
        guard directories.contains(Self.parent(of: path)) else {
            throw error(.notFound, "open", path)
        }
        let node = existing ?? create(path)
        nodes[node]?.opens += 1
        return node
    }

    mutating func create(_ path: String) -> UInt64 {
        lastNode += 1
        names[path] = lastNode
        nodes[lastNode] = Node()
        return lastNode
    }

    mutating func moveFolder(_ path: String, to newPath: String) {
        func moved(_ name: String) -> String {
            name.isPath(in: path)
                ? newPath + Substring(name.utf8.dropFirst(path.utf8.count)) : name
        }
        directories = Set(directories.map(moved))
        names = Dictionary(uniqueKeysWithValues: names.map { (moved($0), $1) })
        directoryLocks = Dictionary(
            uniqueKeysWithValues: directoryLocks.map { (moved($0), $1) })
    }

    mutating func close(_ node: UInt64, _ owner: ObjectIdentifier) {
        nodes[node]?.opens -= 1
        if nodes[node]?.lockedBy == owner { nodes[node]?.lockedBy = nil }
        dropIfUnused(node)
    }

    mutating func dropIfUnused(_ node: UInt64) {
        if nodes[node]?.opens == 0, !names.values.contains(node) { nodes[node] = nil }
    }

    /// Grows or truncates a file to `size` bytes if the quota allows it.
    mutating func resize(
        _ node: UInt64, to size: Int, _ operation: String, _ path: String
    ) throws(FileError) {
        guard var bytes = nodes[node]?.bytes else { throw error(.io, operation, path) }
        if let quota, size > bytes.count, usedBytes - bytes.count + size > quota {
            throw error(.noSpace, operation, path)
        }
        nodes[node]?.bytes = []
        if size < bytes.count {
            bytes.removeLast(bytes.count - size)
        } else {
            bytes.append(contentsOf: repeatElement(0, count: size - bytes.count))
        }
        nodes[node]?.bytes = bytes
    }

    func copy() -> InMemoryState {
        var copy = InMemoryState()
        copy.names = names
        copy.directories = directories
        copy.lastNode = lastNode
        for node in names.values { copy.nodes[node] = Node(bytes: nodes[node]?.bytes ?? []) }
        return copy
    }

    mutating func copyFolder(_ path: String, to newPath: String) {
        for directory in directories where directory.isPath(in: path) {
            directories.insert(newPath + Substring(directory.utf8.dropFirst(path.utf8.count)))
        }
        for (name, node) in names where name.isPath(in: path) {
            let copy = create(newPath + Substring(name.utf8.dropFirst(path.utf8.count)))
            let bytes = nodes[node]?.bytes ?? []
            nodes[copy]?.bytes = bytes
        }
    }

    static func parent(of path: String) -> String {
        guard let slash = path.lastSlash, slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }
}
