// The seeds of fuzzing: the test vectors of the format, the events of every release, and a few texts, in
// the modes of each target. Built for every run, not stored. Spec/testing/fuzzing.md.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import Replay

/// The seed inputs of all targets.
package struct FuzzSeeds {
    private let project: URL

    /// - Parameter project: the folder of the package.
    package init(project: String) { self.project = URL(filePath: project) }

    /// The inputs of a target.
    package func inputs(of target: FuzzTarget) throws -> [[UInt8]] {
        let all: [[UInt8]] =
            switch target {
            case .block: try blocks()
            case .segment: modes([0, 1, 3], of: try segments())
            case .log: try logs()
            case .line: modes([0], of: try lines() + texts)
            case .footer: try footers()
            case .removed: try removed()
            case .checkpoint: checkpoints()
            case .state: try states()
            case .verdict: verdicts()
            case .batch: batches(try lines())
            }
        return all.filter { $0.count <= target.inputBytesMax }
    }

    private func modes(_ modes: [UInt8], of inputs: [[UInt8]]) -> [[UInt8]] {
        inputs.flatMap { input in modes.map { [$0] + input } }
    }

    // MARK: Blocks

    /// Plaintext, and blocks that the codec compresses from it.
    private func blocks() throws -> [[UInt8]] {
        let plain = try lines() + [[UInt8](repeating: 0x61, count: 300)]
        let compressed = plain.filter { !$0.isEmpty }.map { line in
            var bytes: [UInt8] = []
            var compressor = BlockCompressor()
            compressor.append(block: line.span.bytes, to: &bytes)
            return Array(bytes.dropFirst(4).dropLast(4))
        }
        return modes([0, 14, 30], of: plain) + modes([1, 41], of: compressed)
    }

    // MARK: Files

    private func files(_ folder: String, _ suffix: String) throws -> [[UInt8]] {
        let directory = project.appending(path: folder)
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path).sorted()
        return try names.filter { $0.hasSuffix(suffix) }
            .map { Array(try Data(contentsOf: directory.appending(path: $0))) }
    }

    /// The segments of the vectors; each also without trailing zeros, such as preallocated space.
    private func segments() throws -> [[UInt8]] {
        let all = try files("Spec/vectors", ".lz4")
        let truncated = all.map { bytes in
            Array(bytes[...(bytes.lastIndex { $0 != 0 } ?? 0)]) + [0, 0, 0, 0]
        }
        return all + truncated
    }

    private func logs() throws -> [[UInt8]] {
        let all = try segments()
        var logs = modes([0, 1, 8, 16, 24, 25], of: all)
        for folder in ["rolled", "compacted-last", "missing-frame"] {
            let parts = try files("Spec/vectors/" + folder, ".lz4")
            if parts.count == 2 { logs += modes([2, 19, 26], of: [pair(parts[0], parts[1])]) }
        }
        let live = try files("Spec/vectors/live-killed", ".lz4")
        for last in live {
            logs += modes([4, 13, 21, 28], of: checkpointBytes.map { pair($0, last) })
            var journal = Array("DAYBOOKR".utf8)
            journal.append(littleEndian: UInt64(1))
            journal.append(littleEndian: UInt64(512))
            journal.append(littleEndian: UInt64(40))
            journal += last[512..<552] + [UInt8](repeating: 0, count: 8)
            logs += modes([7, 23, 31], of: [pair(journal, last)])
        }
        return logs
    }

    private func pair(_ first: [UInt8], _ last: [UInt8]) -> [UInt8] {
        [UInt8(first.count & 0xFF), UInt8(first.count >> 8)] + first + last
    }

    private func footers() throws -> [[UInt8]] {
        let footers = try segments().compactMap { bytes -> [UInt8]? in
            guard let length = SegmentFooter.length(atEnd: bytes.span.bytes),
                length <= bytes.count
            else { return nil }
            return Array(bytes.suffix(length))
        }
        let entries = (0..<300).map {
            IDIndexEntry(hash: IDIndex.hash(UInt128($0), seed: 9), frame: $0 / 2)
        }
        let index = IDIndex.encode(entries, frameCount: 150, seed: 9)
        return modes([0, 1], of: footers) + modes([2], of: [index, Array(index.prefix(40))])
    }

    private func removed() throws -> [[UInt8]] {
        let records = (1...200 as ClosedRange<UInt64>).map {
            RemovedID(
                id: UInt128($0) << 90 | UInt128($0), position: Position(1_000 + $0),
                hashes: ContentHashes(withoutTime: 1, withTime: UInt32($0)))
        }
        let base = Position(1_000)
        return [0, 1, 3, 45].flatMap { count in
            modes(
                [0, 1, 5],
                of: [RemovedIDs.encode(Array(records.prefix(count)), base: base, removedAt: 5)])
        }
    }

    // MARK: Checkpoints

    private var footer: SegmentFooter {
        SegmentFooter(
            coveredThrough: Position(9), lines: Position(4)...Position(9), eventCount: 6,
            times: 1...2, plaintextBytes: 1_000,
            frames: [FrameEntry(offset: 512, first: Position(4))],
            idIndex: IDIndex.encode(
                (4...9).map { IDIndexEntry(hash: UInt32($0), frame: 0) }, frameCount: 1, seed: 3),
            digest: 0)
    }

    private var checkpointBytes: [[UInt8]] {
        let live = LiveSnapshot(base: Position(4), dataEnd: 900, footer: footer)
        let state = StoredState(
            name: "v", version: 1, position: Position(9), bytes: Array("state".utf8))
        let all = [
            Checkpoint(
                logID: 1, position: .zero, lastID: 0, createdAt: 0, sealed: [], live: nil,
                states: []),
            Checkpoint(
                logID: 1, position: Position(9), lastID: 2, createdAt: 5,
                sealed: [Position(1)...Position(3)], live: live, states: [state, state]),
        ]
        return all.compactMap { try? $0.encoded() }
    }

    private func checkpoints() -> [[UInt8]] {
        var content: [UInt8] = []
        content.append(littleEndian: UInt32(1))
        content.append(littleEndian: UInt64(1))
        content.append(littleEndian: UInt64(3))
        content.append(1)
        var footer = footer
        footer.idIndex = []
        let footerBytes = footer.encoded()
        content.append(littleEndian: UInt64(4))
        content.append(littleEndian: UInt64(900))
        content += [UInt8](repeating: 0, count: 16)
        content.append(littleEndian: UInt32(footerBytes.count))
        content += footerBytes
        content.append(littleEndian: UInt32(1))
        content.append(littleEndian: UInt16(1))
        content.append(UInt8(ascii: "v"))
        content.append(littleEndian: UInt32(1))
        content += [UInt8](repeating: 0, count: 16)
        content.append(littleEndian: UInt64(5))
        content += [UInt8](repeating: 0, count: 8) + Array("state".utf8)
        return modes([0, 1], of: checkpointBytes) + modes([2], of: [content])
    }

    private func states() throws -> [[UInt8]] {
        let events = try lines().enumerated().map { number, line in
            let draft = try LineDecoder.decode(line.span.bytes).draft
            return Event(
                LinePrefix(
                    own: draft.id.integer, source: 7, at: Position(UInt64(number) + 1)),
                content: draft, catalogue: OfflineModel.catalogue, lineBytes: line.count)
        }
        var states: [[UInt8]] = []
        for (number, type) in StateCheck.views.enumerated() {
            for count in [0, 3, 8, events.count] {
                if let state = try state(of: type, events.prefix(count)) {
                    states.append([UInt8(number)] + state)
                }
            }
        }
        return states
    }

    private func state<View: Projection>(
        of type: View.Type, _ events: ArraySlice<Event>
    ) throws -> [UInt8]? {
        var view = View()
        for event in events { view.fold(event) }
        return try view.encodedState()
    }

    // MARK: Texts

    private func lines() throws -> [[UInt8]] {
        let released = try files("Tests/OfflineModelTests/Corpus", ".ndjson")
        let stored = try files("Spec/vectors/closed", ".ndjson")
        return (released + stored).flatMap { $0.split(separator: 0x0A).map(Array.init) }
    }

    private var texts: [[UInt8]] {
        [
            #"{"a":[1,-2.5e+3,0.1E-9,true,false,null,"\u00e9\ud83d\ude00\n\\\""],"b":{}}"#,
            #"[[[[[[[[1]]]]]]]]"#, #"{"a":1,"a":2}"#, "\"\\ud800\"", "1e999999999999999999",
        ].map { Array($0.utf8) }
    }

    private func batches(_ lines: [[UInt8]]) -> [[UInt8]] {
        let comma = [UInt8(ascii: ",")]
        let open = [UInt8(ascii: "[")]
        let close = [UInt8(ascii: "]")]
        let pairs = zip(lines, lines.dropFirst()).map { open + $0 + comma + $1 + close }
        let single = lines.map { open + $0 + close }
        return modes([0], of: [open + close] + single + pairs)
    }

    private func verdicts() -> [[UInt8]] {
        let ids = VerdictCheck.outbox.entries.map(\.id.uuidString)
        let statuses = ["applied", "duplicate", "rejected", "conflict", "retry", "unprocessed"]
        let list = zip(ids, statuses).map { "{\"id\":\"\($0)\",\"status\":\"\($1)\"}" }
        let bodies =
            [
                "{\"verdicts\":[]}", "{\"verdicts\":[\(list.joined(separator: ","))]}",
                "{\"verdicts\":[{\"id\":\"\(ids[0])\",\"status\":\"retry\","
                    + "\"retryAfterSeconds\":1e400,\"code\":\"c\",\"detail\":\"d\"}]}",
            ]
            + statuses.map { status in
                let all = ids.map { "{\"id\":\"\($0)\",\"status\":\"\(status)\"}" }
                return "{\"verdicts\":[\(all.joined(separator: ","))]}"
            }
        let record = """
            {"by":"\(UUID(integer: 7).text)","applied":[[1,2],[4,4]],"duplicate":[[3,3]],\
            "replaces":9,"entries":[{"position":5,"id":"\(ids[4])","outcome":"parked",\
            "retryCount":5,"code":"c","detail":"d","at":"2026-02-22T10:30:14.425Z"}]}
            """
        let headers = ["Sun, 06 Nov 1994 08:49:37 GMT", "120", "1e3", "-1", "nan", "inf"]
        return modes([0, 4, 5, 6, 8, 10, 12], of: bodies.map { Array($0.utf8) })
            + modes([16], of: [Array(record.utf8)])
            + modes([32], of: headers.map { Array($0.utf8) })
    }
}
