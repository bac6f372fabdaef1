// The results of long operations as they are printed: a line for people, and no dump.

import Daybook
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct DescriptionTests {
    private let files = InMemoryFileSystem()

    @Test func `a report of syncing prints its numbers and why it waits`() {
        var report = SyncReport()
        #expect("\(report)" == "0 applied, 0 pending")
        (report.applied, report.rejected, report.pending, report.held) = (12, 1, 3, 2)
        report.message = "no network"
        #expect("\(report)" == "12 applied, 1 parked, 3 pending (2 held); no network")
    }

    @Test func `a story prints the event with its base and its state, then the steps`()
        async throws
    {
        let store = try await HikeLog.write(files)
        let base = try await store.append(Hike(path: "lake"))
        var draft = try EventDraft(Hike(path: "forest"))
        draft.baseID = base.id
        #expect("\(draft)".contains(" forest (based on \(base.id.text)) {"))
        let hike = try await store.append(draft)
        try await store.record(.parked, of: hike, code: "too_long")
        let story = try #require(try await store.story(of: hike.id))
        let lines = "\(story)".split(separator: "\n").map(String.init)
        let event = "event \(hike.id.text) at position 2, com.example.hike forest"
        let state = "it is parked until it is retried or discarded"
        #expect(lines.first == "\(event), based on \(base.id.text): \(state)")
        #expect(lines.dropFirst().map { $0.hasPrefix("position 3: ") } == [true])
        try await store.close()
    }

    @Test func `statistics print events, bytes and what is not synced`() async throws {
        let store = try await HikeLog.write(files)
        try await store.appendHikes(3)
        let statistics = try await store.statistics()
        #expect(
            "\(statistics)" == "3 events, positions 1 to 3; \(statistics.diskBytes) bytes in "
                + "1 segment; 3 not synced")
        try await store.close()
    }

    @Test func `summaries of exports, imports and compactions print their numbers`() {
        var export = ExportSummary()
        (export.events, export.bytes) = (2, 100)
        (export.first, export.last) = (Position(3), Position(4))
        #expect("\(export)" == "2 events, 100 bytes, positions 3 to 4")
        var imported = ImportSummary()
        (imported.appended, imported.known, imported.records) = (1, 2, 1)
        (imported.lines, imported.bytes) = (4, 200)
        #expect(
            "\(imported)" == "1 event recorded, 2 already in the log, 1 record of syncing "
                + "skipped; 4 lines, 200 bytes")
        var compaction = CompactionReport()
        compaction.types = [.init(type: Hike.type)]
        compaction.types[0].events = 9
        compaction.types[0].removed = 4
        (compaction.segments, compaction.segmentsRewritten) = (2, 1)
        (compaction.bytesBefore, compaction.bytesAfter) = (900, 500)
        #expect(
            "\(compaction)" == "4 of 9 events removed, 1 of 2 segments rewritten; 900 bytes "
                + "before, 500 afterwards")
    }
}
