// Damages stored logs in every way of fault F9 and looks what opening, reading and looking up
// say: the damage is noticed with its place, or harmless, or reported as a torn tail at the very
// end. Comes after Workload, which makes the logs. Spec/testing/testing.md.

import EventSourcing
import LogFormat
import LogStorage

/// A stored log, and what is in it.
public struct StoredLog: Sendable {
    /// What it is, in words.
    public let name: String
    /// Whether its last segment was left as by a kill, so that its end may look torn.
    public let isLive: Bool
    /// Every file by its path.
    let image: [String: [UInt8]]
    let lines: [UInt64: [UInt8]]
    let removed: [UInt64: UInt128]

    /// One log of each kind: live, closed, sealed, compacted, with a big commit; all with a
    /// checkpoint.
    public static func corpus() async throws -> [StoredLog] {
        try await [
            make("live", .filled, [.append, .batch], isLive: true),
            make(
                "live, nothing sealed", .empty, [.append, .batch, .checkpoint, .append],
                isLive: true),
            make("closed", .filled, [.append, .batch]),
            make("sealed", .filled, [.append, .batch, .roll]),
            make("compacted", .filled, [.roll, .batch, .roll, .compact, .append]),
            make("big commit, sealed", .filled, [.append, .bigBatch, .append, .roll]),
        ]
    }

    private static func make(
        _ name: String, _ start: Workload.Start, _ steps: [Workload.Step],
        isLive: Bool = false
    ) async throws -> StoredLog {
        let machine = SimulatedFileSystem()
        let run = await Workload(start, steps).run(on: machine, records: false)
        if let failure = run.failures.first { throw failure }
        let files = machine.afterKill()
        if !isLive {
            try Log(at: Workload.directory, environment: Workload.environment(files)).close()
        }
        return StoredLog(
            name: name, isLive: isLive, image: files.image,
            lines: run.lines.filter { run.compacted[$0.key] == nil }, removed: run.compacted)
    }

    /// The log's files, with some of them changed.
    func files(_ changes: [String: [UInt8]?] = [:]) throws -> InMemoryFileSystem {
        let files = InMemoryFileSystem()
        try files.createDirectory(Workload.directory)
        for folder in [LogDirectory.checkpoints, LogDirectory.quarantine] {
            try files.createDirectory(Workload.directory + "/" + folder)
        }
        for (path, bytes) in image { files[path] = bytes }
        for (path, bytes) in changes { files[path] = bytes }
        return files
    }
}

/// A search through the ways in which stored bytes can go bad.
public struct RotSearch: Sendable {
    /// What was tried and what came of it.
    public private(set) var counts: [String: Int] = [:]
    private static let sectorBytes = 512
    /// How many sectors of a file each is swapped with.
    private static let neighboursMax = 24
    /// Bytes behind the last that is not zero that are damaged as well.
    private static let roomBytes = 64

    /// Creates a search.
    public init() {}

