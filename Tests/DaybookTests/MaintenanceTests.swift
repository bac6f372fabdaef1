// An app whose log is damaged gets a report of the damage, and recovers the user's data as far as it is
// intact. Spec/format/repair.md.

import Daybook
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

private struct Step: EventPayload, Codable {
    static let type = "com.example.step"
    var number: Int
    var subject: String? { "\(number)" }
}

private struct Steps: Projection, Codable {
    static let name = "steps"
    static let version = 1
    private(set) var numbers: [Int] = []
    mutating func fold(_ event: Event) {
        if let step = try? event.payload(as: Step.self) { numbers.append(step.number) }
    }
}

@Suite struct MaintenanceTests {
    private static let rules: [EventRule] = [.of(Step.self, action: "STEP")]
    private static let url = URL(filePath: "/log")

    private func open(_ files: InMemoryFileSystem, _ url: URL = url) async throws -> EventStore {
        try await EventStore.open(
            at: url, account: "a", rules: Self.rules, views: [Steps.self],
            environment: LogEnvironment(fileSystem: files))
    }

    private func maintenance(_ files: InMemoryFileSystem) throws -> LogMaintenance {
        try LogMaintenance(
            at: Self.url, account: "a", rules: Self.rules, views: [Steps.self],
            environment: LogEnvironment(fileSystem: files))
    }

    /// A log of 2,000 events with, if asked for, a damaged byte in its middle. A damaged log has no
    /// checkpoints unless `keepsCheckpoints` is true.
    private func log(
        damaged: Bool, keepsCheckpoints: Bool = false
    ) async throws -> InMemoryFileSystem {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        for start in stride(from: 0, to: 2_000, by: 100) {
            try await store.append(
                contentsOf: (start..<start + 100).map { try EventDraft(Step(number: $0)) })
        }
        if keepsCheckpoints { try await store.checkpoint() }
        try await store.close()
        if damaged {
            let segment = try #require(files.list("/log").first { $0.hasSuffix(".lz4") })
            let path = "/log/" + segment
            let file = try files.open(path, .readWrite)
            let middle = try file.size() / 2
            let byte = try file.read(at: middle, count: 1)
            try file.write([byte[0] ^ 0xFF], at: middle)
            // With a checkpoint, opening would not read the damaged block.
            if !keepsCheckpoints { try files.removeAll("/log/checkpoints") }
        }
        return files
    }

    /// The content of every file in a folder, by its name.
    private func content(_ files: InMemoryFileSystem, _ folder: String) throws -> [String: [UInt8]]
    {
        var content: [String: [UInt8]] = [:]
        for name in try files.list(folder) {
            guard let file = try? files.open(folder + "/" + name, .read) else { continue }
            content[name] = try file.read(at: 0, count: try file.size())
        }
        return content
    }

    @Test(.verifies("REP-6"))
    func `an undamaged log is intact, also while a store has it open`() async throws {
        let files = try await log(damaged: false)
        let store = try await open(files)
        let parts = Mutex<[Double]>([])
        let report = try await maintenance(files).verify { part in
            parts.withLock { $0.append(part) }
        }
        #expect(report.isIntact)
        #expect(report.events == 2_000)
        #expect(report.last == Position(2_000))
        #expect("\(report)".hasPrefix("2000 readable events, the last at position 2000; "))
        #expect("\(report)".hasSuffix("; no damage"))
        #expect(parts.withLock { $0 == $0.sorted() && $0.last == 1 })
        try await store.close()
        let repair = try await maintenance(files).repair(isTrial: true)
        #expect(repair.damage == [])
        #expect("\(repair)" == "the log is intact; there is nothing to repair")
    }

