// What a segment's file consists of, range by range: header, frames with their blocks, removed ids, footer,
// preallocated space, and what cannot be read.

import EventSourcing
import LogFormat
import LogStorage

/// The frames of a segment, and the location of events in them.
struct SegmentMap {
    /// A commit on disk: one block, or the whole frame of a big commit.
    struct Block {
        var offset: Int
        var bytes: Int
        var positions: ClosedRange<Position>
        var events: Int
        var lineBytes: Int
    }

    /// A frame.
    struct Frame {
        var offset: Int
        var end: Int
        var blocks: [Block]

        var first: Position { blocks[0].positions.lowerBound }
        var last: Position { blocks[blocks.count - 1].positions.upperBound }
        var events: Int { blocks.reduce(0) { $0 + $1.events } }
        var lineBytes: Int { blocks.reduce(0) { $0 + $1.lineBytes } }
    }

    /// The end of the frames, as the scan found it.
    enum Ending {
        case footer(SegmentFooter, offset: Int, bytes: Int)
        case cleanShutdownMarker(offset: Int)
        case preallocated(offset: Int)
        case none(offset: Int)
        case damage(ScanDamage)
    }

    let name: String
    let fileBytes: Int
    private(set) var frames: [Frame] = []
    private(set) var ending = Ending.none(offset: 0)
    private(set) var removedIDsStart: Int?

    /// Reads a segment.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes).
    init(_ name: String, in folder: LogFolder) throws {
        let file = try folder.open(name)
        self.name = name
        fileBytes = try file.size()
        let isCompacted = try SegmentFooter.read(atEndOf: file)?.footer.isCompacted ?? false
        var scanner = SegmentScanner(
            file, expecting: SegmentName.base(name) ?? Position(1), allowsHoles: isCompacted)
        scan: while true {
            switch try scanner.next() {
            case .commit(let commit):
                let block = Block(
                    offset: commit.offset, bytes: commit.end - commit.offset,
                    positions: commit.positions, events: commit.lines.count,
                    lineBytes: commit.lines.reduce(0) { $0 + $1.range.count + 1 })
                if commit.beginsFrame {
                    frames.append(Frame(offset: commit.frameOffset, end: commit.end, blocks: []))
                }
                frames[frames.count - 1].blocks.append(block)
                frames[frames.count - 1].end = commit.end
            case .tail(let tail, let offset):
                removedIDsStart = scanner.removedIDsStart
                ending =
                    switch tail {
                    case .footer(let footer, let bytes):
                        .footer(footer, offset: offset, bytes: bytes)
                    case .cleanShutdownMarker: .cleanShutdownMarker(offset: offset)
                    case .trailer: .preallocated(offset: offset)
                    case .none: .none(offset: offset)
                    }
                break scan
            case .damage(let damage):
                ending = .damage(damage)
                break scan
            }
        }
    }

    /// True if a writer has the log open, or has left it without closing it. Reads the end of a file; false if
    /// it cannot be read.
    static func isOpenEnded(_ folder: LogFolder) -> Bool {
        do {
            guard let name = try folder.segments().last else {
                return false
            }
            let file = try folder.open(name)
            guard try SegmentFooter.read(atEndOf: file) == nil else { return false }
            let start = max(0, try file.size() - CleanShutdownMarker.encodedBytes)
            let end = try file.read(at: start, count: CleanShutdownMarker.encodedBytes)
            return CleanShutdownMarker(end.span.bytes, at: 0) == nil
        } catch { return false }
    }

    // MARK: Ranges

    /// A part of the file.
    struct Range {
        var kind: String
        var offset: Int
        var bytes: Int
        var positions: ClosedRange<Position>?

        var json: JSONObjectWriter {
            .object {
                $0.appendMember("kind", kind)
                $0.appendMember("offset", offset)
                $0.appendMember("bytes", bytes)
                $0.appendMember("first", optional: positions?.lowerBound)
                $0.appendMember("last", optional: positions?.upperBound)
            }
        }
    }

