// The frozen logs of Spec/vectors, read by the reader, the verifier and the writer. The expected results are
// in expected.json beside each; Spec/vectors/check.py reads the same files.

import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct VectorTests {
    /// A folder of Spec/vectors, as a copy that a test may open for writing.
    struct Vector: CustomTestStringConvertible, Sendable {
        let name: String
        let expected: Expected
        var testDescription: String { name }

        struct Expected: Codable, Sendable {
            var state: String
            var segment: String
            var offset: Int?
            var bytes: Int?
            var positions: [UInt64]?
            var events: Int
            var plaintextBytes: Int
            var xxh64: String
            var compactedThrough: UInt64?
            /// Position and hashes by id.
            var removed: [String: Remembered]?

            /// The position of the next line.
            var next: Position { Position(UInt64(events + (removed?.count ?? 0)) + 1) }
        }

        /// The expected record of a removed line.
        struct Remembered: Codable, Sendable, Equatable {
            var position: UInt64
            var withoutTime: String
            var withTime: String

            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                position = try list.decode(UInt64.self)
                withoutTime = try list.decode(String.self)
                withTime = try list.decode(String.self)
            }
        }

        static let folder = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Spec/vectors")

        static let all: [Vector] = {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
            return names.sorted().compactMap { name in
                let path = folder.appending(path: "\(name)/expected.json")
                guard let data = try? Data(contentsOf: path) else { return nil }
                guard let expected = try? JSONDecoder().decode(Expected.self, from: data) else {
                    preconditionFailure("\(path.path) is not what a vector expects")
                }
                return Vector(name: name, expected: expected)
            }
        }()

        func withCopy<R>(_ body: (String) throws -> R) throws -> R {
            let copy = try TemporaryFolder()
            defer { copy.remove() }
            let source = Self.folder.appending(path: name)
            for file in try FileManager.default.contentsOfDirectory(atPath: source.path)
            where file.hasSuffix(".lz4") {
                let data = try Data(contentsOf: source.appending(path: file))
                try data.write(to: copy.appending(file))
            }
            return try body(copy.path)
        }
    }

    /// All lines that a reader delivers, and its result.
    private func read(
        _ directory: String
    ) throws -> (lines: [UInt8], count: Int, end: Result<LogReader.Outcome, LogError>) {
        var lines: [UInt8] = []
        var count = 0
        do {
            let outcome = try LogReader(directory).forEachLine { _, line in
                lines += line.array + [0x0A]
                count += 1
                return true
            }
            return (lines, count, .success(outcome))
        } catch let error as LogError {
            return (lines, count, .failure(error))
        }
    }

    private func hash(_ bytes: [UInt8]) -> String {
        var hash = XXH64()
        hash.update(bytes.span.bytes)
        let digits = String(hash.value(), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    @Test func `all vectors are there`() {
        #expect(Vector.all.count >= 21)
    }

    @Test(.verifies("REC-3", "REC-6"), arguments: Vector.all)
    func `a reader gives the lines and the end that the vector expects`(
        _ vector: Vector
    ) throws {
        try vector.withCopy { directory in
            let (lines, count, end) = try read(directory)
            let expected = vector.expected
            #expect(count == expected.events)
            #expect(lines.count == expected.plaintextBytes)
            #expect(hash(lines) == expected.xxh64)
            let listed = Vector.folder.appending(path: "\(vector.name)/expected.ndjson")
            if let data = try? Data(contentsOf: listed) { #expect(Data(lines) == data) }
            switch end {
            case .success(let outcome):
                #expect(
                    try LogReader(directory).compactedThrough().rawValue
                        == expected.compactedThrough ?? 0)
                #expect(
                    ["closed", "sealed", "live", "torn", "unfinished"].contains(expected.state))
                #expect(outcome.isOpenEnded == !["closed", "sealed"].contains(expected.state))
                #expect(outcome.tornTail?.offset == expected.offset)
                #expect(outcome.tornTail?.byteCount == expected.bytes)
            case .failure(let error):
                #expect(error.code.rawValue == expected.state)
                #expect(error.path.hasSuffix(expected.segment))
                #expect(error.offset == expected.offset)
                if let positions = expected.positions {
                    #expect(error.positions == Position(positions[0])...Position(positions[1]))
                }
            }
        }
    }

    @Test(.verifies("REC-7"), arguments: Vector.all)
    func `a verifier finds damage where there is some, and nothing elsewhere`(
        _ vector: Vector
    ) throws {
        try vector.withCopy { directory in
            let verifier = LogVerifier(directory)
            switch vector.expected.state {
            case "newer-version", "unknown-feature":
                #expect { try verifier.verify { _, _ in nil } } throws: {
                    ($0 as? LogError)?.code.rawValue == vector.expected.state
                }
            case "corrupt":
                let summary = try verifier.verify { _, _ in nil }
                let first = try #require(summary.findings.first)
                #expect(first.code == "corrupt")
                #expect(first.segment == vector.expected.segment)
                #expect(first.offset == vector.expected.offset)
            default:
                let summary = try verifier.verify { _, _ in nil }
                #expect(summary.findings == [])
                #expect(summary.events == vector.expected.events)
                #expect(summary.tornTail?.byteCount == vector.expected.bytes)
            }
        }
    }

    @Test(.verifies("REC-3", "REC-4"), arguments: Vector.all)
    func `a writer recovers a torn log, appends to it, and refuses a damaged one unchanged`(
        _ vector: Vector
    ) throws {
        try vector.withCopy { directory in
            let before = try contents(directory)
            let expected = vector.expected
            let log: Log
            do throws(LogError) {
                log = try Log(at: directory)
            } catch {
                // A writer reads no sealed segment but the last, so it cannot detect damage in the others.
                #expect(error.code.rawValue == expected.state)
                #expect(try contents(directory) == before)
                return
            }
            #expect(!["newer-version", "unknown-feature"].contains(expected.state))
            let damaged = expected.state == "corrupt"
            #expect(log.recovery.removedUnfinishedSegment == (expected.state == "unfinished"))
            #expect(log.recovery.tornTail?.offset == (damaged ? nil : expected.offset))
            if let tail = log.recovery.tornTail {
                let kept = try #require(tail.quarantinedAs)
                #expect(try Data(contentsOf: URL(filePath: kept)).count == expected.bytes)
            }
            guard !damaged else { return try log.close() }
            #expect(log.next == expected.next)
            var line: [UInt8] = []
            let prefix = LinePrefix(
                own: 0x1111_1111_1111_4111_8111_1111_1111_1111, source: log.incarnation,
                at: log.next)
            prefix.append(to: &line)
            let rest = "a\",\"partitionkey\":\"a\",\"time\":\"2026-03-02T00:00:00.000Z\"}\n"
            line += Array(rest.utf8)
            try log.append(line)
            #expect(try log.line(id: prefix.id)?.position == prefix.position)
            try log.close()
            let (lines, count, end) = try read(directory)
            #expect(count == expected.events + 1)
            #expect(hash(Array(lines.dropLast(line.count))) == expected.xxh64)
            #expect(try end.get().isOpenEnded == false)
            #expect(try LogVerifier(directory).verify { _, _ in nil }.findings == [])
        }
    }

    @Test(.verifies("CMP-26", "SEG-8"), arguments: Vector.all.filter { $0.expected.removed != nil })
    func `the removed ids of a vector are found`(
        _ vector: Vector
    ) throws {
        try vector.withCopy { directory in
            // 2026-05-01: no list is 90 days old.
            let environment = LogEnvironment(now: { 1_777_593_600_000 })
            guard vector.expected.state != "corrupt" else { return }
            let log = try Log(at: directory, environment: environment)
            for (id, remembered) in try #require(vector.expected.removed) {
                let id = try #require(UInt128(id, radix: 16))
                #expect(try log.line(id: id) == nil)
                let found = try #require(try log.removed(id: id))
                #expect(found.position.rawValue == remembered.position)
                #expect(found.hashes.withoutTime == UInt32(remembered.withoutTime, radix: 16))
                #expect(found.hashes.withTime == UInt32(remembered.withTime, radix: 16))
            }
            #expect(try log.compactedThrough().rawValue == vector.expected.compactedThrough)
            try log.close()
        }
    }

    private func contents(_ directory: String) throws -> [String: Data] {
        var result: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: directory)
        where name.hasSuffix(".lz4") {
            result[name] = try Data(contentsOf: URL(filePath: directory + "/" + name))
        }
        return result
    }
}
