// Progress: a plain line, or a bar of a terminal's width, in ASCII if necessary.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import logtool

@Suite struct ProgressTests {
    private func text(
        _ share: Double?, count: Int = 17_000, seconds: Double = 10, unit: String? = "events"
    ) -> ProgressText {
        ProgressText(
            verb: "imported", unit: unit, count: count, share: share, secondsElapsed: seconds)
    }

    @Test(.verifies("TOOL-12")) func `a plain line has count, share, rate and time left`() {
        #expect(text(0.2).line == "imported 17,000 events, 20 %, 1,700/s, 40 s left")
        #expect(text(nil).line == "imported 17,000 events, 1,700/s")
        #expect(text(1).line == "imported 17,000 events, 99 %, 1,700/s")
        #expect(text(0.001).line == "imported 17,000 events, 0 %, 1,700/s")
        #expect(text(0, count: 0, seconds: 0).line == "imported 0 events, 0 %, 0/s")
        #expect(
            text(0.5, count: 25_300_000, unit: nil).line
                == "imported 25.3 MB, 50 %, 2.5 MB/s, 10 s left")
        #expect(text(0.01, seconds: 300).line.hasSuffix("8:15:00 left"))
        #expect(text(0.5, seconds: 100).line.hasSuffix("1:40 left"))
    }

    @Test(.verifies("TOOL-12")) func `a bar is never longer than the line`() {
        for columns in 1...130 {
            for share in [nil, 0, 0.37, 1] as [Double?] {
                let bar = text(share).bar(columns: columns, isUTF8: true)
                #expect(bar.count <= columns)
            }
        }
        #expect(
            text(0.5).bar(columns: 79, isUTF8: true)
                == "imported ███████████████░░░░░░░░░░░░░░░ 50 %, 17,000 events, 1,700/s, "
                + "10 s left")
        #expect(
            text(0.25).bar(columns: 60, isUTF8: false)
                == "imported ##......... 25 %, 17,000 events, 1,700/s, 30 s left")
        #expect(
            text(0.25).bar(columns: 40, isUTF8: true) == "imported 17,000 events, 25 %, 1,700/s, 3")
    }

    @Test(.verifies("TOOL-12")) func `the locale determines whether more than ASCII is used`() {
        #expect(Terminal.isUTF8(["LANG": "en_US.UTF-8"]))
        #expect(Terminal.isUTF8(["LANG": "C", "LC_ALL": "C.utf8"]))
        #expect(!Terminal.isUTF8(["LANG": "en_US.UTF-8", "LC_ALL": "C"]))
        #expect(Terminal.isUTF8(["LANG": "en_US.UTF-8", "LC_ALL": ""]))
        #expect(!Terminal.isUTF8(["LC_CTYPE": "de_DE.ISO-8859-1@euro"]))
        #expect(!Terminal.isUTF8([:]))
    }

    @Test(.verifies("TOOL-12")) func `short work prints no progress`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let run = try ToolRun.logtool("import", folder.log, Tool.sample)
        #expect(run.messages.isEmpty)
        #expect(try ToolRun.logtool("inspect", folder.log).messages.isEmpty)
    }
}
