// A report on a log for a support mail has what helps, and nothing of what events contain.
// Spec/operations/diagnostics.md.

import Daybook
import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// An event whose every text is private.
private struct Diary: EventPayload, Codable {
    static let type = "com.example.diary"
    var text: String
    var subject: String? { "canary-subject-\(text)" }
    var lane: String? { "canary-lane-\(text)" }
}

private struct Entries: Projection, Codable {
    static let name = "entries"
    static let version = 1
    private(set) var texts: [String] = []
    mutating func fold(_ event: Event) {
        if let entry = try? event.payload(as: Diary.self) { texts.append(entry.text) }
    }
}

@Suite struct DiagnosticReportTests {
    private static let rules: [EventRule] = [.of(Diary.self, action: "WRITE_DIARY")]
    private static let account = "canary-account"

    private func open(_ files: any FileSystem, at path: String = "/log") async throws -> EventStore
    {
        try await EventStore.open(
            at: URL(filePath: path), account: Self.account, rules: Self.rules,
            views: [Entries.self], environment: LogEnvironment(fileSystem: files))
    }

    /// Records entries, of which the server rejects one and has a newer form of another.
    private func record(in store: EventStore) async throws {
        for number in 0..<20 { try await store.append(Diary(text: "canary-text-\(number)")) }
        let server = InMemorySyncServer { draft in
            draft.subject?.hasSuffix("-3") == true
                ? Verdict(
                    id: draft.id, status: .rejected, code: "too_private", detail: "canary-detail")
                : draft.subject?.hasSuffix("-4") == true
                    ? Verdict(id: draft.id, status: .rejected, code: "Canary code") : nil
        }
        try await store.sync(over: server, credentials: BearerToken("canary-token"))
        try await store.append(Diary(text: "canary-last"))
    }

    @Test(.verifies("DIA-1", "DIA-2"))
    func `nothing that a user, a server or a token holds is in the report`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.path + "/canary-folder"
        let store = try await open(POSIXFileSystem(), at: path)
        try await record(in: store)
        try Data("canary-file".utf8).write(to: URL(filePath: path + "/canary-file.txt"))
        let report = try await store.diagnosticReport()
        let text = String(decoding: try report.json(), as: UTF8.self)
        #expect(!text.lowercased().contains("canary"))
        #expect(text.contains("com.example.diary"))
        #expect(text.contains("WRITE_DIARY"))
        #expect(text.contains("too_private"))
        #expect(report.findings.map(\.code).contains(.otherFiles))
        try await store.close()
    }

    @Test(.verifies("DIA-1"))
    func `the report counts events and actions, and says how the store syncs`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await record(in: store)
        let report = try await store.diagnosticReport()
        let statistics = try await store.statistics()
        let log = try #require(report.log)
        #expect(log.id == store.logID)
        #expect(log.events == statistics.events)
        #expect(log.types[Diary.type] == 21)
        #expect(log.isOpen)
        #expect(log.accountDigest?.count == 16)
        let outbox = try #require(report.outbox)
        #expect(outbox.pending == 1)
        #expect(outbox.parked == 2)
        #expect(outbox.inConflict == 0)
        #expect(outbox.actions == ["WRITE_DIARY": 3])
        #expect(outbox.held.map(\.code) == ["too_private", nil])
        #expect(report.sync?.connection == "inactive")
        #expect(report.sync?.lastExchange != nil)
        #expect(report.damage.isEmpty)
        #expect(report.findings.map(\.code) == [.parked])
        try await store.close()
    }

    @Test func `a report that was written can be read again`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await record(in: store)
        let report = try await store.diagnosticReport()
        let again = try DiagnosticReport(json: try report.json())
        #expect(try again.json() == report.json())
        #expect(again.outbox?.held.count == 2)
        #expect(again.log?.id == report.log?.id)
        try await store.close()
    }

    @Test(.verifies("DIA-3"))
    func `a damaged log has a report that says where`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        for number in 0..<3_000 {
            try await store.append(Diary(text: "canary-\(number)"), durability: .relaxed)
            if number % 100 == 0 { try await store.flush() }
        }
        try await store.close()
        let segment = try #require(files.list("/log").first { $0.hasSuffix(".lz4") })
        let file = try files.open("/log/" + segment, .readWrite)
        let middle = try file.size() / 2
        let byte = try file.read(at: middle, count: 1)
        try file.write([byte[0] ^ 0xFF], at: middle)
        let report = try await LogMaintenance(
            at: URL(filePath: "/log"), account: Self.account, rules: Self.rules,
            views: [Entries.self], environment: LogEnvironment(fileSystem: files)
        ).diagnosticReport()
        #expect(report.damage.first?.file == segment)
        #expect(report.log == nil)
        #expect(report.findings.first?.code == .damaged)
        let text = String(decoding: try report.json(), as: UTF8.self)
        #expect(!text.contains("canary"))
    }

    @Test(.verifies("DIA-4"))
    func `an event that waits for more than a day is a finding`() async throws {
        let clock = VirtualClock()
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), rules: Self.rules,
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        try await store.append(Diary(text: "one"))
        #expect(try await store.diagnosticReport().findings.isEmpty)
        clock.advance(by: .seconds(90_000))
        let finding = try #require(try await store.diagnosticReport().findings.first)
        #expect(finding.code == .notSent)
        #expect(finding.detail.contains("nothing was ever exchanged"))
        try await store.close()
    }

    @Test(.verifies("DIA-4"))
    func `a file that others may read is a finding`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await open(POSIXFileSystem(), at: folder.log)
        try await store.append(Diary(text: "one"))
        #expect(try await store.diagnosticReport().findings.isEmpty)
        let segment = try #require(
            FileManager.default.contentsOfDirectory(atPath: folder.log)
                .first { $0.hasSuffix(".lz4") })
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: folder.log + "/" + segment)
        #expect(try await store.diagnosticReport().findings.map(\.code) == [.permissions])
        try await store.close()
    }

    @Test(.verifies("DIA-4"))
    func `the page names every member and every finding`() async throws {
        let page = try String(
            contentsOf: URL(filePath: "Spec/operations/diagnostics.md"), encoding: .utf8)
        for code in DiagnosticReport.Finding.Code.allCases {
            #expect(page.contains("`\(code.rawValue)`"))
        }
        let store = try await open(InMemoryFileSystem())
        try await record(in: store)
        let report = try await store.diagnosticReport()
        let object = try JSONSerialization.jsonObject(with: report.json())
        func names(_ value: Any) -> Set<String> {
            if let list = value as? [Any] {
                return list.reduce(into: []) { $0.formUnion(names($1)) }
            }
            guard let object = value as? [String: Any] else { return [] }
            return object.reduce(into: []) { all, member in
                all.insert(member.key)
                // The members of these are names of types, actions and files.
                if !["types", "actions", "checkpoints"].contains(member.key) {
                    all.formUnion(names(member.value))
                }
            }
        }
        for name in names(object) { #expect(page.contains("`\(name)`"), "\(name)") }
        try await store.close()
    }
}
