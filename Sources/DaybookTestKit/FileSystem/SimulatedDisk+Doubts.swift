// The states that a power cut may leave. The model:
//
// - A file has any size that it had since its last sync. A size beyond its bytes adds zeros.
// - Each sector that was written since then has its old bytes, the bytes after any of the writes to it, a
//   torn mix of both, zeros or garbage, independently of other sectors. Damage is limited to the range
//   written (`Medium.hasPowersafeOverwrite`).
// - A name refers to the inode of the last sync of its folder, or of any change since, independently of other
//   names. A rename changes two names.
// - A removed folder may reappear until its parent is synced.
//
// Each of these is one *doubt* with its alternatives; a state is one alternative for each doubt.
// SimulatedFileSystem draws states at random; CrashPoint enumerates them.

import LogStorage

/// A part of the disk that a power cut may leave in one of several versions.
enum DiskDoubt {
    case size(node: Int, alternatives: [Int])
    case sector(SectorDoubt)
    case name(String, folder: String, alternatives: [Int?])
    case removedFolder(String)

    /// The number of alternatives without damage: 0 is the durable one, the last the newest.
    var versions: Int {
        switch self {
        case .size(_, let alternatives): alternatives.count
        case .sector(let sector): sector.versions.count
        case .name(_, _, let alternatives): alternatives.count
        case .removedFolder: 2
        }
    }

    /// The number of alternatives with damage; they follow those without.
    var damages: Int {
        if case .sector(let sector) = self, !sector.damageable.isEmpty {
            SectorDamage.count
        } else {
            0
        }
    }
}

/// A sector that was written since the last sync.
struct SectorDoubt {
    var node: Int
    /// The offset of `versions` in the file.
    var start: Int
    /// The bytes from `start` on: the durable ones, then those after each write that changed them.
    var versions: [[UInt8]]
    /// The range that damage may change, relative to `start`. Empty if only a file's growth wrote zeros.
    var damageable: Range<Int>
}

/// The damage of a sector that was being written.
enum SectorDamage {
    case newThenOld(cut: Int)
    case oldThenNew(cut: Int)
    case zeros
    case garbage(seed: UInt64)

    /// The number of kinds that an exhaustive search tries.
    static let count = 6

    /// Creates one of the kinds of an exhaustive search: torn at a third and at two thirds, zeros, garbage.
    init(_ number: Int, in range: Range<Int>) {
        let third = range.lowerBound + range.count / 3
        let twoThirds = range.lowerBound + range.count * 2 / 3
        switch number {
        case 0: self = .newThenOld(cut: third)
        case 1: self = .newThenOld(cut: twoThirds)
        case 2: self = .oldThenNew(cut: third)
        case 3: self = .oldThenNew(cut: twoThirds)
        case 4: self = .zeros
        default: self = .garbage(seed: 0x6A7B)
        }
    }

    /// Draws any possible damage; nil for none.
    init?(_ choices: inout Choices, in range: Range<Int>) {
        switch choices.int(in: 0...4) {
        case 1: self = .newThenOld(cut: choices.int(in: range.lowerBound...range.upperBound))
        case 2: self = .oldThenNew(cut: choices.int(in: range.lowerBound...range.upperBound))
        case 3: self = .zeros
        case 4: self = .garbage(seed: choices.bits())
        default: return nil
        }
    }

    var name: String {
        switch self {
        case .newThenOld: "torn sector, new then old"
        case .oldThenNew: "torn sector, old then new"
        case .zeros: "sector of zeros"
        case .garbage: "sector of garbage"
        }
    }

    func applied(to old: [UInt8], _ new: [UInt8], in range: Range<Int>) -> [UInt8] {
        var bytes = new
        switch self {
        case .newThenOld(let cut):
            bytes.replaceSubrange(cut..<range.upperBound, with: old[cut..<range.upperBound])
        case .oldThenNew(let cut):
            bytes.replaceSubrange(range.lowerBound..<cut, with: old[range.lowerBound..<cut])
        case .zeros:
            for index in range { bytes[index] = 0 }
        case .garbage(let seed):
            var random = SeededRandom(seed: seed)
            for index in range { bytes[index] = UInt8(truncatingIfNeeded: random.next()) }
        }
        return bytes
    }
}

extension SimulatedDisk {
    /// The doubts that a power cut would leave now, in a fixed order.
    func doubts() -> [DiskDoubt] {
        var doubts: [DiskDoubt] = []
        let named = namedNodes()
        for number in nodes.keys.sorted() where named.contains(number) {
            guard let node = nodes[number], node.isInDoubt else { continue }
            var sizes: [Int] = []
            for size in node.sizes where sizes.last != size { sizes.append(size) }
            if sizes.count > 1 { doubts.append(.size(node: number, alternatives: sizes)) }
            doubts += sectors(of: node, number).map { .sector($0) }
        }
        for path in folders.keys.sorted() {
            guard let folder = folders[path] else { continue }
            if folder.isRemoved { doubts.append(.removedFolder(path)) }
            for name in folder.changes.keys.sorted() {
                var alternatives = [folder.durable[name]]
                for node in folder.changes[name] ?? [] where alternatives.last != .some(node) {
                    alternatives.append(node)
                }
                if alternatives.count > 1 {
                    doubts.append(.name(name, folder: path, alternatives: alternatives))
                }
            }
        }
        return doubts
    }

    /// The inodes that have a name or may get one back.
    private func namedNodes() -> Set<Int> {
        var named: Set<Int> = []
        for folder in folders.values {
            named.formUnion(folder.durable.values)
            named.formUnion(folder.cached.values)
            for changes in folder.changes.values { named.formUnion(changes.compactMap { $0 }) }
        }
        return named
    }

