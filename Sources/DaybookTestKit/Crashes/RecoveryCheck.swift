// The invariants of a log after a crash: I1 to I9 and I12 of Spec/testing/testing.md.

import EventSourcing
import LogFormat
import LogStorage

/// An invariant that does not hold.
public struct BrokenInvariant: Error, CustomStringConvertible {
    /// The invariant's number in Spec/testing/testing.md, and the violation.
    public let description: String

    init(_ number: String, _ violation: String) { description = "\(number): \(violation)" }
}

/// A check of the invariants after one crash.
package struct RecoveryCheck {
    let run: WorkloadRun
    /// The operation before which the crash happened.
    let operation: Int

    package init(_ run: WorkloadRun, at operation: Int) {
        self.run = run
        self.operation = operation
    }

    private static let directory = Workload.directory
    /// The names, other than those of segments, that a log's folder may contain while no call is in progress.
    private static let permanentNames: Set<String> = [
        LogDirectory.lock, LogDirectory.checkpoints, LogDirectory.quarantine, LogDirectory.reserve,
    ]

    private func require(
        _ condition: Bool, _ number: String, _ violation: @autoclosure () -> String
    ) throws { try Self.require(condition, number, violation()) }

    static func require(
        _ condition: Bool, _ number: String, _ violation: @autoclosure () -> String
    ) throws {
        if !condition { throw BrokenInvariant(number, violation()) }
    }

    /// Opens the log after the crash, and compares it with the acknowledged appends.
    ///
    /// - Throws: `BrokenInvariant`; `LogError` where the log does not open.
    @discardableResult
    package func recover(_ files: SimulatedFileSystem) throws -> Log {
        let expected = run.durableRange(before: operation)
        // Read before the writer recovers the log: a reader changes nothing and must find the same lines.
        let read = expected.lowerBound > 0 ? try lines(files) : nil
        let log = try Log(at: Self.directory, environment: Workload.environment(files))
        let recovered = try lines(files)
        if let read {
            try require(read == recovered, "I2", "a reader finds other lines than recovery")
        }
        try checkLines(of: log, recovered, expected)
        try checkFolder(files, log)
        try checkCheckpoints(files, log)
        return log
    }

    /// Opens and reads a log on a medium that does not guarantee what Spec/format/recovery.md assumes.
    ///
    /// - Returns: true if the log threw a typed error, false if it opened and every line is one that was
    ///   appended.
    func detectsDamage(_ files: SimulatedFileSystem) throws -> Bool {
        do {
            _ = try Log(at: Self.directory, environment: Workload.environment(files))
            for (position, line) in try lines(files) {
                try require(
                    line == run.lines[position], "I3",
                    "the line at \(position) is not the appended one")
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

    private func checkLines(
        of log: Log, _ recovered: [UInt64: [UInt8]], _ expected: ClosedRange<UInt64>
    ) throws {
        let last = log.next.rawValue - 1
        try require(
            last >= expected.lowerBound, "I1",
            "the log ends at \(last), but \(expected.lowerBound) was acknowledged")
        try require(
            last <= expected.upperBound, "I3",
            "the log ends at \(last), but nothing after \(expected.upperBound) was appended")
        try require(run.boundaries.contains(last), "I4", "the log ends at \(last), inside a commit")
        try require(
            (recovered.keys.max() ?? 0) <= last, "I3", "a reader finds lines after the log's end")
        guard last > 0 else { return }
        for position in 1...last {
            if let line = recovered[position] {
                try require(
                    line == run.lines[position], "I3",
                    "the line at \(position) is not the appended one")
                continue
            }
            guard operation >= run.compactionFrom, let id = run.compacted[position] else {
                throw BrokenInvariant(
                    "I2", "position \(position) is missing, the log ends at \(last)")
            }
            let removed = try log.removed(id: id)
            try require(
                removed?.position.rawValue == position, "I8",
                "position \(position) was compacted, but its id is not among the removed ids")
        }
    }

    private func checkFolder(_ files: SimulatedFileSystem, _ log: Log) throws {
        for name in try files.list(Self.directory)
        where !Self.permanentNames.contains(name) && SegmentName.base(name) == nil {
            throw BrokenInvariant("I12", "recovery did not remove the file \(name)")
        }
        guard let tail = log.recovery.tornTail else { return }
        let path = tail.quarantinedAs ?? "no file"
        try require(
            (try? files.open(path, .read).size()) == tail.byteCount, "I6",
            "a torn tail of \(tail.byteCount) bytes was removed, but \(path) does not contain it")
    }

    private func checkCheckpoints(_ files: SimulatedFileSystem, _ log: Log) throws {
        for checkpoint in CheckpointSlots(Self.directory, fileSystem: files).usable() {
            for state in checkpoint.states where state.name == Values.name {
                try require(
                    state.position < log.next, "I9",
                    "a checkpoint is at position \(state.position), the log's next is \(log.next)")
                try require(
                    state.bytes == run.states[state.position.rawValue], "I9",
                    "the state stored at \(state.position) differs from the fold of the lines")
            }
        }
    }

    /// Checks that a recovered log can be used: opens it again as after a kill, then appends, seals, closes
    /// and verifies.
    static func checkContinuation(of log: consuming Log, _ files: SimulatedFileSystem) throws {
        let killed = files.afterKill()
        let again = try Log(at: directory, environment: Workload.environment(killed))
        try require(
            again.next == log.next, "I5",
            "a second recovery ends at \(again.next), the first at \(log.next)")
        try require(
            again.recovery.tornTail == nil, "I5", "a second recovery removes another torn tail")
        let next = log.next
        try log.append(line(next))
        try log.roll()
        try log.append(line(next.next))
        try require(log.next == next.next.next, "I7", "the next position is \(log.next)")
        try log.close()
        let summary = try LogVerifier(directory, fileSystem: files).verify { _, _ in nil }
        try require(summary.findings.isEmpty, "I12", "findings: \(summary.findings)")
        try require(
            summary.wasClosed && summary.last == next.next, "I12", "the log was not closed cleanly")
    }

    private static func line(_ position: Position) -> [UInt8] {
        var line: [UInt8] = []
        LinePrefix(own: UInt128(position.rawValue) << 64, source: 7, at: position).append(to: &line)
        return line + Array("x\",\"time\":\"2026-02-22T10:30:14.425Z\",\"data\":{}}\n".utf8)
    }
}