    /// The parts of the file, in order and without gaps.
    ///
    /// - Parameter mayBeTorn: true if damage is an unfinished write at the end of the log.
    func ranges(mayBeTorn: Bool) -> [Range] {
        var ranges = [
            Range(kind: "header", offset: 0, bytes: min(fileBytes, SegmentHeader.encodedBytes))
        ]
        func append(_ kind: String, to end: Int, _ positions: ClosedRange<Position>? = nil) {
            let start = ranges.last.map { $0.offset + $0.bytes } ?? 0
            let end = min(end, fileBytes)
            guard end > start else { return }
            ranges.append(
                Range(kind: kind, offset: start, bytes: end - start, positions: positions))
        }
        for (index, frame) in frames.enumerated() {
            let end = index + 1 < frames.count ? frames[index + 1].offset : frame.end
            append("frame", to: end, frame.first...frame.last)
        }
        switch ending {
        case .footer(_, let offset, let bytes):
            // The end mark of the last frame is part of it.
            if let start = removedIDsStart { append("frame", to: start) }
            append(removedIDsStart == nil ? "frame" : "removedIDs", to: offset)
            append("footer", to: offset + bytes)
            append("preallocated", to: fileBytes)
        case .cleanShutdownMarker(let offset):
            append("frame", to: offset)
            append("marker", to: offset + CleanShutdownMarker.encodedBytes)
            append("preallocated", to: fileBytes)
        case .preallocated(let offset):
            append("frame", to: offset)
            append("preallocated", to: fileBytes)
        case .none(let offset):
            append("frame", to: offset)
            append("rest", to: fileBytes)
        case .damage(let damage):
            append("frame", to: damage.offset)
            append(mayBeTorn ? "torn" : "damage", to: fileBytes)
        }
        return merged(ranges)
    }

    /// The ranges, with a frame and its end mark as one.
    private func merged(_ ranges: [Range]) -> [Range] {
        var merged: [Range] = []
        for range in ranges {
            if range.kind == "frame", range.positions == nil, merged.last?.kind == "frame" {
                merged[merged.count - 1].bytes += range.bytes
            } else {
                merged.append(range)
            }
        }
        return merged
    }

    // MARK: Places

    /// The location of an event on disk.
    struct Place {
        var segment: String
        var isSealed: Bool
        var frameNumber: Int
        var frame: Frame
        var blockNumber: Int
        var block: Block
        var lineOffset: Int
        var lineBytes: Int

        var json: JSONObjectWriter {
            .object {
                $0.appendMember("segment", segment)
                $0.appendMember("sealed", isSealed)
                $0.appendMember("frame", frameNumber)
                $0.appendMember("frameOffset", frame.offset)
                $0.appendMember("frameBytes", frame.end - frame.offset)
                $0.appendMember("block", blockNumber)
                $0.appendMember("blockOffset", block.offset)
                $0.appendMember("blockBytes", block.bytes)
                $0.appendMember("lineOffset", lineOffset)
                $0.appendMember("lineBytes", lineBytes)
            }
        }
    }

    /// Finds an event on disk; nil if its segment cannot be read up to it.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes of the segment).
    static func place(of position: Position, in folder: LogFolder) throws -> Place? {
        let names = try folder.segments()
        guard
            let name = names.last(where: {
                SegmentName.base($0).map { $0 <= position } ?? false
            })
        else { return nil }
        let map = try SegmentMap(name, in: folder)
        guard
            let number = map.frames.lastIndex(where: { $0.first <= position }),
            let block = map.frames[number].blocks.lastIndex(where: {
                $0.positions.contains(position)
            })
        else { return nil }
        let frame = map.frames[number]
        var scanner = SegmentScanner(
            try folder.open(name), at: frame.offset, expecting: frame.first, allowsHoles: true)
        while case .commit(let commit) = try scanner.next() {
            guard let line = commit.lines.first(where: { $0.prefix.position == position }) else {
                if commit.positions.lowerBound > position { return nil }
                continue
            }
            var isSealed = false
            if case .footer = map.ending { isSealed = true }
            return Place(
                segment: name, isSealed: isSealed, frameNumber: number, frame: frame,
                blockNumber: block, block: frame.blocks[block], lineOffset: line.range.lowerBound,
                lineBytes: line.range.count)
        }
        return nil
    }
}
