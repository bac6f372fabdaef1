// A log to be damaged, and the checks of its repair. The shared procedure of RepairTests and
// RepairCrashTests: corrupt, show that the damage is detected, plan without changing anything, repair,
// verify, append again.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

/// A log of three segments whose every line is known, on any file system.
struct DamagedLog {
    let files: any FileSystem
    /// The lines by position, from 1.
    private(set) var lines: [[UInt8]] = []
    /// The positions that each segment covers.
    private(set) var ranges: [ClosedRange<Position>] = []

    static let account = "ada"

    /// The state in which the log is left.
    enum Ending: String, CaseIterable, Sendable {
        case closed, killed, sealed
    }

    /// Makes a log. `commits` is written once into each segment: the paddings of its lines.
    init(
        on files: any FileSystem, commits: [[Int]] = Self.manyFrames, segments: Int = 3,
        ending: Ending = .closed
    ) throws {
        self.files = files
        let log = try Log(
            at: TestLog.path, account: Self.account, environment: TestLog.environment(files))
        for number in 0..<segments {
            if number > 0 { try log.roll() }
            let first = log.next
            for commit in commits {
                let made = commit.enumerated().map {
                    TestLog.line(log.next.rawValue + UInt64($0), padding: $1)
                }
                try log.append(made.flatMap { $0 + [UInt8(ascii: "\n")] })
                lines += made
            }
            ranges.append(first...Position(log.next.rawValue - 1))
        }
        switch ending {
        case .closed: try log.close()
        case .sealed: try log.roll()
        case .killed: break
        }
    }

    private init(files: any FileSystem, of other: DamagedLog) {
        self.files = files
        lines = other.lines
        ranges = other.ranges
    }

    /// The same log on another file system.
    func moved(to files: any FileSystem) -> DamagedLog { DamagedLog(files: files, of: self) }

    /// A running frame of two commits, a big commit, a running frame of two commits: nine lines.
    static let manyFrames = [[0], [10, 0, 3], [35_000, 28_000], [5, 5], [7]]
    /// One frame of three commits: five lines.
    static let small = [[0], [10, 0, 3], [300]]

    // MARK: Files

    static func path(_ name: String) -> String { TestLog.path + "/" + name }

    /// The path of a segment that covers a range.
    func path(_ segment: Int) -> String {
        Self.path(SegmentName.of(ranges[segment].lowerBound))
    }

    func read(_ path: String) throws -> [UInt8] {
        let file = try files.open(path, .read)
        return try file.read(at: 0, count: try file.size())
    }

    /// Writes a whole file, as durable as a disk makes it.
    func write(_ bytes: [UInt8], to path: String) throws {
        let file = try files.open(path, .createIfMissing)
        try file.truncate(to: 0)
        try file.write(bytes, at: 0)
        try file.sync()
        try files.syncDirectory(TestLog.path)
    }

    func change(_ path: String, _ body: (inout [UInt8]) throws -> Void) throws {
        var bytes = try read(path)
        try body(&bytes)
        try write(bytes, to: path)
    }

    func remove(_ path: String) throws {
        try files.remove(path)
        try files.syncDirectory(TestLog.path)
    }

    /// Every file of the log's folder and its subfolders.
    func image() throws -> [String: [UInt8]] {
        var image: [String: [UInt8]] = [:]
        for folder in ["", "/quarantine", "/checkpoints"] {
            guard let names = try? files.list(TestLog.path + folder) else { continue }
            for name in names where !["quarantine", "checkpoints"].contains(name) {
                let path = TestLog.path + folder + "/" + name
                image[String(path.dropFirst(TestLog.path.count + 1))] = try read(path)
            }
        }
        return image
    }

    /// The commits of a segment.
    func commits(_ segment: Int) throws -> [ScannedCommit] {
        let file = try files.open(path(segment), .read)
        var scanner = SegmentScanner(
            file, expecting: ranges[segment].lowerBound, allowsHoles: false)
        var commits: [ScannedCommit] = []
        while case .commit(let commit) = try scanner.next() { commits.append(commit) }
        return commits
    }

