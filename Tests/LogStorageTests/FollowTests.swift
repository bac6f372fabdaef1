// Readers that follow a log get every line once and in order, whatever the writer does meanwhile, and no
// incomplete commit. Spec/format/following.md.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// A log that is written, killed and opened again while a follower reads it.
private struct Followed {
    let files = InMemoryFileSystem()
    let follower: Follower
    private let lines: Lines
    private let cuts: Cuts
    private var log: Log?
    /// The last position whose append returned.
    private var acknowledged = Position.zero
    /// Positions of lines that compaction was told to remove; a kill may have left them.
    private var removed: Set<Position> = []

    /// The line at each position, as it was written last.
    private final class Lines: Sendable {
        let byPosition = Mutex<[Position: [UInt8]]>([:])
    }

    /// The interruptions of the next operations, in order.
    private final class Cuts: Sendable {
        private let rest: Mutex<[InterleavingFileSystem.Cut?]>
        init(_ all: [InterleavingFileSystem.Cut?]) { rest = Mutex(all.reversed()) }
        func next() -> InterleavingFileSystem.Cut? { rest.withLock { $0.popLast() } ?? nil }
    }

    init(_ cuts: [InterleavingFileSystem.Cut?]) {
        let lines = Lines()
        self.lines = lines
        self.cuts = Cuts(cuts)
        follower = Follower(TestLog.path, files) { position in
            lines.byPosition.withLock { $0[position] }
        }
    }

    /// Opens the log, repeatedly if the process is killed meanwhile.
    mutating func open() throws -> Log {
        if let log { return log }
        while true {
            let watched = InterleavingFileSystem(files, cut: { [cuts] _ in cuts.next() }) {
                [follower] in
                follower.poll()
                follower.readAnew()
            }
            let opened: Log
            do throws(LogError) {
                opened = try Log(at: TestLog.path, environment: TestLog.environment(watched))
            } catch {
                try #require(error.code == .io)
                continue
            }
            log = opened
            let next = opened.next
            try #require(acknowledged < next)
            try #require(follower.position < next, "a delivered line was retracted")
            lines.byPosition.withLock { $0 = $0.filter { $0.key < next } }
            return opened
        }
    }

    /// Ends the process.
    mutating func kill() { log = nil }

    /// Runs an operation that a kill may interrupt.
    private mutating func run(_ body: (Log) throws(LogError) -> Void) throws {
        let log = try open()
        do throws(LogError) {
            try body(log)
        } catch {
            try #require(error.code == .indeterminate || error.code == .io)
            kill()
        }
    }

    mutating func append(_ paddings: [Int]) throws {
        let first = try open().next.rawValue
        let made = paddings.enumerated().map {
            TestLog.line(first + UInt64($0), padding: $1)
        }
        lines.byPosition.withLock { lines in
            for (index, line) in made.enumerated() {
                lines[Position(first + UInt64(index))] = line
            }
        }
        var isDone = false
        try run { (log) throws(LogError) in
            try log.append(made.flatMap { $0 + [0x0A] })
            isDone = true
        }
        if isDone { acknowledged = Position(first + UInt64(made.count) - 1) }
    }

    mutating func roll() throws { try run { (log) throws(LogError) in try log.roll() } }

    mutating func close() throws {
        try run { (log) throws(LogError) in try log.close() }
        log = nil
    }

    /// Removes lines from all sealed segments.
    mutating func compact(removing: (UInt64) -> Bool) throws {
        let log = try open()
        do {
            try CompactionModel.compact(log) { position in
                guard removing(position) else { return false }
                removed.insert(Position(position))
                return true
            }
        } catch let error as LogError {
            try #require(error.code == .io)
            kill()
        }
    }

    /// Checks that every acknowledged line was delivered.
    func checkCaughtUp() throws {
        try follower.check()
        try #require(follower.position >= acknowledged)
    }

    /// Checks that every stored line was delivered, and that a new reader gets the same lines.
    func checkAll() throws {
        try checkCaughtUp()
        let all = lines.byPosition.withLock { $0 }
        var there: [Position] = []
        try LogReader(TestLog.path, fileSystem: files).forEachLine { prefix, line in
            there.append(prefix.position)
            return line.array == all[prefix.position]
        }
        try #require(Set(all.keys).subtracting(removed).isSubset(of: there))
        try #require(Set(there).isSubset(of: follower.positions))
        try #require(Set(follower.positions).isSubset(of: all.keys))
        for start in there.indices where start.isMultiple(of: 5) {
            var rest: [Position] = []
            var cursor = LogCursor(TestLog.path, after: there[start], fileSystem: files)
            try cursor.poll { prefix, line in
                rest.append(prefix.position)
                return line.array == all[prefix.position]
            }
            try #require(rest == Array(there[(start + 1)...]))
        }
    }
}

