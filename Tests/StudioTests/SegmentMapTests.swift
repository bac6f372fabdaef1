// The ranges of a segment's file, and the location of events in it.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@testable import Studio

@Suite(.verifies("STU-12")) struct SegmentMapTests {
    /// Expects that the ranges of each segment cover its file, and returns their kinds.
    private func kinds(_ directory: String) throws -> [[String]] {
        let names = try LogDirectory.segments(of: directory, POSIXFileSystem())
        return try names.enumerated().map { number, name in
            let map = try SegmentMap(name, in: LogFolder(directory))
            let size = try Data(contentsOf: URL(filePath: directory + "/" + name)).count
            #expect(map.fileBytes == size)
            let ranges = map.ranges(mayBeTorn: number == names.count - 1)
            var end = 0
            for range in ranges {
                #expect(range.offset == end, "\(range)")
                #expect(range.bytes > 0, "\(range)")
                end = range.offset + range.bytes
            }
            #expect(end == size, "\(ranges)")
            return ranges.map(\.kind)
        }
    }

    /// Expects that the location of each event holds its line.
    private func checkPlaces(_ directory: String) throws {
        var count = 0
        try LogReader(directory).forEachLine { prefix, line in
            let place = try #require(
                try SegmentMap.place(of: prefix.position, in: LogFolder(directory)))
            var scanner = SegmentScanner(
                try POSIXFileSystem().open(directory + "/" + place.segment, .read),
                at: place.frame.offset, expecting: place.frame.first, allowsHoles: true)
            let bytes = line.array
            var found: [UInt8]?
            while case .commit(let commit) = try scanner.next() {
                guard commit.offset == place.block.offset else { continue }
                let end = place.lineOffset + place.lineBytes
                found = Array(scanner.plaintext[place.lineOffset..<end])
                break
            }
            #expect(found == bytes)
            #expect(place.block.positions.contains(prefix.position))
            #expect(place.frame.blocks[place.blockNumber].offset == place.block.offset)
            count += 1
            return true
        }
        #expect(count > 0)
    }

    @Test func `a sealed, a live and a closed segment are covered without gaps`() throws {
        let events = try Histories.rich()
        let log = try SampleLog(Array(events[..<120]))
        defer { log.remove() }
        try log.roll()
        try log.append(events[120...])
        let live = try kinds(log.directory)
        #expect(live[0].first == "header")
        #expect(live[0].last == "footer")
        #expect(live[0].count { $0 == "frame" } > 1)
        #expect(live[1].last == "preallocated")
        #expect(SegmentMap.isOpenEnded(LogFolder(log.directory)))
        try checkPlaces(log.directory)
        try log.close()
        let closed = try kinds(log.directory)
        #expect(closed[0] == live[0])
        #expect(closed[1].last == "marker")
        #expect(!SegmentMap.isOpenEnded(LogFolder(log.directory)))
        try checkPlaces(log.directory)
    }

    @Test func `a compacted segment has its removed ids`() async throws {
        let log = try await CompactedLog()
        defer { log.folder.remove() }
        let kinds = try kinds(log.directory)
        #expect(kinds[0].suffix(2) == ["removedIDs", "footer"])
        try checkPlaces(log.directory)
        let through = try LogReader(log.directory).compactedThrough()
        let files = try API(reading: log.directory).json("files")
        let first = try #require(files["segments"]?.list.first)
        #expect(first["compactedThrough"]?.int == Int(through.rawValue))
        #expect(first["sealed"] == .bool(true))
        // A removed event has no location.
        let removed = try #require(
            try (1...28).first { number in
                try SegmentMap.place(of: Position(UInt64(number)), in: LogFolder(log.directory))
                    == nil
            })
        #expect(removed < 28)
    }

    @Test(arguments: [
        "big-commit", "closed", "compacted", "cut", "damaged", "damaged-live", "live-killed",
        "missing-block", "missing-frame", "rolled", "sealed", "torn", "torn-big", "unfinished",
    ])
    func `the files of every vector are covered without gaps`(name: String) throws {
        let folder = try TemporaryFolder.vector(name)
        defer { folder.remove() }
        #expect(try kinds(folder.log).allSatisfy { $0.first == "header" })
    }

    @Test(arguments: [1, 10, 64, 65, 200])
    func `a torn file is covered, whatever is left of it`(bytes: Int) throws {
        let log = try SampleLog(Histories.statuses())
        defer { log.remove() }
        try log.close()
        let file = try URL(filePath: log.directory + "/" + log.segments()[0])
        try Data(try Data(contentsOf: file).prefix(bytes)).write(to: file)
        _ = try kinds(log.directory)
    }

    @Test func `a torn end is marked as such, and damage before the last segment as damage`() throws
    {
        let folder = try TemporaryFolder.withProblem("damaged")
        defer { folder.remove() }
        let last = try #require(
            try LogDirectory.segments(of: folder.log, POSIXFileSystem()).last)
        let file = URL(filePath: folder.log + "/" + last)
        let bytes = try Data(contentsOf: file)
        try Data(bytes.dropLast(bytes.count / 3)).write(to: file)
        let kinds = try kinds(folder.log)
        #expect(kinds[0].last == "damage")
        #expect(kinds[1].last == "torn")
    }

    @Test func `a segment is shown frame by frame`() throws {
        let events = try Histories.rich()
        let log = try SampleLog(events)
        defer { log.remove() }
        let api = try API(reading: log.directory)
        let segment = try api.json("files/\(log.segments()[0])")
        let frames = try #require(segment["frames"]?.list)
        #expect(frames.compactMap { $0["events"]?.int }.reduce(0, +) == events.count)
        let bytes = events.reduce(0) { $0 + $1.lineBytes + 1 }
        #expect(frames.compactMap { $0["lineBytes"]?.int }.reduce(0, +) == bytes)
        for frame in frames {
            let blocks = frame.column("blocks", "events").compactMap(\.int)
            #expect(blocks.reduce(0, +) == frame["events"]?.int)
        }
        let files = try api.json("files")
        #expect(files["segments"]?.list.first?["lineBytes"]?.int == bytes)
        #expect(files.column("others", "what").map(\.stringValue).contains("lock"))
    }
}
