// A folder of arbitrary bytes through all code that opens one: reader, verifier, recovery, writer,
// repair. Spec/format/recovery.md and Spec/format/repair.md.

import LogFormat
import LogStorage

/// Bit 0 of the mode repairs checksums. Bits 1 and 2 are the kind of a first file, whose length is in
/// the first two bytes of the input: 0 none, 1 a segment before the last, 2 a checkpoint, 3 a rewrite
/// journal. Bits 3 and 4 limit the steps, to save time: 0 reads only, 1 recovers as well, 2 appends as
/// well, 3 repairs as well. The repair of a damaged header, the slowest, also needs bit 5.
struct LogCheck {
    let mode: UInt8

    private static let path = "/log"
    private static let newline = UInt8(ascii: "\n")

    func check(_ input: [UInt8]) throws {
        let files = InMemoryFileSystem()
        try files.createDirectory(Self.path)
        try writeFiles(files, input)
        let reading = read(files)
        try verify(files)
        guard mode & 24 != 0 else { return }
        let log: Log
        do throws(LogError) {
            log = try open(files)
        } catch {
            switch error.code {
            case .corrupt, .notALog:
                let isSlow = error.offset == 0 && mode & 32 == 0
                if mode & 24 == 24, !isSlow { try repair(files, after: error) }
                return
            case .newerVersion, .unknownFeature: return
            default: throw BrokenProperty(description: "opening throws \(error)")
            }
        }
        try checkOpenedLog(log, files, reading)
    }

    // MARK: The folder

    private func writeFiles(_ files: InMemoryFileSystem, _ input: [UInt8]) throws {
        var last = input
        var first: [UInt8] = []
        if mode & 6 != 0, input.count > 2 {
            let count = min(Int(input[0]) | Int(input[1]) << 8, input.count - 2)
            first = Array(input[2..<2 + count])
            last = Array(input[(2 + count)...])
        }
        if mode & 1 != 0 { ChecksumRepair.repairSegment(&last) }
        switch mode >> 1 & 3 {
        case 1:
            if mode & 1 != 0 { ChecksumRepair.repairSegment(&first) }
            writeSegment(first, to: files)
        case 2:
            if mode & 1 != 0 { CheckpointCheck.repairChecksums(&first) }
            try files.createDirectory(Self.path + "/checkpoints")
            files[Self.path + "/checkpoints/a"] = first
        case 3:
            if mode & 1 != 0, first.count >= 8 {
                let end = first.count - 8
                ChecksumRepair.set(ChecksumRepair.digest(first, 0..<end), at: end, of: &first)
            }
            files[Self.path + "/rewrite"] = first
        default: break
        }
        writeSegment(last, to: files)
    }

    /// Writes a segment under the name that its header requires.
    private func writeSegment(_ segment: [UInt8], to files: InMemoryFileSystem) {
        var base = Position(1)
        if segment.count >= 56 {
            base = Position(max(1, segment.span.bytes.integer(at: 48, as: UInt64.self)))
        }
        files[Self.path + "/" + SegmentName.of(base)] = segment
    }

    private func environment(_ files: InMemoryFileSystem) -> LogEnvironment {
        LogEnvironment(
            fileSystem: files, now: { 1_771_756_214_425 },
            random: { 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF })
    }

    private func open(_ files: InMemoryFileSystem) throws(LogError) -> Log {
        try Log(at: Self.path, environment: environment(files))
    }

    // MARK: Reading

    private struct Reading {
        var lines: [[UInt8]] = []
        var last = Position.zero
        var failure: String?
    }

    private func read(_ files: InMemoryFileSystem) -> Reading {
        var reading = Reading()
        do {
            try LogReader(Self.path, fileSystem: files).forEachLine { prefix, line in
                guard prefix.position > reading.last else {
                    throw BrokenProperty(
                        description: "position \(prefix.position) is read after \(reading.last)")
                }
                reading.last = prefix.position
                reading.lines.append(line.array)
                return true
            }
        } catch { reading.failure = "\(error)" }
        return reading
    }

    @discardableResult
    private func verify(_ files: InMemoryFileSystem) throws -> VerificationSummary? {
        do {
            return try LogVerifier(Self.path, fileSystem: files).verify { _, _ in nil }
        } catch let error as LogError
            where error.code == .newerVersion || error.code == .unknownFeature
        {
            return nil
        }
    }

    // MARK: Appending

    /// Checks that an opened log has the lines that were read before, opens again without changes, and
    /// accepts another line.
    private func checkOpenedLog(
        _ log: Log, _ files: InMemoryFileSystem, _ before: Reading
    ) throws {
        // Opening reads only the last segment, so it does not find damage in one before it.
        guard before.failure == nil || mode & 6 != 2 else { return }
        let opened = read(files)
        try expect(opened.failure == nil, "an opened log cannot be read: \(opened.failure ?? "")")
        try expect(opened.lines == before.lines, "opening changed what is read")
        try expect(
            log.next > opened.last, "the next position is \(log.next) after \(opened.last)")
        let image = files.image
        let killed = files.snapshot()
        do throws(LogError) {
            _ = try open(killed)
        } catch { throw BrokenProperty(description: "a recovered log cannot be opened: \(error)") }
        try expect(killed.image == image, "a second recovery changes what the first one left")
        guard mode & 16 != 0, log.next.rawValue < UInt64.max - 2 else { return }
        let line = Self.line(at: log.next)
        do {
            try log.append(line + [Self.newline])
            let stored = try log.line(at: Position(log.next.rawValue - 1))
            try expect(stored == line, "an appended line is not found")
            try log.close()
        } catch let error as BrokenProperty {
            throw error
        } catch let error as LogError where mode & 6 == 4 && error.code == .corrupt {
            // A forged checkpoint with valid checksums names frames that do not exist. Opening does not
            // read the covered part; a later read there throws.
            return
        } catch { throw BrokenProperty(description: "an opened log accepts no line: \(error)") }
        let after = read(files)
        try expect(after.failure == nil, "a closed log cannot be read: \(after.failure ?? "")")
        try expect(after.lines == opened.lines + [line], "appending changed what is read")
    }

    private static func line(at position: Position) -> [UInt8] {
        var line: [UInt8] = []
        LinePrefix(own: 0xABCD, source: 7, at: position).append(to: &line)
        return line
            + Array("fuzz\",\"partitionkey\":\"a\",\"time\":\"2026-02-22T10:30:14.425Z\"}".utf8)
    }

    // MARK: Repair

    /// Checks that a log that cannot be opened can be repaired, and is sound afterwards.
    private func repair(_ files: InMemoryFileSystem, after reason: LogError) throws {
        let repair = LogRepair(Self.path, environment: environment(files))
        var stage = "planning"
        do {
            let plan = try repair.plan()
            stage = "repair"
            let done = try repair.repair()
            stage = "planning again"
            try expect(
                plan.actions.map(\.name) == done.actions.map(\.name),
                "a repair differs from its plan")
            let reread = try repair.plan()
            try expect(reread.actions.isEmpty, "a repair leaves something to do")
            stage = "opening"
            let log = try open(files)
            try log.close()
        } catch let error as BrokenProperty {
            throw error
        } catch let error as LogError
            where error.code == .newerVersion || error.code == .unknownFeature
        {
            return
        } catch {
            throw BrokenProperty(description: "after \(reason): \(stage) throws \(error)")
        }
        let summary = try verify(files)
        try expect(summary?.findings.isEmpty ?? true, "a repaired log has findings")
    }
}
