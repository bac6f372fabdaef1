// Damage in compacted segments, where holes between positions are legal: every flipped bit, every truncation
// and every removed part is still detected.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct CompactionDamageTests {
    /// Three compacted segments: one with holes, one without lines, one with a hole at its end. With
    /// `isOpen` a live one follows; without, the last one ends the log.
    private func make(isOpen: Bool) throws -> CompactionModel {
        var model = CompactionModel()
        let log = try model.open()
        for paddings in [[0, 3], [0, 9], [0, 5, 1]] {
            for _ in 0..<2 { try model.append(to: log, paddings: paddings) }
            try log.roll()
        }
        try model.compact(log) { ($0 > 4 && $0 < 9) || $0 % 2 == 0 }
        if isOpen { try model.append(to: log, paddings: [0]) }
        try log.close()
        try model.check()
        return model
    }

    private func memory(_ model: CompactionModel) throws -> InMemoryFileSystem {
        try #require(model.files as? InMemoryFileSystem)
    }

    /// Fails unless the verifier detects the damage and no reader or lookup gives a wrong result.
    private func expectNoticed(
        _ files: InMemoryFileSystem, _ model: CompactionModel, _ what: String
    ) throws {
        let findings: Int
        do {
            findings = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }
                .findings.count
        } catch is LogError {
            findings = 1
        }
        try #require(findings > 0, "\(what): the verifier likes it")
        let expected = model.lines.sorted { $0.key < $1.key }.map(\.value)
        if let read = try? TestLog.read(files) {
            let isRight = read == expected
            try #require(isRight, "\(what): a reader gives other lines")
        }
        var damaged = CompactionModel(files: files)
        damaged.next = model.next
        guard let log = try? damaged.open() else { return }
        try #require(log.next.rawValue == model.next, "\(what): positions are used again")
        try #require(log.recovery.tornTail == nil, "\(what): taken for a torn tail")
        for position in 1..<model.next {
            let id = TestLog.id(position)
            do {
                let line = try log.line(id: id)
                let removed = try log.removed(id: id)
                let isNew = line == nil && removed == nil
                try #require(!isNew, "\(what): \(position) is not known any more")
                try #require(line.map { $0.bytes == model.lines[position] } ?? true, "\(what)")
                if let removed {
                    try #require(removed.position.rawValue == position, "\(what)")
                    try #require(removed.hashes == CompactionModel.hashes(position), "\(what)")
                }
            } catch is LogError {}
        }
        try? log.close()
    }

    @Test(.verifies("CMP-22", "REC-3", "REC-7", "SEG-5", "SEG-8"), arguments: [true, false])
    func `every flipped bit of a compacted segment is noticed`(isOpen: Bool) throws {
        let model = try make(isOpen: isOpen)
        let image = try memory(model)
        for path in TestLog.segments(image).prefix(3) {
            let bytes = try #require(image[path])
            for bit in stride(from: 0, to: bytes.count * 8, by: TestLog.isDebug ? 11 : 1) {
                let files = image.snapshot()
                files.flip(bit: bit, of: path)
                try expectNoticed(files, model, "bit \(bit) of \(path)")
            }
        }
    }

    @Test(.verifies("SEG-8"))
    func `a flipped byte in a list of removed ids is one finding`() throws {
        let image = try memory(try make(isOpen: true))
        let path = try #require(TestLog.segments(image).first)
        let footer = try #require(try SegmentFooter.read(atEndOf: image.open(path, .read)))
        let lists = try #require(footer.footer.compaction).removedIDBytes
        let content = (footer.start - lists + SkippableFrame.prefixBytes)..<footer.start
        for offset in stride(from: content.lowerBound, to: content.upperBound, by: 9) {
            let damaged = image.snapshot()
            damaged.flip(bit: offset * 8, of: path)
            let findings = try LogVerifier(TestLog.path, fileSystem: damaged)
                .verify { _, _ in nil }.findings
            try #require(findings.count == 1, "byte \(offset): \(findings)")
        }
    }

    @Test(.verifies("REC-3", "SEG-5", "SEG-8"), arguments: [true, false])
    func `a part that is missing from a compacted segment, or zeroed, is noticed`(
        isOpen: Bool
    ) throws {
        let model = try make(isOpen: isOpen)
        let image = try memory(model)
        for path in TestLog.segments(image).prefix(3) {
            let bytes = try #require(image[path])
            let file = try image.open(path, .read)
            let footer = try #require(try SegmentFooter.read(atEndOf: file))
            let lists = footer.start - (footer.footer.compaction?.removedIDBytes ?? 0)
            let parts = [
                512..<lists, lists..<footer.start, footer.start..<bytes.count,
                lists..<bytes.count, 512..<bytes.count,
            ]
            for part in parts where !part.isEmpty {
                let without = image.snapshot()
                without[path]?.removeSubrange(part)
                try expectNoticed(without, model, "\(path) without \(part)")
                let zeroed = image.snapshot()
                zeroed[path]?.replaceSubrange(part, with: repeatElement(0, count: part.count))
                try expectNoticed(zeroed, model, "\(path) with zeros in \(part)")
            }
            // A truncated last segment may look like a torn one: recovery.md, REC-5.
            guard isOpen || path != TestLog.segments(image).last else { continue }
            for length in stride(from: 0, to: bytes.count, by: TestLog.isDebug ? 7 : 1) {
                let files = image.snapshot()
                files[path] = Array(bytes[..<length])
                try expectNoticed(files, model, "\(path) cut to \(length)")
            }
        }
    }

    @Test(.verifies("SEG-8"))
    func `a compacted segment never has a size that could end in preallocated space`() throws {
        // Without the padding list, some of these would have such a size.
        var hits = 0
        for padding in 3_140..<3_190 {
            var model = CompactionModel()
            let log = try model.open()
            try model.append(to: log, paddings: [padding, 0])
            try log.roll()
            try model.compact(log) { $0 == 2 }
            let segment = try log.sealedSegments()[0]
            let size = try segment.file.size()
            #expect(size % FormatLimit.growthGranularityBytes != 0)
            let lists = segment.footer.compaction?.removedIDBytes ?? 0
            if lists == RemovedIDs.encodedBytes(count: 1) + RemovedIDs.encodedBytes(count: 0) {
                hits += 1
                try model.check(log)
                // The padding list never expires: a compaction with nothing to remove leaves the file.
                let files = try #require(model.files as? InMemoryFileSystem)
                let path = try #require(TestLog.segments(files).first)
                let bytes = files[path]
                try model.compact(log) { _ in false }
                #expect(files[path] == bytes)
            }
        }
        #expect(hits > 0)
    }

    @Test(.verifies("SEG-8"))
    func `removed ids in a segment that is not compacted, or before a frame, are damage`() throws {
        var test = TestLog()
        let log = try test.open()
        try test.append(to: log, paddings: [0])
        try log.roll()
        let path = try #require(TestLog.segments(test.files).first)
        let list = RemovedIDs.encode([], base: Position(1), removedAt: 0)
        let files = test.files.snapshot()
        files[path]?.insert(contentsOf: list, at: 512)
        #expect(throws: LogError.self) { try TestLog.read(files) }
        let behind = test.files.snapshot()
        let bytes = try #require(behind[path])
        let length = SegmentFooter.length(atEnd: bytes.span.bytes)
        behind[path]?.insert(contentsOf: list, at: bytes.count - (try #require(length)))
        #expect(throws: LogError.self) { try TestLog.read(behind) }

        let model = try make(isOpen: false)
        let compacted = try memory(model)
        let first = try #require(TestLog.segments(compacted).first)
        compacted[first]?.insert(contentsOf: list, at: 512)
        #expect(throws: LogError.self) { try TestLog.read(compacted) }
        let summary = try LogVerifier(TestLog.path, fileSystem: compacted).verify { _, _ in nil }
        #expect(summary.findings.first?.segment == "00000000000000000001.lz4")
    }
}