    // MARK: Repair

    func repair() -> LogRepair {
        LogRepair(TestLog.path, account: Self.account, environment: TestLog.environment(files))
    }

    private func findings() throws -> [Finding] {
        try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }.findings
    }

    /// True if opening refuses the log or verification finds damage.
    func isDamaged() throws -> Bool {
        if try !findings().isEmpty { return true }
        let copy = try moved(to: copied())
        do {
            try Log(
                at: TestLog.path, account: Self.account, create: false,
                environment: TestLog.environment(copy.files)
            ).close()
            return false
        } catch { return true }
    }

    /// The log in memory, without `lock`, whose copy would show that the folder is a copy.
    private func copied() throws -> InMemoryFileSystem {
        let copy = InMemoryFileSystem()
        for folder in [TestLog.path, Self.path("quarantine"), Self.path("checkpoints")] {
            try copy.createDirectory(folder)
        }
        for (name, bytes) in try image() where name != "lock" { copy[Self.path(name)] = bytes }
        return copy
    }

    /// Plans and executes a repair, and checks the guarantees that hold in every case.
    ///
    /// - Returns: the report of the repair.
    @discardableResult
    func checkRepair(_ what: String) throws -> RepairReport {
        let before = try image()
        let plan = try repair().plan()
        try #require(try image() == before, "\(what): looking changed something")
        let report = try repair().repair()
        try #require(
            report.actions.map { Self.withoutPlace($0) }
                == plan.actions.map { Self.withoutPlace($0) },
            "\(what): did something else than it had said")
        try #require(plan.kept == report.kept, "\(what): kept other lines than it had said")
        for action in report.actions where action.bytes != nil {
            let kept = try #require(action.quarantinedAs, "\(what): \(action)")
            try #require(try read(kept) == before[action.name], "\(what): \(action.name) changed")
        }
        try checkRepaired(report, what)
        return report
    }

    private static func withoutPlace(_ action: RepairAction) -> RepairAction {
        var action = action
        action.quarantinedAs = nil
        return action
    }

    /// Checks that the log is sound, that it has all lines except those reported lost, and that it accepts
    /// appends.
    func checkRepaired(_ report: RepairReport?, _ what: String) throws {
        try #require(try findings() == [], "\(what): still damaged")
        try #require(try repair().plan().actions == [], "\(what): not repaired in one go")
        let names = try files.list(TestLog.path)
        try #require(!names.contains { $0.hasSuffix(".repair") }, "\(what): left \(names)")

        var found: Set<Position> = []
        try LogReader(TestLog.path, fileSystem: files).forEachLine { prefix, line in
            let index = Int(prefix.position.rawValue) - 1
            try #require(lines.indices.contains(index), "\(what): a line that was never written")
            try #require(line.array == lines[index], "\(what): position \(prefix.position)")
            found.insert(prefix.position)
            return true
        }
        if let report {
            try #require(report.kept == found.count, "\(what): other lines are kept")
            for position in Position(1)...Position(UInt64(lines.count)) {
                let isLost = report.lost.contains { $0.contains(position) }
                try #require(
                    found.contains(position) != isLost,
                    "\(what): position \(position) is \(isLost ? "" : "not ")said to be lost")
            }
        }
        let log = try Log(
            at: TestLog.path, account: Self.account, create: false,
            environment: TestLog.environment(files))
        let next = log.next
        try #require(
            next.rawValue > UInt64(lines.count), "\(what): position \(next) is given away twice")
        try log.append(TestLog.line(next.rawValue) + [UInt8(ascii: "\n")])
        for position in found {
            let id = TestLog.id(position.rawValue)
            try #require(try log.line(id: id)?.position == position, "\(what): lookup")
        }
        try log.close()
        try #require(try findings() == [], "\(what): damaged by an append")
    }
}