@Suite struct FollowTests {
    private static func cuts(_ choices: inout Choices) -> [InterleavingFileSystem.Cut?] {
        choices.array(0...60) { choices in
            guard choices.bool() else { return nil }
            return InterleavingFileSystem.Cut(
                percent: choices.int(in: 0...100), endsFirst: choices.bool(),
                kills: choices.bool(oneIn: 8))
        }
    }

    @Test(.verifies("FOL-1", "FOL-2", "FOL-3"))
    func `a follower gets every line once and in order, at whatever point of a write it reads`()
        throws
    {
        try Property.check("following", runs: TestLog.isDebug ? 300 : 10_000) { choices in
            var log = Followed(Self.cuts(&choices))
            for _ in 0..<choices.int(in: 1...20) {
                switch choices.int(in: 0...11) {
                case 11:
                    choices.note("kill")
                    log.kill()
                case 10:
                    choices.note("close")
                    try log.close()
                case 9:
                    choices.note("compact")
                    let drawn = choices.array(1...8) { $0.bool() }
                    try log.compact { drawn[Int($0) % drawn.count] }
                case 7, 8:
                    choices.note("roll")
                    try log.roll()
                case 6:
                    choices.note("resume")
                    log.follower.resume()
                case 5:
                    let count = choices.int(in: 1...4)
                    choices.note("poll \(count)")
                    log.follower.poll(linesMax: count)
                    try log.follower.check()
                    continue
                default:
                    let paddings = choices.array(1...4) { choices in
                        choices.int(in: 0...choices.element(of: [40, 40, 300, 3_000, 40_000]))
                    }
                    choices.note("append \(paddings)")
                    try log.append(paddings)
                }
                guard choices.bool() else { continue }
                log.follower.poll()
                try log.checkCaughtUp()
            }
            log.follower.poll()
            // The next writer decides whether a commit that was complete at the kill stays.
            _ = try log.open()
            log.follower.poll()
            try log.checkAll()
        }
    }

    // MARK: A writer between reads

    /// A writer that makes one step between two operations of a reader.
    private final class SteppingWriter: Sendable {
        enum Step: String, CaseIterable { case append, roll, close, kill, compact, nothing }

        let files = InMemoryFileSystem()
        private let state: Mutex<(log: Log?, last: UInt64, steps: [Step], failure: (any Error)?)>

        init(_ steps: [Step]) { state = Mutex((nil, 0, steps.reversed(), nil)) }

        var last: Position { state.withLock { Position($0.last) } }
        var isOver: Bool { state.withLock { $0.steps.isEmpty } }
        func check() throws { if let failure = state.withLock({ $0.failure }) { throw failure } }

        func step() {
            state.withLock { state in
                guard let step = state.steps.popLast(), state.failure == nil else { return }
                do {
                    let log =
                        try state.log
                        ?? Log(at: TestLog.path, environment: TestLog.environment(files))
                    state.log = log
                    switch step {
                    case .append:
                        state.last += 1
                        try log.append(TestLog.line(state.last, padding: 150) + [0x0A])
                    case .roll: try log.roll()
                    case .close:
                        try log.close()
                        state.log = nil
                    case .kill: state.log = nil
                    case .compact: try CompactionModel.compact(log, removing: FollowTests.goes)
                    case .nothing: break
                    }
                } catch { state.failure = error }
            }
        }
    }

    @Test(.verifies("FOL-1", "FOL-2", "FOL-3"))
    func `readers get every line, whatever the writer does between two of their reads`() throws {
        try Property.check("writing under a reader", runs: TestLog.isDebug ? 300 : 20_000) {
            choices in
            let steps = choices.array(0...120) { choices in
                choices.bool()
                    ? .nothing : choices.element(of: SteppingWriter.Step.allCases)
            }
            choices.note(steps.map(\.rawValue).joined(separator: ", "))
            let writer = SteppingWriter([.append] + steps)
            writer.step()
            let watched = PausingFileSystem(writer.files) { writer.step() }
            let follower = Follower(TestLog.path, watched) {
                TestLog.line($0.rawValue, padding: 150)
            }
            var last = Position.zero
            while !writer.isOver {
                follower.poll()
                try follower.check()
                try Self.readAnew(TestLog.path, &last, watched)
            }
            try writer.check()
            follower.poll()
            try follower.check()
            try Self.readAnew(TestLog.path, &last, watched)
            try #require(follower.position == writer.last)
            try #require(last == writer.last)
        }
    }

