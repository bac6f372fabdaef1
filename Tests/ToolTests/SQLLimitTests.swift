// The limits of logtool sql: each statement that exceeds one ends, and the message names the option that raises it.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite(.verifies("TOOL-58")) struct SQLLimitTests {
    private static let numbers =
        "with recursive c(n) as (select 1 union all select n + 1 from c where n < 100000)"

    private func sql(_ arguments: String...) throws -> ToolRun {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let run = try ToolRun.logtool("import", folder.log, Tool.sample)
        try #require(run.status == 0, "\(run.messages)")
        return try ToolRun.logtool("sql", [folder.log] + arguments)
    }

    @Test(arguments: [
        (
            "--time-limit", "0.1",
            "with recursive c(n) as (select 1 union all select n + 1 from c) select max(n) from c"
        ),
        // One call of a function that takes hours.
        (
            "--time-limit", "0.1",
            "select instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || 'x')"
        ),
        // The time is over before the view's table is folded, and before the events are read.
        ("--time-limit", "0.000000001", "select * from notes"),
        ("--time-limit", "0.000000001", "select type from events order by type"),
        ("--memory-limit", "8", "select hex(zeroblob(2000000))"),
        (
            "--memory-limit", "8",
            "select " + Array(repeating: "hex(zeroblob(100000))", count: 64).joined(separator: ", ")
        ),
        (
            "--temp-limit", "1",
            "\(numbers) select hex(randomblob(50)) as x from c order by x limit 1 offset 99999"
        ),
        ("--temp-limit", "1", "\(numbers) select count(distinct hex(randomblob(50))) from c"),
    ])
    func `a statement over a limit is 74, with the option that raises it`(
        option: String, value: String, statement: String
    ) throws {
        let run = try sql("select 1 as a; \(statement)", option, value)
        #expect(run.status == 74)
        #expect(run.messages.hasSuffix("raise it: \(option)\n"), "\(run.messages)")
        // The rows of the statements before it.
        #expect(run.output == "{\"a\":1}\n")
    }

    @Test func `0 sets no limit`() throws {
        let run = try sql(
            """
            \(Self.numbers) select length(x) as a from (select hex(randomblob(50)) as x from c) \
            order by x limit 1 offset 99999
            """, "--time-limit", "0", "--memory-limit", "0", "--temp-limit", "0")
        #expect(run.status == 0, "\(run.messages)")
        #expect(run.output == "{\"a\":100}\n")
    }
}
