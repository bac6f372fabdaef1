// What survives a power cut. The model, in words:
//
// - A file has what is durable and what the page cache shows. `sync` makes its bytes and its size
//   durable; nothing else does.
// - At a cut, each 512-byte sector that was written since becomes old, new, a torn prefix or suffix,
//   zeros or garbage, each by itself, and only within the range written (powersafe overwrite).
// - A size that was changed since is the old one or any it had in between; a file that comes back
//   longer than its bytes ends in zeros.
// - A sync that fails leaves pages that only look clean (design §10, fault model 8).
// - A name that was created, renamed or removed since its folder was synced is there or not, each by
//   itself. A file's bytes do not depend on its name.
// - A folder that was created is there; one that was removed since its parent was synced may come
//   back, with any of the entries that it had.
//
// Design §10, fault model 1, 2, 4 and 5. Used by SimulatedFileSystem.

import LogStorage

/// The files of a simulated machine: durable state and page cache.
struct SimulatedDisk {
    /// One inode.
    struct Node {
        var durable: [UInt8] = []
        var cached: [UInt8] = []
        /// Ranges written since the last sync.
        var written: [Range<Int>] = []
        /// Sizes since the last sync, the durable one first.
        var sizes: [Int] = [0]
    }

    /// A folder's entries: name to inode.
    struct Folder {
        var durable: [String: Int] = [:]
        var cached: [String: Int] = [:]
        /// Removed, but the parent has not been synced since.
        var isRemoved = false
    }

    var nodes: [Int: Node] = [:]
    var folders: [String: Folder] = ["/": Folder()]
    private var lastNode = 0

    static let sectorBytes = 512

    mutating func createNode() -> Int {
        lastNode += 1
        nodes[lastNode] = Node()
        return lastNode
    }

    mutating func write(_ node: Int, _ bytes: [UInt8], at offset: Int) {
        let end = offset + bytes.count
        if end > size(node) { resize(node, to: end) }
        nodes[node]?.cached.replaceSubrange(offset..<end, with: bytes)
        nodes[node]?.written.append(offset..<end)
    }

    func size(_ node: Int) -> Int { nodes[node]?.cached.count ?? 0 }

    mutating func resize(_ node: Int, to size: Int) {
        guard var bytes = nodes[node]?.cached else { return }
        if size < bytes.count {
            bytes.removeLast(bytes.count - size)
        } else {
            bytes += [UInt8](repeating: 0, count: size - bytes.count)
        }
        nodes[node]?.cached = bytes
        nodes[node]?.sizes.append(size)
    }

    mutating func sync(_ number: Int) {
        guard var node = nodes[number] else { return }
        let size = node.cached.count
        node.durable = Array(node.durable.prefix(size))
        node.durable += [UInt8](repeating: 0, count: size - node.durable.count)
        for range in node.written {
            let range = range.clamped(to: 0..<size)
            node.durable.replaceSubrange(range, with: node.cached[range])
        }
        node.written = []
        node.sizes = [size]
        nodes[number] = node
    }

    /// A sync that fails: nothing becomes durable, and the pages look clean from now on, so that a
    /// later sync that succeeds does not write them either.
    mutating func failSync(_ number: Int) {
        nodes[number]?.written = []
    }

    mutating func sync(folder: String) {
        if let cached = folders[folder]?.cached { folders[folder]?.durable = cached }
        for (path, inner) in folders where inner.isRemoved && Self.split(path).folder == folder {
            folders[path] = nil
        }
    }

    /// A folder that is there.
    func folder(_ path: String) -> Folder? {
        folders[path].flatMap { $0.isRemoved ? nil : $0 }
    }

    /// The names of the folders in a folder.
    func folders(in path: String) -> [String] {
        folders.keys.filter { folder($0) != nil && $0 != path && Self.split($0).folder == path }
            .map { Self.split($0).name }
    }

    static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return ("/", path) }
        let folder = String(path[..<slash])
        return (folder.isEmpty ? "/" : folder, String(path[path.index(after: slash)...]))
    }

    /// The disk after the power came back.
    func afterPowerCut(_ choices: inout Choices) -> SimulatedDisk {
        var disk = self
        for number in disk.nodes.keys.sorted() {
            guard let node = nodes[number] else { continue }
            let bytes = Self.survivor(node, &choices)
            disk.nodes[number] = Node(
                durable: bytes, cached: bytes, written: [], sizes: [bytes.count])
        }
        for path in folders.keys.sorted() {
            guard let folder = folders[path] else { continue }
            if folder.isRemoved, choices.bool() {
                disk.folders[path] = nil
                continue
            }
            var entries = folder.durable
            for name in Set(folder.durable.keys).union(folder.cached.keys).sorted()
            where folder.durable[name] != folder.cached[name] && choices.bool() {
                entries[name] = folder.cached[name]
            }
            disk.folders[path] = Folder(durable: entries, cached: entries)
        }
        return disk
    }

    /// The disk after the process was killed: the page cache survives.
    func afterKill() -> SimulatedDisk { self }

    private static func survivor(_ node: Node, _ choices: inout Choices) -> [UInt8] {
        // 0, the simplest choice, keeps the old size and the old bytes.
        let size = node.sizes[choices.int(in: 0...node.sizes.count - 1)]
        var bytes = node.durable
        bytes = Array(bytes.prefix(size))
        bytes += [UInt8](repeating: 0, count: size - bytes.count)
        var sectors: [Int: Range<Int>] = [:]
        for range in node.written where !range.isEmpty {
            for sector in range.lowerBound / sectorBytes...(range.upperBound - 1) / sectorBytes {
                let start = max(range.lowerBound, sector * sectorBytes)
                let end = min(range.upperBound, (sector + 1) * sectorBytes)
                // Two writes to one sector count as one over both ranges.
                let known = sectors[sector] ?? start..<end
                sectors[sector] = min(known.lowerBound, start)..<max(known.upperBound, end)
            }
        }
        for sector in sectors.keys.sorted() {
            guard let range = sectors[sector] else { continue }
            fill(&bytes, range.clamped(to: 0..<size), from: node.cached, &choices)
        }
        return bytes
    }

    private static func fill(
        _ bytes: inout [UInt8], _ range: Range<Int>, from new: [UInt8], _ choices: inout Choices
    ) {
        let range = range.clamped(to: 0..<new.count)
        guard !range.isEmpty else { return }
        switch choices.int(in: 0...5) {
        case 0: break
        case 1: bytes.replaceSubrange(range, with: new[range])
        case 2:
            let cut = choices.int(in: range.lowerBound...range.upperBound)
            bytes.replaceSubrange(range.lowerBound..<cut, with: new[range.lowerBound..<cut])
        case 3:
            let cut = choices.int(in: range.lowerBound...range.upperBound)
            bytes.replaceSubrange(cut..<range.upperBound, with: new[cut..<range.upperBound])
        case 4:
            bytes.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
        default:
            bytes.replaceSubrange(range, with: choices.bytes(count: range.count))
        }
    }
}
