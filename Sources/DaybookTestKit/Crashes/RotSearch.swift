// Damages stored logs in every way of fault F9 and checks what opening, reading and lookups report: an error
// with the location, nothing because the damage is harmless, or a torn tail at the end of the log. Workload
// makes the logs. Spec/testing/testing.md.

import EventSourcing
import LogFormat
import LogStorage

/// The files of a log, with its lines and removed ids.
public struct StoredLog: Sendable {
    /// The kind of log, for failure messages.
    public let name: String
    /// Whether the log was left as by a kill, so that damage at its end may look like a torn tail.
    public let isLive: Bool
    /// The bytes of every file, by path.
    let image: [String: [UInt8]]
    /// The stored lines, by position.
    let lines: [UInt64: [UInt8]]
    /// The ids that compaction removed, by position.
    let removed: [UInt64: UInt128]

    /// Makes one log of each kind: live, live without a sealed segment, closed, sealed, compacted, and with a
    /// big commit, each with a checkpoint.
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

    /// The log's files, with some of them replaced or, for nil, removed.
    func files(_ changes: [String: [UInt8]?] = [:]) throws -> InMemoryFileSystem {
        let files = InMemoryFileSystem()
        try files.createDirectory(Workload.directory)
        for folder in [LogDirectory.checkpoints, LogDirectory.quarantine] {
            try files.createDirectory(Workload.directory + "/" + folder)
        }
        // The file `lock` names the fingerprint that it had, which would show that the folder is a copy.
        let lock = Workload.directory + "/" + LogDirectory.lock
        for (path, bytes) in image where path != lock { files[path] = bytes }
        for (path, bytes) in changes { files[path] = bytes }
        return files
    }
}

/// A search through the ways in which stored bytes can change.
public struct RotSearch: Sendable {
    /// The number of damages and outcomes of each kind.
    public private(set) var counts: [String: Int] = [:]
    private static let sectorBytes = 512
    /// The number of sectors of a file that each sector is swapped with.
    private static let swappedSectorsMax = 24
    /// The number of bytes after the last non-zero byte that are damaged as well.
    private static let trailingBytes = 64

    /// Creates a search.
    public init() {}

    /// Tries every damage on every file of a log.
    ///
    /// - Parameters:
    ///   - log: the log.
    ///   - part: restricts the search to damages whose number modulo `parts` is `part`.
    ///   - parts: the number of parts of the search.
    ///   - isOver: called before each damage; true ends the search. The remaining damages are counted as
    ///     `not tried`; the bits and lengths that were tried are spread over the whole file.
    /// - Throws: `RotFailure` for damage that is neither detected nor harmless.
    public mutating func explore(
        _ log: StoredLog, part: Int = 0, of parts: Int = 1, until isOver: () -> Bool = { false }
    ) throws {
        var number = 0
        var skipped = 0
        func isSelected() -> Bool {
            number += 1
            guard number % parts == part else { return false }
            guard isOver() else { return true }
            skipped += 1
            return false
        }
        defer { if skipped > 0 { counts["not tried", default: 0] += skipped } }
        let segments = log.image.keys.filter { $0.hasSuffix(".lz4") }.sorted()
        for (path, bytes) in log.image.sorted(by: { $0.key < $1.key }) where !bytes.isEmpty {
            let used = min(bytes.count, (bytes.lastIndex { $0 != 0 } ?? 0) + Self.trailingBytes)
            for bit in Self.spread(used * 8) where isSelected() {
                var damaged = bytes
                damaged[bit / 8] ^= 1 << UInt8(bit % 8)
                try tryDamage(log, [path: damaged], "bits flipped", "bit \(bit) of \(path)")
            }
            for length in Self.spread(used) where isSelected() {
                try tryDamage(
                    log, [path: Array(bytes[..<length])], "files cut",
                    "\(path) truncated to \(length) bytes")
            }
            for damage in Self.sectorDamages(used, of: bytes.count, segments) where isSelected() {
                let damaged = damage.applied(to: bytes, log.image)
                guard damaged != bytes else { continue }
                try tryDamage(log, [path: damaged], "sectors damaged", "\(path): \(damage)")
            }
            if isSelected() {
                let changes: [String: [UInt8]?] = [path: Optional<[UInt8]>.none]
                try tryDamage(log, changes, "files missing", "\(path) is missing")
            }
        }
        for a in segments {
            for b in segments where a != b && isSelected() {
                try tryDamage(
                    log, [a: log.image[b], b: log.image[a]], "files swapped",
                    "\(a) swapped with \(b)")
                try tryDamage(log, [a: log.image[b]], "files duplicated", "\(a) is a copy of \(b)")
            }
        }
    }

    /// The numbers below `count`, each once, in an order whose every prefix is spread evenly over the range:
    /// the step is about 0.618 · `count` and coprime to it.
    private static func spread(_ count: Int) -> some Sequence<Int> {
        func divisor(_ a: Int, _ b: Int) -> Int { b == 0 ? a : divisor(b, a % b) }
        var step = max(1, count * 618 / 1_000)
        while divisor(count, step) > 1 { step += 1 }
        return (0..<count).lazy.map { $0 * step % count }
    }

    /// The damage of one sector.
    private enum SectorDamage {
        case zeros(Range<Int>)
        case swapped(Range<Int>, Range<Int>)
        /// Overwritten by another sector of the same file.
        case misdirected(from: Range<Int>, to: Range<Int>)
        /// Overwritten by the same sector of another file.
        case foreign(Range<Int>, from: String)

