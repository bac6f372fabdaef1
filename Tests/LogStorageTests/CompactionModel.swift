// A log with a model of its expected content after compactions: the lines that are left, and the removed ids
// with their positions.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

/// The expected content of a log.
struct CompactionModel {
    let files: any FileSystem
    let clock = VirtualClock(milliseconds: 1_771_756_214_425)
    /// Lines that are left, newline not included.
    var lines: [UInt64: [UInt8]] = [:]
    /// The times at which lines were removed.
    var removed: [UInt64: Int64] = [:]
    var next: UInt64 = 1

    init(files: any FileSystem = InMemoryFileSystem()) { self.files = files }

    func environment() -> LogEnvironment {
        var environment = TestLog.environment(files)
        environment.now = { [clock] in clock.milliseconds }
        return environment
    }

    func open() throws -> Log { try Log(at: TestLog.path, environment: environment()) }

    /// Appends one commit.
    mutating func append(to log: Log, paddings: [Int]) throws {
        var commit: [UInt8] = []
        for padding in paddings {
            let line = TestLog.line(next, padding: padding)
            commit += line + [0x0A]
            lines[next] = line
            next += 1
        }
        try log.append(commit)
    }

    /// Appends lines 1 to 12 in five commits, one of them of 63 kB, and seals the segment.
    mutating func appendSealedSegment(to log: Log) throws {
        for paddings in [[0, 3, 0, 9], [0, 0], [35_000, 28_000], [5, 5, 1], [7]] {
            try append(to: log, paddings: paddings)
        }
        try log.roll()
    }

    /// The hashes to record for a removed line.
    static func hashes(_ position: UInt64) -> ContentHashes {
        ContentHashes(
            withoutTime: UInt32(truncatingIfNeeded: position &* 7),
            withTime: UInt32(truncatingIfNeeded: position &* 13))
    }

    /// Compacts every sealed segment.
    @discardableResult
    static func compact(
        _ log: Log, horizon: Position? = nil, isCancelled: () -> Bool = { false },
        removing: (UInt64) -> Bool
    ) throws -> [CompactedSegment] {
        var segments = Array(try log.sealedSegments().reversed())
        var results: [CompactedSegment] = []
        // A replaced segment that is kept also keeps its file open.
        while let segment = segments.popLast() {
            results.append(
                try log.compact(
                    segment, horizon: horizon ?? Position(log.next.rawValue - 1),
                    isCancelled: isCancelled
                ) { prefix, _, hasCapacity in
                    hasCapacity && removing(prefix.position.rawValue)
                        ? .remove(hashes(prefix.position.rawValue)) : .keep
                })
        }
        return results
    }

    /// The positions of all lines in sealed segments.
    func sealedPositions(_ log: Log) throws -> [UInt64] {
        guard let last = try log.sealedSegments().last else { return [] }
        return lines.keys.filter { $0 <= last.footer.coveredThrough.rawValue }
    }

    /// Compacts every sealed segment, in the log and in the model.
    mutating func compact(_ log: Log, removing: (UInt64) -> Bool) throws {
        let going = try sealedPositions(log).filter(removing)
        let results = try Self.compact(log, removing: removing)
        try #require(results.reduce(0) { $0 + $1.removed } == going.count)
        for position in going {
            lines[position] = nil
            removed[position] = clock.milliseconds
        }
    }

    /// Compares a log with the model: by position, by id, and read from several positions.
    func check(_ log: Log) throws {
        try #require(log.next.rawValue == next)
        for position in 1..<max(2, next) {
            let id = TestLog.id(position)
            try #require(try log.line(at: Position(position)) == lines[position])
            let found = try log.line(id: id)
            try #require(found?.bytes == lines[position])
            try #require(found.map { $0.position.rawValue == position } ?? true)
            let remembered = try log.removed(id: id)
            let isKnown =
                removed[position].map { clock.milliseconds - $0 < RemovedIDs.millisecondsKept }
                ?? false
            try #require((remembered != nil) == isKnown, "position \(position)")
            if let remembered {
                try #require(remembered.position.rawValue == position)
                try #require(remembered.hashes == Self.hashes(position))
            }
        }
        try #require(try log.removed(id: 12_345) == nil)
        try check()
    }

    /// Compares the results of readers and the verifier with the model.
    func check() throws {
        let expected = lines.sorted { $0.key < $1.key }
        try #require(try TestLog.read(files) == expected.map(\.value))
        for first in [next / 3, next / 2, next] {
            var read: [UInt64] = []
            try LogReader(TestLog.path, fileSystem: files).forEachLine(from: Position(first)) {
                prefix, _ in
                read.append(prefix.position.rawValue)
                return true
            }
            try #require(read == expected.map(\.key).filter { $0 >= first })
        }
        let summary = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
        try #require(summary.findings == [])
        try #require(summary.events == expected.count)
        try #require(summary.last.rawValue == next - 1)
    }
}
