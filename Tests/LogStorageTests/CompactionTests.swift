// Removing lines from sealed segments: kept lines are readable, removed ids are recorded, and any
// interruption leaves the old segment or the new one.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct CompactionTests {
    private static let file = TestLog.path + "/compaction.new"

    /// One commit's lines: mostly small, now and then more than a block.
    private func paddings(_ choices: inout Choices) -> [Int] {
        switch choices.int(in: 0...12) {
        case 12: choices.array(1...6) { $0.int(in: 0...30_000) }
        case 11: [choices.int(in: 60_000...70_000)]
        default: choices.array(1...8) { $0.int(in: 0...300) }
        }
    }

    /// The lines to remove: none, all, a range, or a random part.
    private func removal(_ choices: inout Choices, _ next: UInt64) -> (UInt64) -> Bool {
        let seed = choices.bits()
        switch choices.int(in: 0...5) {
        case 0: return { _ in false }
        case 1: return { _ in true }
        case 2:
            let from = choices.next(below: next)
            let to = from + choices.next(below: next)
            return { (from...to).contains($0) }
        default:
            let oneIn = choices.next(below: 6) + 1
            return { position in
                var random = SeededRandom(seed: seed ^ position)
                return random.next() % oneIn == 0
            }
        }
    }

    @Test(.verifies("CMP-20", "CMP-21", "CMP-22", "CMP-25", "LINE-3", "SEG-5", "SEG-8"))
    func `kept lines stay and removed ids are recorded, over compactions, appends and reopening`()
        throws
    {
        try Property.check("compaction", runs: TestLog.isDebug ? 40 : 400) { choices in
            var model = CompactionModel()
            var log = try model.open()
            for _ in 0..<choices.int(in: 1...16) {
                switch choices.int(in: 0...9) {
                case 9:
                    choices.note("reopen")
                    try log.close()
                    log = try model.open()
                case 8:
                    let days = choices.int(in: 0...100)
                    choices.note("\(days) days pass")
                    model.clock.advance(by: .days(Double(days)))
                case 6, 7:
                    let removal = removal(&choices, model.next)
                    choices.note("compact")
                    try log.roll()
                    try model.compact(log, removing: removal)
                    try model.check(log)
                case 5:
                    choices.note("roll")
                    try log.roll()
                default:
                    let paddings = paddings(&choices)
                    choices.note("append \(paddings)")
                    try model.append(to: log, paddings: paddings)
                }
            }
            try model.check(log)
            try log.close()
            try model.check()
            try model.check(model.open())
        }
    }

    /// A log of two sealed segments and a live one.
    private func make() throws -> (CompactionModel, Log) {
        var model = CompactionModel()
        let log = try model.open()
        for _ in 0..<2 {
            for paddings in [[0, 10, 0], [70_000], [5, 5, 5, 5]] {
                try model.append(to: log, paddings: paddings)
            }
            try log.roll()
        }
        try model.append(to: log, paddings: [3])
        return (model, log)
    }

    private func memory(_ model: CompactionModel) throws -> InMemoryFileSystem {
        try #require(model.files as? InMemoryFileSystem)
    }

    @Test(.verifies("CMP-21", "SEG-5"))
    func `a compacted segment keeps its header and range, and says which states cannot be rebuilt`()
        throws
    {
        var (model, log) = try make()
        let files = try memory(model)
        let paths = TestLog.segments(files)
        let before = files.image
        #expect(try log.compactedThrough() == .zero)
        try model.compact(log) { $0 == 8 || $0 == 10 }
        #expect(files.image[paths[0]] != before[paths[0]])
        for path in paths {
            #expect(files.image[path]?.prefix(512) == before[path]?.prefix(512))
        }
        #expect(files.image[paths[2]] == before[paths[2]])
        #expect(try log.compactedThrough() == Position(17))
        let segments = try log.sealedSegments()
        #expect(segments.map(\.footer.coveredThrough) == [Position(8), Position(16)])
        #expect(segments[0].footer.lines == Position(1)...Position(7))
        #expect(segments[1].footer.lines == Position(9)...Position(16))
        #expect(segments.map(\.footer.eventCount) == [7, 7])
        let first = model.lines.filter { $0.key <= 8 }.values
        let bytes = first.reduce(0) { $0 + $1.count + 1 }
        #expect(segments[0].footer.plaintextBytes == UInt64(bytes))
        try model.check(log)
        // The position of an earlier compaction is kept if it is later.
        _ = try CompactionModel.compact(log, horizon: Position(4)) { $0 == 1 }
        #expect(try log.sealedSegments()[0].footer.compaction?.through == Position(17))
    }

    @Test(.verifies("CMP-20"))
    func `a segment without lines to remove is not rewritten, nor is the live one`() throws {
        let (model, log) = try make()
        let files = try memory(model)
        let before = files.image
        let results = try CompactionModel.compact(log) { $0 > 16 }
        #expect(results.map(\.isRewritten) == [false, false])
        #expect(results.allSatisfy { $0.bytesBefore == $0.bytesAfter })
        let isUnchanged = files.image == before
        #expect(isUnchanged)
        #expect(try log.compactedThrough() == .zero)
    }

    @Test(.verifies("CMP-21", "SEG-5", "SEG-8"))
    func `an emptied segment at the end of a log keeps its positions from being used again`()
        throws
    {
        var model = CompactionModel()
        var log = try model.open()
        try model.append(to: log, paddings: [0, 0, 0])
        try log.roll()
        try model.compact(log) { _ in true }
        try model.check(log)
        try log.close()
        try model.check()
        log = try model.open()
        try model.check(log)
        try model.append(to: log, paddings: [0])
        #expect(model.lines.keys.sorted() == [4])
        try log.close()
        try model.check(model.open())
    }

    @Test(.verifies("CMP-22", "CMP-25"))
    func `lists of removed ids are carried over until they are 90 days old, then dropped`() throws {
        var (model, log) = try make()
        try model.compact(log) { $0 == 1 }
        let first = try log.sealedSegments()[0].footer.compaction?.removedIDBytes
        #expect(first == RemovedIDs.encodedBytes(count: 1))
        model.clock.advance(by: .days(60))
        try model.compact(log) { $0 == 2 }
        let both = try log.sealedSegments()[0].footer.compaction
        #expect(both?.removedIDBytes == 2 * RemovedIDs.encodedBytes(count: 1))
        try model.check(log)
        model.clock.advance(by: .days(30) - .milliseconds(1))
        #expect(try log.removed(id: TestLog.id(1)) != nil)
        model.clock.advance(by: .milliseconds(1))
        // The id has expired, although the list is still stored.
        #expect(try log.removed(id: TestLog.id(1)) == nil)
        #expect(try log.removed(id: TestLog.id(2)) != nil)
        // Only the expired list is removed.
        try model.compact(log) { _ in false }
        let left = try log.sealedSegments()[0].footer.compaction
        #expect(left?.removedIDBytes == RemovedIDs.encodedBytes(count: 1))
        #expect(left?.through == both?.through)
        try model.check(log)
        try log.close()
        try model.check(model.open())
    }

    @Test(.verifies("CMP-23"))
    func `a compaction that is cancelled leaves everything as it was`() throws {
        let (model, log) = try make()
        let files = try memory(model)
        let before = files.image
        var asked = 0
        _ = try CompactionModel.compact(
            log,
            isCancelled: {
                asked += 1; return false
            }
        ) { _ in
            false
        }
        #expect(asked > 4)
        for number in 0..<40 {
            var count = 0
            let isCancelled = { () -> Bool in
                defer { count += 1 }
                return count >= number
            }
            do {
                try CompactionModel.compact(log, isCancelled: isCancelled) { $0 % 2 == 0 }
                #expect(number > asked)
                break
            } catch is CancellationError {
                let after = files.image
                #expect(after[Self.file] == nil)
                // The first segment may be done when the second is cancelled.
                let isFirstDone =
                    after[TestLog.segments(files)[0]] != before[TestLog.segments(files)[0]]
                let isUnchanged = after == before
                #expect(isFirstDone || isUnchanged)
            }
        }
    }

    @Test(.verifies("CMP-23"))
    func `a full disk, or any failed operation, leaves the old segment or the new one`() throws {
        let (model, _) = try make()
        let image = try memory(model)
        for number in 0..<200 {
            for code in [FileError.Code.io, .noSpace] {
                var copy = CompactionModel(files: image.snapshot())
                copy.lines = model.lines
                copy.next = model.next
                let files = try memory(copy)
                let log = try copy.open()
                let counter = OperationCounter(failingAt: number, code: code)
                files.failing { counter.error($0, $1) }
                var failure: LogError?
                var done = 0
                do {
                    for segment in try log.sealedSegments() {
                        _ = try log.compact(
                            segment, horizon: Position(16), isCancelled: { false }
                        ) { prefix, _, _ in
                            prefix.position.rawValue % 2 == 0
                                ? .remove(CompactionModel.hashes(prefix.position.rawValue)) : .keep
                        }
                        done += 1
                    }
                } catch let error as LogError { failure = error }
                files.failing(nil)
                guard let failure else {
                    #expect(number > 20)
                    #expect(done == 2)
                    return
                }
                #expect([.io, .diskFull].contains(failure.code), "\(number): \(failure)")
                // The footers show which segments are new.
                for segment in try log.sealedSegments() where segment.footer.isCompacted {
                    let base = segment.header.base.rawValue
                    for position in base...segment.footer.coveredThrough.rawValue
                    where position % 2 == 0 {
                        copy.lines[position] = nil
                        copy.removed[position] = copy.clock.milliseconds
                    }
                }
                try copy.check(log)
                // The log accepts further work.
                try copy.append(to: log, paddings: [0])
                try copy.compact(log) { $0 == 5 }
                #expect(files[Self.file] == nil)
                try copy.check(log)
                try log.close()
                #expect(files.openFileCount == 0)
                try copy.check(copy.open())
            }
        }
        Issue.record("more operations than expected")
    }

    @Test(.verifies("CMP-23"))
    func `a file that an interrupted compaction left is removed by the next opening`() throws {
        let (model, log) = try make()
        try log.close()
        let files = try memory(model)
        files[Self.file] = [1, 2, 3]
        try model.check()
        let again = try model.open()
        #expect(files[Self.file] == nil)
        try model.check(again)
    }

    @Test(.verifies("CMP-21"))
    func `a compacted file that differs when read back never replaces the segment`() throws {
        let (model, log) = try make()
        let files = try memory(model)
        let before = files.image
        // The medium damages the new file.
        var spoils = [4, 600 * 8, 640 * 8 + 3].map { bit in
            { @Sendable (files: InMemoryFileSystem, path: String) in files.flip(bit: bit, of: path)
            }
        }
        // Another intact segment, as after misdirected writes.
        let old = try #require(TestLog.segments(files).first)
        spoils.append { files, path in files[path] = files[old] }
        for spoil in spoils {
            let spoilt = Spoiling(files, spoil)
            var environment = model.environment()
            environment.fileSystem = spoilt
            try log.close()
            let log = try Log(at: TestLog.path, environment: environment)
            #expect(throws: LogError.self) {
                try CompactionModel.compact(log) { $0 == 2 }
            }
            #expect(files[Self.file] == nil)
            for path in TestLog.segments(files).dropLast() {
                #expect(files.image[path] == before[path])
            }
            try log.close()
        }
    }
}

/// Flips a bit of a compacted segment before it is read back.
private final class Spoiling: ForwardingFileSystem {
    var base: any FileSystem { files }
    private let files: InMemoryFileSystem
    private let spoil: @Sendable (InMemoryFileSystem, String) -> Void

    init(
        _ files: InMemoryFileSystem,
        _ spoil: @escaping @Sendable (InMemoryFileSystem, String) -> Void
    ) {
        self.files = files
        self.spoil = spoil
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        if path.hasSuffix("/compaction.new"), mode == .read { spoil(files, path) }
        return try files.open(path, mode)
    }
}