    @Test(.verifies("REP-6"))
    func `a finding names the lost events, and one that follows from it says so`() async throws {
        let files = try await log(damaged: true, keepsCheckpoints: true)
        let report = try await maintenance(files).verify()
        let damage = try #require(report.damage.first)
        let lost = try #require(damage.lost.first)
        #expect(damage.lost.count == 1)
        #expect(lost.lowerBound == damage.positions?.lowerBound)
        #expect(damage.lostEndIsKnown)
        #expect(damage.cause == nil)
        #expect(
            damage.description.hasSuffix(
                "; lost: positions \(lost.lowerBound) to \(lost.upperBound)"))
        // The events after the damage were read.
        #expect(report.last == Position(2_000))
        #expect(report.events == 1_999 - lost.lowerBound.distance(to: lost.upperBound))
        // One for each checkpoint, not for each of its states.
        let following = report.damage.dropFirst()
        #expect(!following.isEmpty)
        #expect(Set(following.map(\.file)).count == following.count)
        for finding in following {
            #expect(finding.file.hasPrefix("checkpoints/"))
            #expect(finding.cause == damage.file)
            #expect(finding.description.hasSuffix("; follows from the damage in \(damage.file)"))
        }
        #expect("\(report)".split(separator: "\n").count == 1 + report.damage.count)
    }

    @Test(.verifies("REP-6"))
    func `a repair names the lost events, and what is set aside because of them`() async throws {
        let files = try await log(damaged: true, keepsCheckpoints: true)
        let repair = try await maintenance(files).repair(isTrial: true)
        let segment = try #require(repair.damage.first { !$0.lost.isEmpty })
        #expect(segment.lost == repair.lost)
        #expect(segment.cause == nil)
        let lost = try #require(segment.lost.first)
        #expect(segment.positions?.lowerBound == lost.lowerBound)
        #expect(segment.description.contains("; lost: positions \(lost.lowerBound) to "))
        #expect(!segment.description.contains("positions 1 to "))
        let checkpoints = repair.damage.filter { $0.file.hasPrefix("checkpoints/") }
        #expect(!checkpoints.isEmpty)
        #expect(checkpoints.allSatisfy { $0.cause == segment.file })
        let count = try #require(repair.lostCount)
        #expect("\(repair)".hasPrefix("\(count) lost events (positions \(lost.lowerBound) to "))
    }

    @Test(.verifies("REP-6"))
    func `a damaged log is salvaged into a new one, and does not change`() async throws {
        let files = try await log(damaged: true)
        let damaged = await #expect(throws: LogError.self) { _ = try await open(files) }
        #expect(damaged?.code == .corrupt)
        let found = try await maintenance(files).verify()
        #expect(!found.isIntact)
        #expect(found.events < 2_000)
        let before = try content(files, "/log")
        let target = URL(filePath: "/salvaged")
        let report = try await maintenance(files).salvage(to: target)
        #expect(try content(files, "/log") == before)
        let lost = try #require(report.lostCount)
        #expect(lost > 0)
        #expect(!report.damage.isEmpty)
        let store = try await open(files, target)
        let numbers = store.view(Steps.self).numbers
        #expect(numbers.count + lost == 2_000)
        let missing = Set(0..<2_000).subtracting(numbers).map { UInt64($0 + 1) }
        #expect(
            missing.allSatisfy { position in
                report.lost.contains { $0.contains(Position(position)) }
            })
        // It can be used like any other log.
        try await store.append(Step(number: 5_000))
        try await store.close()
        let again = await #expect(throws: LogError.self) {
            try await maintenance(files).salvage(to: target)
        }
        #expect(again?.code == .io)
    }

    @Test(.verifies("REP-6"))
    func `a damaged log is repaired in place, and what was replaced is set aside`() async throws {
        let files = try await log(damaged: true)
        let planned = try await maintenance(files).repair(isTrial: true)
        await #expect(throws: LogError.self) { _ = try await open(files) }
        let done = try await maintenance(files).repair()
        #expect(done.lost == planned.lost)
        #expect(done.lostCount == planned.lostCount)
        #expect(try !files.list("/log/quarantine").isEmpty)
        let store = try await open(files)
        #expect(store.view(Steps.self).numbers.count + (done.lostCount ?? 0) == 2_000)
        try await store.close()
    }

    @Test(.verifies("REP-6"))
    func `an open log is neither repaired nor salvaged`() async throws {
        let files = try await log(damaged: false)
        let store = try await open(files)
        let maintenance = try maintenance(files)
        for attempt in 0..<2 {
            let error = await #expect(throws: LogError.self) {
                if attempt == 0 {
                    try await maintenance.repair()
                } else {
                    try await maintenance.salvage(to: URL(filePath: "/copy"))
                }
            }
            #expect(error?.code == .locked)
        }
        #expect(throws: FileError.self) { try files.list("/copy") }
        try await store.close()
    }

    @Test(.verifies("REP-6"))
    func `a cancelled verification ends with an error`() async throws {
        let files = try await log(damaged: false)
        let maintenance = try maintenance(files)
        await expectCancellation { report in
            _ = try await maintenance.verify { _ in report() }
        }
        await expectCancellation { report in
            try await maintenance.salvage(to: URL(filePath: "/copy")) { _ in report() }
        }
        #expect(throws: FileError.self) { try files.list("/copy") }
    }

    @Test(.verifies("REP-6"), arguments: ["a file", "a link", "in the log", "the log"])
    func `a copy replaces no existing file`(target: String) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("log")
        try await EventStore.open(at: log, rules: Self.rules).close()
        let file = try folder.file("file", content: "mine")
        let link = folder.appending("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: log)
        let targets = [
            "a file": file, "a link": link, "in the log": log.appending(path: "copy"),
            "the log": log,
        ]
        let before = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
        let error = await #expect(throws: LogError.self) {
            try await LogMaintenance(at: log, account: "a", rules: Self.rules)
                .salvage(to: try #require(targets[target]))
        }
        #expect(error?.code == .io)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted() == before)
        #expect(try String(contentsOf: file, encoding: .utf8) == "mine")
    }

    @Test func `the log of another account is neither verified nor repaired`() async throws {
        let files = try await log(damaged: true)
        let image = files.image
        let other = try LogMaintenance(
            at: Self.url, account: "b", rules: Self.rules, views: [Steps.self],
            environment: LogEnvironment(fileSystem: files))
        for attempt in [
            { _ = try await other.verify() }, { try await other.repair() },
            { try await other.salvage(to: URL(filePath: "/copy")) },
        ] as [@Sendable () async throws -> Void] {
            let error = await #expect(throws: LogError.self) { try await attempt() }
            #expect(error?.code == .wrongAccount)
        }
        #expect(files.image == image)
    }

    @Test(.verifies("REP-6"))
    func `on a disk, the log's files are copied, too`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("log")
        let store = try await EventStore.open(at: log, rules: Self.rules)
        try await store.append(Step(number: 1))
        try await store.close()
        try FileManager.default.createDirectory(
            at: log.appending(path: "files"), withIntermediateDirectories: true)
        try Data("image".utf8).write(to: log.appending(path: "files/a"))
        try FileManager.default.createSymbolicLink(
            at: log.appending(path: "files/link"), withDestinationURL: folder.appending("log"))
        let report = try await LogMaintenance(at: log, account: "a", rules: Self.rules)
            .salvage(to: folder.appending("copy"))
        #expect(report.lostCount == 0)
        let copied = folder.appending("copy").appending(path: "files/a")
        #expect(try Data(contentsOf: copied) == Data("image".utf8))
        let mode = try FileManager.default.attributesOfItem(atPath: copied.path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        for path in ["copy", "copy/files"] {
            let attributes = try FileManager.default.attributesOfItem(
                atPath: folder.appending(path).path)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
        }
        let names = try FileManager.default.contentsOfDirectory(
            atPath: folder.appending("copy/files").path)
        #expect(names == ["a"])
    }

    @Test(.verifies("REP-1"))
    func `a log whose beginning is overwritten is repaired for its account`()
        async throws
    {
        let files = try await log(damaged: false)
        let segment = "/log/00000000000000000001.lz4"
        let file = try files.open(segment, .readWrite)
        try file.write([UInt8](repeating: 0, count: 20), at: 0)
        try files.removeAll("/log/checkpoints")
        let error = await #expect(throws: LogError.self) { try await open(files) }
        #expect(error?.isDamage == true, "\(error as Any)")
        #expect(error?.localizedDescription.hasPrefix("The log is damaged") == true)
        let remedy = try #require(error?.recoverySuggestion)
        #expect(remedy.contains("salvage"))
        // The way in the app comes before the tool.
        let inApp = try #require(remedy.range(of: "LogMaintenance.repair()"))
        let withTool = try #require(remedy.range(of: "logtool"))
        #expect(inApp.upperBound < withTool.lowerBound)
        try await maintenance(files).repair()
        let store = try await open(files)
        #expect(store.view(Steps.self).numbers == Array(0..<2_000))
        try await store.close()
    }

    @Test func `the last position is that of the last readable event, also after damage`()
        async throws
    {
        let files = try await log(damaged: true)
        let report = try await maintenance(files).verify()
        #expect(report.events > 0)
        #expect(report.events < 2_000)
        #expect(report.last == Position(2_000))
        #expect(report.damage.contains { $0.offset != nil })
    }
}