    // MARK: At full speed, on real files

    /// True for the lines that compaction removes.
    private static func goes(_ position: UInt64) -> Bool { position % 7 == 0 }

    /// Reads new lines with a new reader each time, as an occasional caller does.
    private static func readAnew(
        _ directory: String, _ last: inout Position, _ files: any FileSystem = POSIXFileSystem()
    ) throws {
        let reader = LogReader(directory, fileSystem: files)
        let outcome = try reader.forEachLine(from: last.next) { prefix, bytes in
            try #require(prefix.position > last)
            try #require(!(last.rawValue + 1..<prefix.position.rawValue).contains { !goes($0) })
            try #require(TestLog.line(prefix.position.rawValue, padding: 150) == bytes.array)
            last = prefix.position
            return true
        }
        // Removed positions at the end are skipped, too.
        last = outcome.last
    }

    /// Writes bytes after the last commit, as a write that a kill interrupts.
    private static func tear(_ directory: String) throws {
        let names = try LogDirectory.segments(of: directory, POSIXFileSystem())
        let path = directory + "/" + (try #require(names.last))
        let file = try POSIXFileSystem().open(path, .readWrite)
        let bytes = try file.read(at: 0, count: try file.size())
        let end = try #require(bytes.lastIndex { $0 != 0 }) + 1
        guard end + 100 < bytes.count else { return }
        try file.write([UInt8](repeating: 0xA5, count: 100), at: end)
    }

    @Test(.verifies("FOL-1", "FOL-2", "REC-6"))
    func `readers follow a busy writer through 50 rolls, kills, reopenings and 10 compactions`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let directory = folder.log
        let rolls = 50
        /// The last position, known once the writer is done.
        final class End: Sendable { let position = Mutex<Position?>(nil) }
        let end = End()
        _ = try Log(at: directory)

        async let rolled = onThread {
            defer { end.position.withLock { $0 = $0 ?? .zero } }
            var log: Log? = try Log(at: directory)
            var last: UInt64 = 0
            for roll in 1...rolls {
                for _ in 1...(TestLog.isDebug ? 8 : 200) {
                    let count = 1 + last % 3
                    var lines: [UInt8] = []
                    for _ in 1...count {
                        last += 1
                        lines += TestLog.line(last, padding: 150) + [0x0A]
                    }
                    try log?.append(lines)
                }
                switch roll % 5 {
                case 1: try log?.close()
                case 2:
                    log = nil
                    try Self.tear(directory)
                case 3: log = nil
                default: break
                }
                if roll % 5 <= 3 { log = nil }
                let open = try log ?? Log(at: directory)
                log = open
                try #require(open.next.rawValue == last + 1)
                try open.roll()
                if roll % 5 == 0 { try CompactionModel.compact(open, removing: Self.goes) }
            }
            try log?.close()
            end.position.withLock { $0 = Position(last) }
        }
        async let followed = onThread {
            let follower = Follower(directory, POSIXFileSystem()) {
                TestLog.line($0.rawValue, padding: 150)
            }
            var polls = 0
            while end.position.withLock({ $0 }).map({ follower.position < $0 }) ?? true {
                follower.poll()
                try follower.check()
                polls += 1
                if polls.isMultiple(of: 97) { follower.resume() }
            }
            let last = follower.position.rawValue
            let seen = Set(follower.positions.map(\.rawValue))
            try #require((1...last).allSatisfy { seen.contains($0) || Self.goes($0) })
        }
        async let reread = onThread {
            var last = Position.zero
            while end.position.withLock({ $0 }).map({ last < $0 }) ?? true {
                try Self.readAnew(directory, &last)
            }
        }
        _ = try await (rolled, followed, reread)
        let names = try LogDirectory.segments(of: directory, POSIXFileSystem())
        #expect(names.count >= rolls)
        let compacted = try names.count {
            let file = try POSIXFileSystem().open(directory + "/" + $0, .read)
            return try SegmentFooter.read(atEndOf: file)?.footer.isCompacted ?? false
        }
        #expect(compacted > rolls / 2)
    }

    /// Runs a long operation on a separate thread.
    private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            Thread { continuation.resume(with: Result { try body() }) }.start()
        }
    }
}