        func applied(to bytes: [UInt8], _ image: [String: [UInt8]]) -> [UInt8] {
            var damaged = bytes
            switch self {
            case .zeros(let range):
                damaged.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
            case .swapped(let one, let other):
                damaged.replaceSubrange(one, with: bytes[other])
                damaged.replaceSubrange(other, with: bytes[one])
            case .misdirected(let from, let to): damaged.replaceSubrange(to, with: bytes[from])
            case .foreign(let range, let path):
                guard let other = image[path], other.count >= range.upperBound else { break }
                damaged.replaceSubrange(range, with: other[range])
            }
            return damaged
        }
    }

    private static func sectorDamages(
        _ used: Int, of count: Int, _ segments: [String]
    ) -> [SectorDamage] {
        let sectors = stride(from: 0, to: used, by: sectorBytes).map {
            $0..<min(count, $0 + sectorBytes)
        }
        let fullSectors = sectors.filter { $0.count == sectorBytes }
        return sectors.flatMap { sector in
            [.zeros(sector)] + segments.map { .foreign(sector, from: $0) }
                + (sector.count < sectorBytes
                    ? []
                    : fullSectors.prefix(swappedSectorsMax).filter { $0 != sector }
                        .flatMap { other in
                            [.misdirected(from: other, to: sector), .swapped(sector, other)]
                        })
        }
    }

    private mutating func tryDamage(
        _ log: StoredLog, _ changes: [String: [UInt8]?], _ kind: String, _ description: String
    ) throws {
        counts[kind, default: 0] += 1
        do {
            let outcome = try examine(log, try log.files(changes))
            counts[outcome, default: 0] += 1
        } catch {
            throw RotFailure(log: log.name, damage: description, cause: error)
        }
    }

    /// Opens a damaged log, reads it and looks up every id.
    ///
    /// - Returns: the label under which the outcome is counted.
    private func examine(_ stored: StoredLog, _ files: InMemoryFileSystem) throws -> String {
        let log: Log
        var lines: [UInt64: [UInt8]] = [:]
        do {
            log = try Log(at: Workload.directory, environment: Workload.environment(files))
            try LogReader(Workload.directory, fileSystem: files).forEachLine { prefix, line in
                lines[prefix.position.rawValue] = line.array
                return true
            }
        } catch let error as LogError {
            try RecoveryCheck.require(
                error.path.hasPrefix(Workload.directory) && !error.detail.isEmpty, "I6",
                "the error names no location: \(error)")
            try checkVerifierFindsDamage(files)
            return "noticed"
        }
        for (position, line) in lines {
            try RecoveryCheck.require(
                line == stored.lines[position], "I3",
                "the line at \(position) is not the appended one")
        }
        let missing = stored.lines.keys.filter { lines[$0] == nil }
        if !missing.isEmpty {
            let last = log.next.rawValue - 1
            try RecoveryCheck.require(
                missing.allSatisfy { $0 > last }, "I2",
                "lines \(missing.sorted()) are missing, but the log ends at \(last)")
            try RecoveryCheck.require(
                log.recovery.tornTail != nil || log.recovery.removedUnfinishedSegment
                    || isSegmentMissing(stored, files), "I6",
                "lines \(missing.sorted()) are missing, and the log reports nothing")
            try RecoveryCheck.require(
                stored.isLive || isSegmentMissing(stored, files) || isTruncated(stored, files),
                "I6", "lines \(missing.sorted()) of a closed log are reported as a torn tail")
            return "reported as a torn tail"
        }
        return try lookUpAllIDs(of: stored, in: log) ? "harmless" : "noticed when looked up"
    }

    /// True if a segment is missing. A missing last segment is not detectable unless a checkpoint names a
    /// position in it (REC-5).
    private func isSegmentMissing(_ stored: StoredLog, _ files: InMemoryFileSystem) -> Bool {
        stored.image.keys.contains { $0.hasSuffix(".lz4") && files[$0] == nil }
    }

    /// True if a file is shorter than it was. A segment that ends where a writer could have ended it is not
    /// detectable as damaged (REC-5).
    private func isTruncated(_ stored: StoredLog, _ files: InMemoryFileSystem) -> Bool {
        stored.image.contains { path, bytes in (files[path]?.count ?? 0) < bytes.count }
    }

    /// Looks up every stored and every removed id.
    ///
    /// - Returns: false if a lookup reported damage.
    private func lookUpAllIDs(of stored: StoredLog, in log: Log) throws -> Bool {
        do {
            for (position, line) in stored.lines {
                guard let id = (try? LinePrefix(line.span.bytes))?.id else { continue }
                try RecoveryCheck.require(
                    try log.line(id: id)?.position.rawValue == position, "I6",
                    "the id of the line at \(position) is not found")
            }
            for (position, id) in stored.removed {
                try RecoveryCheck.require(
                    try log.removed(id: id)?.position.rawValue == position, "I8",
                    "the removed id of position \(position) is not found")
            }
            return true
        } catch is LogError { return false }
    }

    /// Checks that verification, as `logtool verify` does it, finds the damage that opening refused.
    private func checkVerifierFindsDamage(_ files: InMemoryFileSystem) throws {
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
            "opening throws an error, but verification finds no damage")
    }
}

/// Damage that was neither detected nor harmless.
public struct RotFailure: Error, CustomStringConvertible {
    /// The kind of log.
    public let log: String
    /// The damage, with the file and the location.
    public let damage: String
    /// The invariant that does not hold, or an unexpected error.
    public let cause: any Error

    /// The cause, the log and the damage, one a line.
    public var description: String {
        """
        damage was not detected: \(cause)
          log \(log)
          \(damage)
        """
    }
}
