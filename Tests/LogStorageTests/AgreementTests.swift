// Opening, reading, verification and repair agree on a log: what one of them refuses, none of the others
// accepts. With any damage, alone or two at once. Spec/format/recovery.md and Spec/format/repair.md, REP-1.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@testable import LogStorage

@Suite struct AgreementTests {
    /// Damages one file of a log.
    private func damage(_ log: DamagedLog, _ choices: inout Choices) throws -> String {
        let segment = choices.int(in: 0...2)
        let path = log.path(segment)
        guard (try? log.read(path)) != nil else { return "gone" }
        let way = choices.int(in: 0...9)
        try log.change(path) { bytes in
            func place() -> Int { choices.int(in: 0...max(0, bytes.count - 1)) }
            switch way {
            case 0: if !bytes.isEmpty { bytes[place()] ^= 1 << UInt8(choices.int(in: 0...7)) }
            case 1: bytes.removeSubrange(place()...)
            case 2: bytes = []
            case 3: bytes = [UInt8](repeating: 0, count: 4_096 * choices.int(in: 1...16))
            case 4: bytes += [UInt8](repeating: 0, count: choices.int(in: 1...8_192))
            case 5: bytes += choices.bytes(count: choices.int(in: 1...40))
            case 6:
                let start = place() & ~511
                let range = start..<min(bytes.count, start + 512)
                bytes.replaceSubrange(range, with: repeatElement(0, count: range.count))
            case 7:
                // A footer with valid checksums that contradicts the lines.
                guard let length = SegmentFooter.length(atEnd: bytes.span.bytes),
                    length <= bytes.count,
                    var footer = try? SegmentFooter(
                        bytes.span.bytes.extracting(bytes.count - length..<bytes.count))
                else { return }
                switch choices.int(in: 0...4) {
                case 0:
                    let more = choices.int(in: 1...9)
                    footer.coveredThrough = footer.coveredThrough.advanced(by: more)
                case 1: footer.eventCount += UInt64(choices.int(in: 1...9))
                case 2:
                    footer.lines = footer.lines.map { Position.zero...$0.upperBound }
                case 3:
                    footer.lines = footer.lines.map {
                        $0.lowerBound...$0.upperBound.advanced(by: choices.int(in: 1...9))
                    }
                default: footer.eventCount -= 1
                }
                bytes.replaceSubrange((bytes.count - length)..., with: footer.encoded())
            case 8:
                guard var header = try? SegmentHeader(bytes.span.bytes) else { return }
                if choices.bool() { header.account = nil } else { header.logID ^= 1 }
                bytes.replaceSubrange(0..<SegmentHeader.encodedBytes, with: header.encoded())
            default:
                let size = (bytes.count + 4_095) / 4_096 * 4_096
                let end = choices.int(in: 512...max(512, bytes.count))
                bytes = bytes.prefix(end) + [UInt8](repeating: 0, count: max(0, size - end))
            }
        }
        return "way \(way) in segment \(segment)"
    }

    @Test(.verifies("REC-7"))
    func `a last footer that covers more than its last line is reported everywhere`() throws {
        let made = try DamagedLog(
            on: InMemoryFileSystem(), commits: DamagedLog.small, ending: .sealed)
        let log = try made.released()
        let files = try #require(log.files as? InMemoryFileSystem)
        var bytes = try log.read(log.path(2))
        let end = SegmentFooter.length(atEnd: bytes.span.bytes)
        let length = try #require(end)
        let start = bytes.count - length
        var footer = try SegmentFooter(bytes.span.bytes.extracting(start..<bytes.count))
        footer.coveredThrough = footer.coveredThrough.advanced(by: 3)
        bytes.replaceSubrange(start..., with: footer.encoded())
        try log.write(bytes, to: log.path(2))
        let found = try LogVerifier(TestLog.path, fileSystem: files).verify { _, _ in nil }.findings
        #expect(found.map(\.code) == ["corrupt"])
        try checkAgreement(log, files.snapshot(), "a footer that covers three positions more")
    }

    @Test(.verifies("REP-1", "REP-2", "REC-7", "CHK-5"))
    func `opening, reading, verification and repair agree on any damage`() throws {
        try Property.check("verdicts agree", runs: TestLog.isDebug ? 250 : 3_000) { choices in
            let ending = choices.element(of: DamagedLog.Ending.allCases)
            let made = try DamagedLog(
                on: InMemoryFileSystem(), commits: DamagedLog.small, ending: ending)
            let log = try made.released()
            let files = try #require(log.files as? InMemoryFileSystem)
            if choices.bool() {
                let open = try Log(at: TestLog.path, environment: TestLog.environment(files))
                try CheckpointSlots(TestLog.path, fileSystem: files).write(
                    try open.snapshot().checkpoint(states: [], createdAt: 1, seed: 5))
                try open.close()
            }
            var what: [String] = []
            for _ in 0..<choices.int(in: 1...2) {
                if choices.bool(oneIn: 12) {
                    let segment = choices.int(in: 0...2)
                    if (try? log.read(log.path(segment))) != nil {
                        try log.remove(log.path(segment))
                        what.append("removed \(segment)")
                    }
                } else {
                    what.append(try damage(log, &choices))
                }
            }
            let said = "\(ending): \(what.joined(separator: ", "))"
            choices.note(said)
            try checkAgreement(log, files.snapshot(), said)
        }
    }

    private func checkAgreement(
        _ log: DamagedLog, _ files: InMemoryFileSystem, _ what: String
    ) throws {
        let verifier = LogVerifier(TestLog.path, fileSystem: files)
        guard let found = try? verifier.verify({ _, _ in nil }).findings else {
            return  // Without a segment, no reader accepts the folder as a log.
        }
        var reading: LogError?
        do {
            try LogReader(TestLog.path, fileSystem: files).forEachLine { _, _ in true }
        } catch let error as LogError { reading = error }
        let repair = LogRepair(
            TestLog.path, account: DamagedLog.account, environment: TestLog.environment(files))
        let plan = try repair.plan()
        func open() throws(LogError) -> Log {
            try Log(
                at: TestLog.path, create: false,
                environment: TestLog.environment(files.snapshot()))
        }
        var opening: LogError?
        do throws(LogError) { try open().close() } catch { opening = error }

        try #require(
            found.isEmpty == plan.actions.isEmpty,
            "\(what): verification finds \(found), repair would do \(plan.actions)")
        if let opening {
            try #require(!found.isEmpty, "\(what): opening refuses (\(opening)), verify does not")
            try #require(reading != nil, "\(what): opening refuses (\(opening)), a reader does not")
        }
        if let reading {
            try #require(!found.isEmpty, "\(what): reading fails (\(reading)), verify is content")
        }
        guard !plan.actions.isEmpty else { return }
        _ = try repair.repair()
        let after = try verifier.verify { _, _ in nil }.findings
        try #require(after == [], "\(what): after the repair")
        try #require(try repair.plan().actions == [], "\(what): after the repair")
        let opened = try open()
        try opened.append(TestLog.line(opened.next.rawValue) + [UInt8(ascii: "\n")])
        try opened.close()
    }
}
