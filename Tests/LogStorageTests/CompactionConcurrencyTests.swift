// Appends, compaction and readers run concurrently: none of them waits for long, and no reader sees a gap or
// a repeat.

import DaybookTestKit
import Dispatch
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@Suite struct CompactionConcurrencyTests {
    /// The state that the threads share.
    private final class Shared: Sendable {
        let isOver = Atomic(false)
        let durable = Atomic<UInt64>(0)
        let failures = Mutex<[String]>([])

        func note(_ text: String) { failures.withLock { $0.append(text) } }
    }

    private static func goes(_ position: UInt64) -> Bool { position % 3 != 0 }

    /// Most commits are small; some fill a block, and some are big commits, so that a live segment has many frames.
    private static func written(_ position: UInt64) -> [UInt8] {
        let commit = (position - 1) / 3
        return TestLog.line(
            position, padding: commit % 11 == 5 ? 22_000 : commit % 7 == 3 ? 12_000 : 50)
    }

    //  writer              compactor            reader                          lookups by position
    //  append … roll       survey, rewrite      list, open, read                find the frame
    //  append              rename, swap         goes on reading the old file    decode it from the old file
    //  look up             next segment         list again                      find another
    @Test(.verifies("CMP-24", "REC-6"))
    func `appends, compaction and readers at once`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.log
        let log = try Log(at: path, environment: TestLog.environment(POSIXFileSystem()))
        let shared = Shared()
        let commits: UInt64 = TestLog.isDebug ? 200 : 3_000
        DispatchQueue.concurrentPerform(iterations: 4) { role in
            do {
                switch role {
                case 0:
                    defer { shared.isOver.store(true, ordering: .sequentiallyConsistent) }
                    try Self.write(log, commits, shared)
                case 1: try Self.compact(log, shared)
                case 2: try Self.lookUp(log, shared)
                default: try Self.read(path, shared)
                }
            } catch { shared.note("\(role): \(error)") }
        }
        #expect(shared.failures.withLock { $0 } == [])
        try CompactionModel.compact(log, removing: Self.goes)
        try log.close()
        let summary = try LogVerifier(path).verify { _, _ in nil }
        #expect(summary.findings == [])
        #expect(summary.last.rawValue == commits * 3)
        #expect(summary.events < Int(commits) * 2)
    }

    private static func write(_ log: Log, _ commits: UInt64, _ shared: Shared) throws {
        for commit in 0..<commits {
            var lines: [UInt8] = []
            for number: UInt64 in 1...3 {
                lines += written(commit * 3 + number) + [0x0A]
            }
            try log.append(lines)
            shared.durable.store(commit * 3 + 3, ordering: .sequentiallyConsistent)
            if commit % 40 == 39 { try log.roll() }
            // A line exists or is recorded as removed, never neither.
            let position = commit * 3 / 2 + 1
            let line = try log.line(id: TestLog.id(position))
            let removed = try log.removed(id: TestLog.id(position))
            if let line, line.bytes != written(position) {
                shared.note("line \(position) is another")
            }
            if line == nil, removed?.position.rawValue != position || !goes(position) {
                shared.note("line \(position) is lost")
            }
        }
    }

    private static func compact(_ log: Log, _ shared: Shared) throws {
        while !shared.isOver.load(ordering: .sequentiallyConsistent) {
            try CompactionModel.compact(log, removing: goes)
        }
    }

    private static func lookUp(_ log: Log, _ shared: Shared) throws {
        var step: UInt64 = 0
        while !shared.isOver.load(ordering: .sequentiallyConsistent) {
            let durable = shared.durable.load(ordering: .sequentiallyConsistent)
            guard durable > 0 else { continue }
            // Near the end, where frames grow, and anywhere.
            step += 7
            let position = step % 2 == 0 ? durable - step % min(durable, 40) : step % durable + 1
            guard let line = try log.line(at: Position(position)) else {
                if !goes(position) { shared.note("line \(position) is lost") }
                continue
            }
            if line != written(position) {
                shared.note("line \(position) is another")
            }
        }
    }

    private static func read(_ path: String, _ shared: Shared) throws {
        var next: UInt64 = 1
        while !shared.isOver.load(ordering: .sequentiallyConsistent) {
            let durable = shared.durable.load(ordering: .sequentiallyConsistent)
            // From the beginning, and from the end of the last read.
            for first in [1, next] {
                var expected = first
                let outcome = try LogReader(path).forEachLine(from: Position(first)) {
                    prefix, line in
                    let position = prefix.position.rawValue
                    while expected < position, goes(expected) { expected += 1 }
                    if position != expected { shared.note("\(position) where \(expected) belongs") }
                    if line.array != written(position) {
                        shared.note("line \(position) is another")
                    }
                    expected = position + 1
                    return true
                }
                while expected <= durable, goes(expected) { expected += 1 }
                if expected <= durable { shared.note("\(expected) is missing, \(outcome)") }
                if first == next { next = outcome.last.rawValue + 1 }
            }
        }
    }
}
