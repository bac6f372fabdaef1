// logtool repair on copies of the damaged logs of Spec/vectors, and on a folder with an unreadable lock.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage
import TestSupport
import Testing

@Suite struct RepairToolTests {
    /// A copy of a vector's log.
    private func vector(_ name: String) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let source = Tool.root.appending(path: "Spec/vectors/\(name)")
        let log = URL(filePath: folder.log)
        try FileManager.default.createDirectory(at: log, withIntermediateDirectories: false)
        for file in try FileManager.default.contentsOfDirectory(atPath: source.path)
        where file.hasSuffix(".lz4") {
            try FileManager.default.copyItem(
                at: source.appending(path: file), to: log.appending(path: file))
        }
        return folder
    }

    @Test(
        .verifies("TOOL-11", "REP-4"),
        arguments: [
            ("damaged", 5), ("damaged-live", 1), ("cut", 4), ("missing-block", 160),
            ("missing-frame", 6), ("compacted-damaged", 4),
        ])
    func `a damaged log is planned, repaired, verified and appended to`(
        name: String, events: Int
    ) throws {
        let folder = try vector(name)
        defer { folder.remove() }
        let verified = try ToolRun.logtool("verify", folder.log)
        #expect(verified.status == 1)
        let kept = "\(events) event\(events == 1 ? "" : "s") kept; "
        #expect(verified.messages.contains("after a repair: " + kept))
        let before = try folder.image()
        let plan = try ToolRun.logtool("repair", folder.log)
        #expect(plan.status == 1)
        #expect(plan.messages.contains(kept))
        #expect(try folder.image() == before)

        let repaired = try ToolRun.logtool("repair", folder.log, "--yes")
        #expect(repaired.status == 0, "\(repaired.messages)")
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        let copies = try folder.image().filter { $0.key.hasSuffix(".damaged") }
        #expect(!copies.isEmpty)
        for (name, bytes) in copies {
            let original = name.dropFirst("quarantine/".count).dropLast(".damaged".count)
            #expect(before[String(original)] == bytes)
        }
        let summary = try ToolRun.logtool("inspect", folder.log)
        #expect(summary.output.contains("\"events\":\(events),"))

        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        #expect(try ToolRun.logtool("repair", folder.log).status == 0)
    }

    @Test(.verifies("TOOL-11", "CHK-6"))
    func `a stored state that differs from a rebuild is quarantined`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: URL(filePath: folder.log))
        try await store.notes.add("first", city: "c", by: "u")
        try await store.events.checkpoint()
        try await store.close()
        let slots = CheckpointSlots(folder.log, fileSystem: POSIXFileSystem())
        guard case .checkpoint(var wrong)? = slots.contents().first?.content else {
            throw POSIXError(.ENOENT)
        }
        let index = try #require(wrong.states.firstIndex { $0.name == "notes" })
        wrong.states[index].bytes = [0]
        for _ in 0..<2 { try slots.write(wrong) }
        #expect(try ToolRun.logtool("verify", folder.log).status == 1)
        #expect(try ToolRun.logtool("repair", folder.log).status == 1)
        #expect(try ToolRun.logtool("repair", folder.log, "--yes").status == 0)
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        #expect(try ToolRun.logtool("repair", folder.log).status == 0)
        let views = try ToolRun.logtool("views", folder.log, "notes")
        #expect(views.output.contains("first"))
    }

    @Test(.verifies("TOOL-11", "TOOL-2"))
    func `a sound log needs no repair, a newer one is refused`() throws {
        for name in ["closed", "torn", "rolled", "unfinished"] {
            let folder = try vector(name)
            defer { folder.remove() }
            let before = try folder.image()
            let run = try ToolRun.logtool("repair", folder.log)
            #expect(run.status == 0)
            #expect(run.output.isEmpty)
            #expect(try folder.image() == before)
        }
        let newer = try vector("newer-version")
        defer { newer.remove() }
        #expect(try ToolRun.logtool("repair", newer.log, "--yes").status == 65)
        #expect(try ToolRun.logtool("repair", "/nowhere/at-all").status == 66)
    }

    @Test(.verifies("REP-3", "TOOL-11"))
    func `unreadable files are quarantined, and nothing is followed or deleted`() throws {
        let folder = try vector("closed")
        defer { folder.remove() }
        let outside = try folder.file("outside", content: "not yours")
        let files = FileManager.default
        try files.createDirectory(
            atPath: folder.log + "/lock", withIntermediateDirectories: false)
        try files.createSymbolicLink(
            atPath: folder.log + "/rewrite", withDestinationPath: outside.path)
        try files.createSymbolicLink(
            atPath: folder.log + "/00000000000000000099.lz4", withDestinationPath: outside.path)
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 74)
        let verified = try ToolRun.logtool("verify", folder.log)
        #expect(verified.status == 1)
        for name in ["lock", "rewrite", "00000000000000000099.lz4"] {
            #expect(verified.output.contains("\"segment\":\"\(name)\""))
        }
        #expect(verified.messages.contains("8 events in 1 segments, 3 findings"))
        #expect(try ToolRun.logtool("repair", folder.log).status == 1)
        let run = try ToolRun.logtool("repair", folder.log, "--yes")
        #expect(run.status == 0, "\(run.messages)")
        #expect(
            try files.contentsOfDirectory(atPath: folder.log + "/quarantine").sorted() == [
                "00000000000000000099.lz4.damaged", "lock.damaged", "rewrite.damaged",
            ])
        #expect(try String(contentsOf: outside, encoding: .utf8) == "not yours")
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
        #expect(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
    }

    @Test(.verifies("TOOL-3", "TOOL-11"))
    func `a log with a writer is neither repaired nor planned`() throws {
        let folder = try vector("closed")
        defer { folder.remove() }
        let writer = try RunningImport(into: folder.log)
        #expect(try ToolRun.logtool("repair", folder.log).status == 75)
        #expect(try ToolRun.logtool("repair", folder.log, "--yes").status == 75)
        #expect(try writer.finish() == 0)
        #expect(try ToolRun.logtool("repair", folder.log).status == 0)
    }
}