    private func sectors(of node: Node, _ number: Int) -> [SectorDoubt] {
        let maxSize = node.sizes.max() ?? 0
        let sectorBytes = medium.sectorBytes
        var touched: Set<Int> = []
        for write in node.writes where !write.range.isEmpty {
            touched.formUnion(
                write.range.lowerBound / sectorBytes...(write.range.upperBound - 1) / sectorBytes)
        }
        return touched.sorted().compactMap { sector in
            let start = sector * sectorBytes
            let extent = start..<min(start + sectorBytes, maxSize)
            guard !extent.isEmpty else { return nil }
            var bytes = [UInt8](repeating: 0, count: extent.count)
            let durable = extent.clamped(to: 0..<node.durable.count)
            if !durable.isEmpty {
                bytes.replaceSubrange(0..<durable.count, with: node.durable[durable])
            }
            var versions = [bytes]
            var damageable: Range<Int>?
            for write in node.writes {
                let part = write.range.clamped(to: extent)
                guard !part.isEmpty else { continue }
                let inside = part.lowerBound - start..<part.upperBound - start
                let offset = part.lowerBound - write.offset
                bytes.replaceSubrange(inside, with: write.bytes[offset..<offset + part.count])
                if bytes != versions[versions.count - 1] { versions.append(bytes) }
                guard !write.isRegrowth else { continue }
                // Two writes to one sector count as one over both ranges.
                let earlier = damageable ?? inside
                damageable =
                    min(
                        earlier.lowerBound, inside.lowerBound)..<max(
                        earlier.upperBound, inside.upperBound)
            }
            if damageable != nil, !medium.hasPowersafeOverwrite { damageable = 0..<extent.count }
            return SectorDoubt(
                node: number, start: start, versions: versions, damageable: damageable ?? 0..<0)
        }
    }

    /// The disk after a power cut.
    ///
    /// - Parameter decision: the number of an alternative for each doubt, as `DiskDoubt` counts them.
    func resolved(_ doubts: [DiskDoubt], _ decision: [Int]) -> SimulatedDisk {
        resolved(doubts) { index, doubt in
            let number = decision[index]
            guard case .sector(let sector) = doubt, number >= sector.versions.count else {
                return (number, nil)
            }
            return (
                sector.versions.count - 1,
                SectorDamage(number - sector.versions.count, in: sector.damageable)
            )
        }
    }

    /// The disk after a power cut. Choices that are all 0 leave only what was durable.
    func afterPowerCut(_ choices: inout Choices) -> SimulatedDisk {
        let doubts = doubts()
        if doubts.isEmpty { choices.count("power cut with nothing in doubt") }
        var isMixed = (old: false, new: false)
        let disk = resolved(doubts) { _, doubt in
            let version = choices.int(in: 0...doubt.versions - 1)
            var damage: SectorDamage?
            switch doubt {
            case .size: choices.count(version == 0 ? "size lost" : "size kept")
            case .name: choices.count(version == 0 ? "name as synced" : "name changed unsynced")
            case .removedFolder: if version == 0 { choices.count("removed folder back") }
            case .sector(let sector):
                if version == 0 { isMixed.old = true } else { isMixed.new = true }
                if version > 0, version < sector.versions.count - 1 {
                    choices.count("sector between two writes")
                }
                if !sector.damageable.isEmpty {
                    damage = SectorDamage(&choices, in: sector.damageable)
                }
                if let damage { choices.count(damage.name) }
            }
            return (version, damage)
        }
        if isMixed.old, isMixed.new { choices.count("sectors out of order") }
        return disk
    }

    private func resolved(
        _ doubts: [DiskDoubt],
        _ decide: (_ index: Int, DiskDoubt) -> (version: Int, damage: SectorDamage?)
    ) -> SimulatedDisk {
        var disk = self
        // The size of a file precedes its sectors among the doubts, and is applied after them.
        var sizes: [Int: Int] = [:]
        for (index, doubt) in doubts.enumerated() {
            let (version, damage) = decide(index, doubt)
            switch doubt {
            case .size(let node, let alternatives): sizes[node] = alternatives[version]
            case .sector(let sector):
                var bytes = sector.versions[version]
                if let damage {
                    bytes = damage.applied(to: sector.versions[0], bytes, in: sector.damageable)
                }
                disk.patch(sector.node, bytes, at: sector.start)
            case .name(let name, let folder, let alternatives):
                disk.folders[folder]?.durable[name] = alternatives[version]
            case .removedFolder(let path):
                // The durable version 0 still has the folder.
                if version > 0 { disk.folders[path] = nil }
            }
        }
        // The page cache is lost, including pages that a failed sync marked clean.
        for (number, node) in disk.nodes {
            let size = sizes[number] ?? node.sizes[0]
            let bytes = Self.resized(node.durable, to: size)
            disk.nodes[number] = Node(durable: bytes, cached: bytes, sizes: [size])
        }
        for (path, folder) in disk.folders {
            disk.folders[path] = Folder(durable: folder.durable, cached: folder.durable)
        }
        return disk
    }

    private mutating func patch(_ number: Int, _ bytes: [UInt8], at start: Int) {
        guard var node = nodes.removeValue(forKey: number) else { return }
        if node.durable.count < start + bytes.count {
            node.durable = Self.resized(node.durable, to: start + bytes.count)
        }
        node.durable.replaceSubrange(start..<start + bytes.count, with: bytes)
        nodes[number] = node
    }
}