    /// Tries every damage on every file of a log.
    ///
    /// - Parameters:
    ///   - log: the log.
    ///   - part: only damages whose number leaves this remainder …
    ///   - parts: … divided by this number.
    ///   - isOver: whether the time is over. What is left then is counted as `not tried`: of a file,
    ///     bits and lengths that are spread over all of it.
    /// - Throws: `RotFailure` for damage that is not noticed and not harmless.
    public mutating func explore(
        _ log: StoredLog, part: Int = 0, of parts: Int = 1, until isOver: () -> Bool = { false }
    ) throws {
        var number = 0
        var skipped = 0
        func isMine() -> Bool {
            number += 1
            guard number % parts == part else { return false }
            guard isOver() else { return true }
            skipped += 1
            return false
        }
        defer { if skipped > 0 { counts["not tried", default: 0] += skipped } }
        let segments = log.image.keys.filter { $0.hasSuffix(".lz4") }.sorted()
        for (path, bytes) in log.image.sorted(by: { $0.key < $1.key }) where !bytes.isEmpty {
            let used = min(bytes.count, (bytes.lastIndex { $0 != 0 } ?? 0) + Self.roomBytes)
            for bit in Self.spread(used * 8) where isMine() {
                var rotten = bytes
                rotten[bit / 8] ^= 1 << UInt8(bit % 8)
                try look(log, [path: rotten], "bits flipped", "bit \(bit) of \(path)")
            }
            for length in Self.spread(used) where isMine() {
                try look(
                    log, [path: Array(bytes[..<length])], "files cut", "\(path) cut to \(length)")
            }
            for damage in Self.sectorDamages(used, of: bytes.count, segments) where isMine() {
                let rotten = damage.applied(to: bytes, log.image)
                guard rotten != bytes else { continue }
                try look(log, [path: rotten], "sectors damaged", "\(path): \(damage)")
            }
            if isMine() {
                let without: [String: [UInt8]?] = [path: Optional<[UInt8]>.none]
                try look(log, without, "files missing", "\(path) is missing")
            }
        }
        for a in segments {
            for b in segments where a != b && isMine() {
                try look(
                    log, [a: log.image[b], b: log.image[a]], "files swapped", "\(a) for \(b)")
                try look(log, [a: log.image[b]], "files duplicated", "\(b) also as \(a)")
            }
        }
    }

    /// The numbers below `count`, each once, in an order of which every prefix is spread evenly over
    /// the range: steps of about the golden section, without a common divisor with `count`.
    private static func spread(_ count: Int) -> some Sequence<Int> {
        func divisor(_ a: Int, _ b: Int) -> Int { b == 0 ? a : divisor(b, a % b) }
        var step = max(1, count * 618 / 1_000)
        while divisor(count, step) > 1 { step += 1 }
        return (0..<count).lazy.map { $0 * step % count }
    }

    /// What can become of a sector.
    private enum SectorDamage {
        case zeros(Range<Int>)
        case swapped(Range<Int>, Range<Int>)
        /// Written over by another of the same file.
        case misdirected(from: Range<Int>, to: Range<Int>)
        /// Written over by one of another file.
        case foreign(Range<Int>, from: String)

        func applied(to bytes: [UInt8], _ image: [String: [UInt8]]) -> [UInt8] {
            var rotten = bytes
            switch self {
            case .zeros(let range):
                rotten.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
            case .swapped(let one, let other):
                rotten.replaceSubrange(one, with: bytes[other])
                rotten.replaceSubrange(other, with: bytes[one])
            case .misdirected(let from, let to): rotten.replaceSubrange(to, with: bytes[from])
            case .foreign(let range, let path):
                guard let other = image[path], other.count >= range.upperBound else { break }
                rotten.replaceSubrange(range, with: other[range])
            }
            return rotten
        }
    }

    private static func sectorDamages(
        _ used: Int, of count: Int, _ segments: [String]
    ) -> [SectorDamage] {
        let sectors = stride(from: 0, to: used, by: sectorBytes).map {
            $0..<min(count, $0 + sectorBytes)
        }
        let whole = sectors.filter { $0.count == sectorBytes }
        return sectors.flatMap { sector in
            [.zeros(sector)] + segments.map { .foreign(sector, from: $0) }
                + (sector.count < sectorBytes
                    ? []
                    : whole.prefix(neighboursMax).filter { $0 != sector }.flatMap { other in
                        [.misdirected(from: other, to: sector), .swapped(sector, other)]
                    })
        }
    }

    private mutating func look(
        _ log: StoredLog, _ changes: [String: [UInt8]?], _ kind: String, _ what: String
    ) throws {
        counts[kind, default: 0] += 1
        do {
            let outcome = try examine(log, try log.files(changes))
            counts[outcome, default: 0] += 1
        } catch {
            throw RotFailure(log: log.name, damage: what, cause: error)
        }
    }

