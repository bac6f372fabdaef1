// The files of a simulated machine. Page cache and durable state are separate, and so are folder entries and
// inodes. SimulatedDisk+Doubts has the states that a power cut may leave. The model:
//
// - A file has durable bytes and bytes in the page cache. Only `sync` makes its bytes and its size durable.
// - A sync of a folder makes its entries durable. A file's bytes do not depend on its name.
// - A created folder is durable at once. A removed one may reappear until its parent is synced, with any of
//   the entries that it had.
// - A failed sync leaves pages in one of the states of `FailedSync`.
//
// Faults F1 to F5 and F8 of Spec/testing/testing.md.

import LogStorage

/// The files of a simulated machine.
struct SimulatedDisk {
    /// A write since the last sync.
    struct Write {
        var offset: Int
        var bytes: [UInt8]
        /// Whether these are the zeros of a file that was truncated and extended again: such a write cannot
        /// tear.
        var isRegrowth = false

        var range: Range<Int> { offset..<offset + bytes.count }
    }

    /// One inode.
    struct Node {
        /// The bytes on the medium; the durable size is the first of `sizes`.
        var durable: [UInt8] = []
        var cached: [UInt8] = []
        /// The writes since the last sync, in order.
        var writes: [Write] = []
        /// The sizes since the last sync, the durable one first.
        var sizes: [Int] = [0]

        var isInDoubt: Bool { !writes.isEmpty || sizes.count > 1 }
    }

    /// A folder's entries: name to inode.
    struct Folder {
        var durable: [String: Int] = [:]
        var cached: [String: Int] = [:]
        /// The inodes of each name since the last sync, in order, without the durable one; nil for a removed
        /// name.
        var changes: [String: [Int?]] = [:]
        /// Whether the folder was removed and its parent has not been synced since.
        var isRemoved = false

        mutating func set(_ name: String, _ node: Int?) {
            cached[name] = node
            changes[name, default: []].append(node)
        }
    }

    let medium: Medium
    var nodes: [Int: Node] = [:]
    var folders: [String: Folder] = ["/": Folder()]
    private var lastNode = 0

    init(medium: Medium = Medium()) { self.medium = medium }

    // MARK: Files

    mutating func createNode() -> Int {
        lastNode += 1
        nodes[lastNode] = Node()
        return lastNode
    }

    func size(_ node: Int) -> Int { nodes[node]?.cached.count ?? 0 }

    mutating func write(_ node: Int, _ bytes: [UInt8], at offset: Int) {
        let end = offset + bytes.count
        if end > size(node) { resize(node, to: end) }
        nodes[node]?.cached.replaceSubrange(offset..<end, with: bytes)
        nodes[node]?.writes.append(Write(offset: offset, bytes: bytes))
    }

    mutating func resize(_ number: Int, to size: Int) {
        guard var node = nodes.removeValue(forKey: number) else { return }
        let before = node.cached.count
        if size < before {
            node.cached.removeLast(before - size)
        } else {
            node.cached += [UInt8](repeating: 0, count: size - before)
            // The medium may still have the bytes that were truncated earlier.
            let maxSize = node.sizes.max() ?? 0
            if maxSize > before {
                let zeros = [UInt8](repeating: 0, count: min(size, maxSize) - before)
                node.writes.append(Write(offset: before, bytes: zeros, isRegrowth: true))
            }
        }
        node.sizes.append(size)
        nodes[number] = node
    }

    mutating func sync(_ number: Int) {
        guard medium.honoursSync, var node = nodes.removeValue(forKey: number) else { return }
        defer { nodes[number] = node }
        guard node.isInDoubt else { return }
        // Not the whole cache: pages that a failed sync marked clean are not written.
        node.durable = Self.resized(node.durable, to: node.cached.count)
        for write in node.writes {
            let range = write.range.clamped(to: 0..<node.cached.count)
            node.durable.replaceSubrange(range, with: node.cached[range])
        }
        node.writes = []
        node.sizes = [node.cached.count]
    }

    mutating func failSync(_ number: Int, _ how: FailedSync) {
        if how == .written { return sync(number) }
        guard how != .pagesStayDirty, var node = nodes.removeValue(forKey: number) else { return }
        defer { nodes[number] = node }
        switch how {
        case .partlyWritten:
            for write in node.writes.prefix((node.writes.count + 1) / 2) {
                node.durable = Self.resized(
                    node.durable, to: max(node.durable.count, write.range.upperBound))
                node.durable.replaceSubrange(write.range, with: write.bytes)
            }
        case .pagesRevert:
            for write in node.writes {
                let range = write.range.clamped(to: 0..<node.cached.count)
                let old = Self.resized(node.durable, to: node.cached.count)
                node.cached.replaceSubrange(range, with: old[range])
            }
        case .pagesLookClean, .pagesStayDirty, .written: break
        }
        // The size is metadata and stays in doubt.
        node.writes = []
    }

    static func resized(_ bytes: [UInt8], to size: Int) -> [UInt8] {
        if bytes.count == size { return bytes }
        if bytes.count > size { return Array(bytes[..<size]) }
        return bytes + [UInt8](repeating: 0, count: size - bytes.count)
    }

    // MARK: Folders

    mutating func sync(folder path: String) {
        guard medium.honoursSync else { return }
        if let cached = folders[path]?.cached { folders[path]?.durable = cached }
        folders[path]?.changes = [:]
        for (inner, folder) in folders where folder.isRemoved && Self.split(inner).folder == path {
            folders[inner] = nil
        }
    }

    /// The folder at a path; nil if there is none or it was removed.
    func folder(_ path: String) -> Folder? {
        folders[path].flatMap { $0.isRemoved ? nil : $0 }
    }

    /// The names of the folders in a folder.
    func folders(in path: String) -> [String] {
        folders.keys.filter { folder($0) != nil && $0 != path && Self.split($0).folder == path }
            .map { Self.split($0).name }
    }

    static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastSlash else { return ("/", path) }
        let folder = String(path[..<slash])
        return (folder.isEmpty ? "/" : folder, String(path[path.utf8.index(after: slash)...]))
    }
}
