// The plots of inspect: they count every event, fit the terminal, and use bounded memory for any times.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import logtool

@Suite struct PlotTests {
    @Test(.verifies("TOOL-13")) func `a line and a bar grow with their values`() {
        let blocks = Plot(isUTF8: true)
        #expect(blocks.line([0, 1, 2, 3, 4, 5, 6, 7, 8]) == " ▁▂▃▄▅▆▇█")
        #expect(blocks.line([1]) == "█")
        #expect(blocks.line([0, 0]) == "  ")
        #expect(blocks.bar(1, of: 1, columns: 4) == "████")
        #expect(blocks.bar(1, of: 1_000_000, columns: 4) == "▏")
        #expect(blocks.bar(3, of: 8, columns: 2) == "▊")
        #expect(blocks.bar(0, of: 8, columns: 2) == "")
        let plain = Plot(isUTF8: false)
        #expect(plain.line([0, 1, 8]) == " .@")
        #expect(plain.bar(1, of: 2, columns: 6) == "###")
        for text in [plain.line(Array(0...20)), plain.bar(7, of: 9, columns: 20)] {
            #expect(text.utf8.allSatisfy { $0 < 0x80 })
        }
    }

    @Test(.verifies("TOOL-13")) func `a histogram counts every event, at any time`() throws {
        try Property.check("histogram", runs: 200) { choices in
            var histogram = TimeHistogram()
            let scale = choices.element(of: [10, 5_000, 1_000_000_000, 200_000_000_000_000])
            let times = choices.array(1...60) { Int64($0.int(in: -scale / 4...scale)) }
            for time in times { histogram.add(time, bytes: 3) }
            for count in [1, 7, 60] {
                let columns = histogram.columns(count)
                try #require(columns.count <= count)
                try #require(columns.reduce(0) { $0 + $1.events } == times.count)
                try #require(columns.reduce(0) { $0 + $1.bytes } == 3 * times.count)
                // The first and the last event are in the first and the last column.
                try #require(columns.first?.events != 0)
                try #require(columns.last?.events != 0)
            }
        }
    }

    @Test(.verifies("TOOL-13"))
    func `inspect's plots fit the terminal, and types cannot control it`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let lines = (0..<30).map { number in
            let id = UUID().uuidString.lowercased()
            let type =
                number % 3 == 0
                ? "com.example.a.type.with.a.name.that.is.longer.than.most\(number)"
                : "com.example.\\u001b[31m\(number % 3)"
            return """
                {"specversion":"1.0","id":"\(id)","source":"x","type":"\(type)",\
                "time":"20\(10 + number)-01-01T00:00:00Z","subject":"s"}
                """
        }
        let file = try folder.file("events", content: lines.joined(separator: "\n"))
        #expect(try ToolRun.logtool("import", folder.log, file.path).status == 0)
        let run = try ToolRun.logtool("inspect", folder.log, "--output", "table")
        let plot = run.output.split(separator: "\n").drop { $0 != "over time" }
        #expect(plot.count == 3 + 1 + 12)
        for line in plot { #expect(line.count <= 80, "\(line)") }
        #expect(!run.output.contains("\u{1B}"))
        #expect(run.output.contains("▁") || run.output.contains("█"))
    }
}