    /// Opens a damaged log, reads it and looks everything up.
    private func examine(_ stored: StoredLog, _ files: InMemoryFileSystem) throws -> String {
        let log: Log
        var found: [UInt64: [UInt8]] = [:]
        do {
            log = try Log(at: Workload.directory, environment: Workload.environment(files))
            try LogReader(Workload.directory, fileSystem: files).forEachLine { prefix, line in
                found[prefix.position.rawValue] = line.array
                return true
            }
        } catch let error as LogError {
            try RecoveryCheck.require(
                error.path.hasPrefix(Workload.directory) && !error.detail.isEmpty, "I6",
                "the error does not say where: \(error)")
            try checkIntact(stored, files)
            return "noticed"
        }
        for (position, line) in found {
            try RecoveryCheck.require(
                line == stored.lines[position], "I3", "another line stands at \(position)")
        }
        let missing = stored.lines.keys.filter { found[$0] == nil }
        if !missing.isEmpty {
            let last = log.next.rawValue - 1
            try RecoveryCheck.require(
                missing.allSatisfy { $0 > last }, "I2",
                "lines \(missing.sorted()) are missing, the log ends at \(last)")
            try RecoveryCheck.require(
                log.recovery.tornTail != nil || log.recovery.removedUnfinishedSegment
                    || isSegmentMissing(stored, files), "I6",
                "lines \(missing.sorted()) are missing and nothing is said")
            try RecoveryCheck.require(
                stored.isLive || isSegmentMissing(stored, files) || isCut(stored, files), "I6",
                "lines \(missing.sorted()) of a closed log are taken for a torn tail")
            return "reported as a torn tail"
        }
        return try lookUp(stored, log) ? "harmless" : "noticed when looked up"
    }

    /// The last segment is not there at all: nothing tells, unless a checkpoint names a position in
    /// it (REC-5).
    private func isSegmentMissing(_ stored: StoredLog, _ files: InMemoryFileSystem) -> Bool {
        stored.image.keys.contains { $0.hasSuffix(".lz4") && files[$0] == nil }
    }

    /// Cut where a writer could have ended it (REC-5).
    private func isCut(_ stored: StoredLog, _ files: InMemoryFileSystem) -> Bool {
        stored.image.contains { path, bytes in (files[path]?.count ?? 0) < bytes.count }
    }

    /// Asks for every id that is or was there.
    ///
    /// - Returns: false if damage was noticed by that.
    private func lookUp(_ stored: StoredLog, _ log: Log) throws -> Bool {
        do {
            for (position, line) in stored.lines {
                guard let id = (try? LinePrefix(line.span.bytes))?.id else { continue }
                try RecoveryCheck.require(
                    try log.line(id: id)?.position.rawValue == position, "I6",
                    "the id of \(position) is not found")
            }
            for (position, id) in stored.removed {
                try RecoveryCheck.require(
                    try log.removed(id: id)?.position.rawValue == position, "I8",
                    "the removed id of \(position) is not found")
            }
            return true
        } catch is LogError { return false }
    }

    /// Verification, as `logtool verify` does it, finds what opening refuses.
    private func checkIntact(_ stored: StoredLog, _ files: InMemoryFileSystem) throws {
        let directory = Workload.directory
        var checkpoints = CheckpointVerifier(
            directory, fileSystem: files, catalogue: Workload.catalogue, views: [Values.self],
            compactedThrough: (try? LogReader(directory, fileSystem: files).compactedThrough())
                ?? .zero)
        let summary: VerificationSummary
        do {
            summary = try LogVerifier(directory, fileSystem: files).verify { prefix, line in
                guard let event = try? LineDecoder.event(line, prefix, Workload.catalogue)
                else { return "the line is not an event" }
                checkpoints.fold(event)
                return nil
            }
        } catch is LogError { return }
        checkpoints.finish(at: summary.last)
        try RecoveryCheck.require(
            !summary.findings.isEmpty || !checkpoints.findings.isEmpty, "I6",
            "opening refuses, and verification finds nothing")
    }
}

/// Damage that was not noticed and not harmless.
public struct RotFailure: Error, CustomStringConvertible {
    /// The kind of log.
    public let log: String
    /// What was done to it.
    public let damage: String
    /// What is wrong.
    public let cause: any Error

    /// All of it, in several lines.
    public var description: String {
        """
        damage was not noticed: \(cause)
          log \(log)
          \(damage)
        """
    }
}
