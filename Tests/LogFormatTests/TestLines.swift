// Lines and plaintext like a log's, for the tests of this target.

import DaybookTestKit
import LogFormat

enum TestLines {
    /// A stored line, newline included.
    static func line(_ position: UInt64, id: UInt128, source: UInt128 = 7) -> [UInt8] {
        var line: [UInt8] = []
        let prefix = LinePrefix(own: id, source: source, at: Position(position))
        prefix.append(to: &line)
        line += Array("x\",\"time\":\"2026-02-22T10:30:14.425Z\",\"data\":{}}\n".utf8)
        return line
    }

    /// A UUID out of a seeded generator.
    static func id(_ random: inout SeededRandom) -> UInt128 {
        UInt128(random.next()) << 64 | UInt128(random.next())
    }
}
