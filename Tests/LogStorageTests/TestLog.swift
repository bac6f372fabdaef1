// A log with generated lines on a file system in memory, used by most tests of this target.

import DaybookTestKit
import LogFormat
import LogStorage

/// A file system, the log in it, and every line that was acknowledged.
struct TestLog {
    static let path = "/log"

    let files: InMemoryFileSystem
    /// Acknowledged lines, newline not included, from position 1.
    var lines: [[UInt8]] = []

    init(files: InMemoryFileSystem = InMemoryFileSystem()) { self.files = files }

    func environment() -> LogEnvironment { Self.environment(files) }

    /// A fixed clock, and random numbers that are the same in every run.
    static func environment(_ files: any FileSystem) -> LogEnvironment {
        let random = SeededSource(seed: 77)
        return LogEnvironment(
            fileSystem: files, now: { 1_771_756_214_425 }, random: { random.next() })
    }

    func open(account: String? = nil, create: Bool = true) throws -> Log {
        try Log(at: Self.path, account: account, create: create, environment: environment())
    }

    /// The line for a position, newline not included. `padding` bytes of hexadecimal noise make it
    /// longer and hard to compress.
    static func line(_ position: UInt64, padding: Int = 0) -> [UInt8] {
        var random = SeededRandom(seed: position)
        let id = UInt128(random.next()) << 64 | UInt128(random.next())
        var line: [UInt8] = []
        LinePrefix(own: id, source: 7, at: Position(position))
            .append(to: &line)
        line += Array("x\",\"time\":\"2026-02-22T10:30:14.425Z\",\"data\":{\"n\":\"".utf8)
        let start = Int(position &* 70_001 % UInt64(noise.count))
        var missing = padding
        while missing > 0 {
            let from = missing == padding ? start : 0
            let count = min(missing, noise.count - from)
            line += noise[from..<from + count]
            missing -= count
        }
        return line + Array("\"}}".utf8)
    }

    /// Hexadecimal noise, longer than a compressor's window.
    private static let noise: [UInt8] = {
        let digits = Array("0123456789abcdef".utf8)
        var choices = Choices(seed: 5)
        return choices.bytes(count: 500_000).map { digits[Int($0 & 15)] }
    }()

    /// True in a build without optimisation, in which tests of millions of bytes take minutes.
    static let isDebug: Bool = {
        #if DEBUG
            true
        #else
            false
        #endif
    }()

    static func id(_ position: UInt64) -> UInt128 {
        var random = SeededRandom(seed: position)
        return UInt128(random.next()) << 64 | UInt128(random.next())
    }

    /// Appends one commit of new lines, one for each padding.
    mutating func append(to log: Log, paddings: [Int]) throws {
        let made = paddings.enumerated().map {
            Self.line(log.next.rawValue + UInt64($0), padding: $1)
        }
        try log.append(made.flatMap { $0 + [UInt8(ascii: "\n")] })
        lines += made
    }

    /// The segments' paths, in order.
    static func segments(_ files: InMemoryFileSystem) -> [String] {
        files.image.keys.filter { $0.hasSuffix(".lz4") }.sorted()
    }

    /// All lines of a log, read without its lock.
    static func read(_ files: any FileSystem, at path: String = path) throws -> [[UInt8]] {
        var lines: [[UInt8]] = []
        try LogReader(path, fileSystem: files).forEachLine { _, line in
            lines.append(line.array)
            return true
        }
        return lines
    }
}
