// What must hold of a log after a crash: design §10, I1 to I9 and I12. Used by CrashSearch.

import EventSourcing
import LogFormat
import LogStorage

/// An invariant that does not hold.
public struct BrokenInvariant: Error, CustomStringConvertible {
    /// Its number in design and Spec/testing/testing.md, and what was found.
    public let description: String

    init(_ number: String, _ found: String) { description = "\(number): \(found)" }
}

/// The invariants of a recovery.
package struct RecoveryCheck {
    let run: WorkloadRun
    /// The operation before which the workload was cut off.
    let operation: Int

    package init(_ run: WorkloadRun, at operation: Int) {
        self.run = run
        self.operation = operation
    }

    private static let directory = Workload.directory
    /// What may be in a log's folder when no call is under way.
    private static let restingNames: Set<String> = [
        LogDirectory.lock, LogDirectory.checkpoints, LogDirectory.quarantine, LogDirectory.reserve,
    ]

    private func require(
        _ condition: Bool, _ number: String, _ found: @autoclosure () -> String
    ) throws { try Self.require(condition, number, found()) }

    static func require(
        _ condition: Bool, _ number: String, _ found: @autoclosure () -> String
    ) throws {
        if !condition { throw BrokenInvariant(number, found()) }
    }

    /// Opens the log as after a crash and holds it to what was acknowledged.
    @discardableResult
    package func recover(_ files: SimulatedFileSystem) throws -> Log {
        let expected = run.durable(before: operation)
        // Readers come first: they mend nothing, and must find what the writer will find.
        let read = expected.lowerBound > 0 ? try lines(files) : nil
        let log = try Log(at: Self.directory, environment: Workload.environment(files))
        let found = try lines(files)
        if let read { try require(read == found, "I2", "a reader finds other lines than recovery") }
        try check(log, found, expected)
        try checkFolder(files, log)
        try checkCheckpoints(files, log)
        return log
    }

    /// Opens and reads a log on a medium that may have broken its promises.
    ///
    /// - Returns: whether a typed error said so.
    func notice(_ files: SimulatedFileSystem) throws -> Bool {
        do {
            _ = try Log(at: Self.directory, environment: Workload.environment(files))
            for (position, line) in try lines(files) {
                try require(
                    line == run.lines[position], "I3", "another line stands at \(position)")
            }
            return false
        } catch is LogError { return true }
    }

    private func lines(_ files: SimulatedFileSystem) throws -> [UInt64: [UInt8]] {
        var lines: [UInt64: [UInt8]] = [:]
        var last: UInt64 = 0
        try LogReader(Self.directory, fileSystem: files).forEachLine { prefix, line in
            lines[prefix.position.rawValue] = line.array
            guard prefix.position.rawValue > last else {
                lines = [:]
                return false
            }
            last = prefix.position.rawValue
            return true
        }
        try require(last == 0 || !lines.isEmpty, "I7", "positions do not rise")
        return lines
    }

    private func check(
        _ log: Log, _ found: [UInt64: [UInt8]], _ expected: ClosedRange<UInt64>
    ) throws {
        let last = log.next.rawValue - 1
        try require(
            last >= expected.lowerBound, "I1",
            "the log ends at \(last), \(expected.lowerBound) was acknowledged")
        try require(
            last <= expected.upperBound, "I3",
            "the log ends at \(last), nothing behind \(expected.upperBound) was ever appended")
        try require(run.boundaries.contains(last), "I4", "the log ends at \(last), inside a commit")
        try require((found.keys.max() ?? 0) <= last, "I3", "lines behind the end")
        guard last > 0 else { return }
        for position in 1...last {
            if let line = found[position] {
                try require(
                    line == run.lines[position], "I3", "another line stands at \(position)")
                continue
            }
            guard operation >= run.compactionFrom, let id = run.compacted[position] else {
                throw BrokenInvariant(
                    "I2", "position \(position) is missing, the log ends at \(last)")
            }
            let removed = try log.removed(id: id)
            try require(
                removed?.position.rawValue == position, "I8",
                "position \(position) was compacted and its id is not known any more")
        }
    }

    private func checkFolder(_ files: SimulatedFileSystem, _ log: Log) throws {
        for name in try files.list(Self.directory)
        where !Self.restingNames.contains(name) && SegmentName.base(name) == nil {
            throw BrokenInvariant("I12", "\(name) was left behind")
        }
        guard let tail = log.recovery.tornTail else { return }
        let path = tail.quarantinedAs ?? "nothing"
        try require(
            (try? files.open(path, .read).size()) == tail.byteCount, "I6",
            "a tail of \(tail.byteCount) bytes was cut, and \(path) does not hold it")
    }

    private func checkCheckpoints(_ files: SimulatedFileSystem, _ log: Log) throws {
        for checkpoint in CheckpointSlots(Self.directory, fileSystem: files).usable() {
            for state in checkpoint.states where state.name == Values.name {
                try require(
                    state.position < log.next, "I9",
                    "a checkpoint names position \(state.position), the log has \(log.next)")
                try require(
                    state.bytes == run.states[state.position.rawValue], "I9",
                    "the state stored at \(state.position) is not what a fold comes to")
            }
        }
    }

    /// Opens again, as after a kill, then appends, seals, closes and verifies: work goes on.
    static func workOn(_ log: consuming Log, _ files: SimulatedFileSystem) throws {
        let killed = files.afterKill()
        let again = try Log(at: directory, environment: Workload.environment(killed))
        try require(again.next == log.next, "I5", "recovering again comes to \(again.next)")
        try require(again.recovery.tornTail == nil, "I5", "recovering again cuts again")
        let next = log.next
        try log.append(line(next))
        try log.roll()
        try log.append(line(next.next))
        try require(log.next == next.next.next, "I7", "the next position is \(log.next)")
        try log.close()
        let summary = try LogVerifier(directory, fileSystem: files).verify { _, _ in nil }
        try require(summary.findings.isEmpty, "I12", "findings: \(summary.findings)")
        try require(summary.wasClosed && summary.last == next.next, "I12", "not closed in order")
    }

    private static func line(_ position: Position) -> [UInt8] {
        var line: [UInt8] = []
        LinePrefix(own: UInt128(position.rawValue) << 64, source: 7, at: position).append(to: &line)
        return line + Array("x\",\"time\":\"2026-02-22T10:30:14.425Z\",\"data\":{}}\n".utf8)
    }
}
