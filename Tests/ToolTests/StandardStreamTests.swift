// Closed, full or broken standard streams, too few file descriptors, and content that would control a
// terminal.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import logtool

@Suite struct StandardStreamTests {
    private let tool = Tool.binary("logtool").path

    /// A log with some events.
    private func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try #require(try ToolRun.logtool("import", folder.log, Tool.sample).status == 0)
        return folder
    }

    @Test(
        .verifies("TOOL-33"),
        arguments: [
            "inspect $log", "inspect $log --events --output table", "verify $log", "views $log",
            "export $log -", "parked $log", "why $log 0", "inspect $log/nothing",
            "import $log $log/nothing", "repair $log", "compact $log --dry-run",
        ])
    func `an unwritable standard error changes nothing but the messages`(
        command: String
    ) throws {
        let folder = try folder()
        defer { folder.remove() }
        func run(_ redirection: String) throws -> ToolRun {
            try ToolRun.shell(
                "tool='\(tool)'; log='\(folder.log)'; \"$tool\" \(command) \(redirection)")
        }
        let normal = try run("")
        for redirection in ["2>&-", "2>/dev/full"] {
            let run = try run(redirection)
            #expect(run.status == normal.status, "\(redirection)")
            #expect(run.output == normal.output, "\(redirection)")
            #expect(run.messages.isEmpty)
        }
    }

    @Test(
        .verifies("TOOL-33"),
        arguments: [
            "inspect $log", "inspect $log --events", "inspect $log --events --output table",
            "views $log", "export $log -", "import $log $sample --ack", "import $log $sample",
            "--help", "help import",
        ])
    func `an unwritable standard output is 74, and no file of the log gets its descriptor`(
        command: String
    ) throws {
        let folder = try folder()
        defer { folder.remove() }
        for redirection in [">&-", ">/dev/full", ">&- 2>&-", "<&- >&-", "<&- >/dev/full 2>&-"] {
            let run = try ToolRun.shell(
                "tool='\(tool)'; log='\(folder.log)'; sample='\(Tool.sample)'; "
                    + "\"$tool\" \(command) \(redirection)")
            #expect(run.status == 74, "\(command) \(redirection): \(run.status)")
            if !redirection.contains("2>") {
                #expect(run.messages.contains("logtool: standard output: "), "\(run.messages)")
            }
        }
        let verifying = try ToolRun.logtool("verify", folder.log)
        #expect(verifying.status == 0, "\(verifying.output)\(verifying.messages)")
    }

    @Test(
        .verifies("TOOL-33"),
        arguments: [
            ("import $folder/new $sample", "recorded before the error: 56 events, 0 already"),
            ("import $folder/new $sample --ack", "recorded before the error: "),
            ("backup $log $folder/copy", "the backup is complete"),
            ("export $log $folder/file", "the export is complete"),
            ("compact $log", "the compaction is complete"),
        ])
    func `a command whose output cannot be written says what it has done`(
        command: String, done: String
    ) throws {
        let folder = try folder()
        defer { folder.remove() }
        let run = try ToolRun.shell(
            "folder='\(folder.path)'; log='\(folder.log)'; sample='\(Tool.sample)'; "
                + "'\(tool)' \(command) >/dev/full")
        #expect(run.status == 74)
        #expect(run.messages.contains(done), "\(run.messages)")
    }

    @Test(.verifies("TOOL-33"))
    func `a closed standard output ends the command by SIGPIPE, a closed standard error does not`()
        throws
    {
        let folder = try folder()
        defer { folder.remove() }
        let piped = try ToolRun.shell(
            "bash -c '\"\(tool)\" inspect \"\(folder.log)\" --events --follow | head -1; "
                + "echo ${PIPESTATUS[0]}' & pid=$!; sleep 1; "
                + "'\(tool)' import '\(folder.log)' '\(Tool.sampleContent)' >/dev/null; wait $pid")
        #expect(piped.output.hasSuffix("\n141\n"), "\(piped.output.suffix(40))")
        let silent = try ToolRun.shell(
            "bash -c '{ sleep 1; \"\(tool)\" verify \"\(folder.log)\" 2>&1 >/dev/null; } | true; "
                + "echo ${PIPESTATUS[0]}'")
        #expect(silent.output == "0\n", "\(silent.output)")
    }

    @Test(.verifies("TOOL-33"))
    func `following an idle log ends when its reader has ended or its output is closed`() throws {
        let folder = try folder()
        defer { folder.remove() }
        let follow = "'\(tool)' inspect '\(folder.log)' --events --follow"
        let piped = try ToolRun.shell(
            "bash -c '{ \(follow.replacing("'", with: "\"")); echo $? >&2; } | head -1' 2>&1")
        #expect(piped.output.hasSuffix("\n141\n"), "\(piped.output.suffix(40))")
        let closed = try ToolRun.shell("\(follow) --from 1000000 >&-")
        #expect(closed.status == 74)
    }

    @Test(.verifies("TOOL-4"))
    func `an import that finds no space says how much it recorded`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        var choices = Choices(seed: 3)
        let lines = (0..<400).map { number in
            let noise = choices.bytes(count: 600).map { String($0, radix: 16) }.joined()
            return
                #"{"specversion":"1.0","id":"\#(UUID())","type":"com.example.t","data":"\#(noise)"}"#
        }
        let file = try folder.file("events.ndjson", content: lines.joined(separator: "\n"))
        let run = try ToolRun.shell(
            "trap '' XFSZ; ulimit -f 256; '\(tool)' import '\(folder.log)' '\(file.path)' --batch 10"
        )
        #expect(run.status == 74, "\(run)")
        let recorded = try #require(
            run.messages.firstMatch(of: /recorded before the error: (\d+) events/))
        let count = try #require(Int(recorded.1))
        #expect(1..<400 ~= count)
        let listed = try ToolRun.logtool("inspect", folder.log, "--events")
        #expect(listed.output.split(separator: "\n").count == count)
    }

    @Test(.verifies("TOOL-33"), arguments: 3...16)
    func `with few file descriptors a command works or reports the failure`(limit: Int) throws {
        let folder = try folder()
        defer { folder.remove() }
        for command in [
            "inspect $log", "verify $log", "views $log", "export $log -",
            "import $log \(Tool.sampleContent)", "compact $log", "repair $log",
            "replay $log --to http://127.0.0.1:9 --once",
        ] {
            let run = try ToolRun.shell(
                "tool='\(tool)'; log='\(folder.log)'; ulimit -n \(limit); \"$tool\" \(command)")
            // 127 means that the system cannot load the program.
            #expect([0, 74, 127].contains(run.status), "\(command): \(run)")
            if run.status == 74 { #expect(run.messages.contains("open files"), "\(run)") }
        }
        #expect(try ToolRun.logtool("verify", folder.log).status == 0)
    }

    @Test(.verifies("TOOL-33"))
    func `with the required file descriptors every command works`() throws {
        let folder = try folder()
        defer { folder.remove() }
        for (command, status) in [
            ("import $log \(Tool.sampleContent)", 0), ("inspect $log", 0), ("verify $log", 0),
            ("views $log", 0), ("export $log -", 0), ("compact $log", 0), ("repair $log", 0),
            ("replay $log --to http://127.0.0.1:9 --once --receive", 75),
        ] {
            let run = try ToolRun.shell(
                "tool='\(tool)'; log='\(folder.log)'; ulimit -n 40; \"$tool\" \(command)")
            #expect(run.status == status, "\(command): \(run)")
        }
    }

    // MARK: Terminals

    private static let unsafe = [
        "\u{202E}", "\u{2066}", "\u{200B}", "\u{2028}", "\u{2029}", "\u{FEFF}", "\u{E0001}",
        "\u{9B}", "\u{7F}", "\u{1B}",
    ]

    @Test(.verifies("TOOL-34"))
    func `a table shows no character that controls a terminal or reverses text`() throws {
        for text in Self.unsafe {
            let shown = Table.printable("a\(text)b")
            #expect(!shown.unicodeScalars.contains(where: Terminal.isUnsafe), "\(shown)")
            #expect(shown.hasPrefix("a"))
            #expect(shown.hasSuffix("b"))
            #expect(shown.count > 2)
        }
        #expect(Table.printable("a\u{202E}b\u{E0001}") == "a\\u202eb\\udb40\\udc01")
        #expect(
            Table.printable("Kaffe på hjørnet 日本 👍🏽 e\u{301}") == "Kaffe på hjørnet 日本 👍🏽 e\u{301}")
    }

    @Test(.verifies("TOOL-34"))
    func `JSON on a terminal has escapes, elsewhere the stored bytes`() throws {
        for text in Self.unsafe {
            var json: [UInt8] = []
            JSONText.append("a\(text)b", to: &json)
            let escaped = Terminal.escaped(json: json + Array("\n".utf8))
            #expect(escaped.last == UInt8(ascii: "\n"))
            #expect(
                !String(decoding: escaped.dropLast(), as: UTF8.self).unicodeScalars
                    .contains(where: Terminal.isUnsafe))
            #expect(try JSONValue(escaped.span.bytes) == .string("a\(text)b"))
        }
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let data = "{\"x\":\"\(Self.unsafe.dropLast().joined())\"}"
        let line = """
            {"specversion":"1.0","id":"\(UUID().uuidString)","type":"t","data":\(data)}
            """
        try #require(try ToolRun.logtool("import", folder.log, "-", input: line).status == 0)
        let stored = try ToolRun.logtool("inspect", folder.log, "--events")
        #expect(stored.output.contains(data))
        #expect(try ToolRun.logtool("export", folder.log, "-").output.contains(data))
        // `script` runs the command on a terminal.
        let terminal = try ToolRun.shell(
            "script -qec \"'\(tool)' inspect '\(folder.log)' --events --output ndjson\" /dev/null")
        #expect(terminal.output.contains("\\u202e\\u2066\\u200b\\u2028\\u2029\\ufeff"))
        #expect(terminal.output.contains("\\u009b\\u007f"))
    }

    @Test(.verifies("TOOL-34"))
    func `a cell of a large value shows its beginning`() throws {
        func table(_ json: String) -> String { Table.truncatedCell(Array(json.utf8)) }
        let long = String(repeating: "x", count: 10_000)
        #expect(table("\"\(long)\"") == String(long.prefix(59)) + "…")
        #expect(table("{\"a\":\"\(long)\"}") == "{\"a\":\"" + String(long.prefix(53)) + "…")
        for padding in 4_080...4_100 {
            // An escape or a character of several bytes is where the value is truncated.
            for tail in ["\\u00e5\\n", "\\\\\\\\", "日本語", "\\ud83d\\ude00"] {
                let mark = String(repeating: "\u{301}", count: padding / 2)
                let tails = String(repeating: tail, count: 10)
                let cell = table("\"e\(mark)\(tails)\"")
                #expect(cell.hasSuffix("…"))
                #expect(cell.unicodeScalars.starts(with: "e".unicodeScalars))
                #expect(!cell.contains("\u{FFFD}") || tail.contains("ud83d"))
            }
        }
        #expect(table("\"\(String(repeating: "å", count: 60))\"").count == 60)
        #expect(table("\"\(String(repeating: "å", count: 61))\"").hasSuffix("å…"))
        #expect(table("null") == "")
        #expect(table("12") == "12")
    }

    @Test(.verifies("TOOL-34"))
    func `a table of large events is written in bounded memory`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let content = String(repeating: "x", count: 1_000_000)
        let lines = (0..<150).map { _ in
            "{\"specversion\":\"1.0\",\"id\":\"\(UUID().uuidString)\",\"type\":\"t\",\"data\":\"\(content)\"}"
        }
        let run = try ToolRun.logtool(
            "import", folder.log, "-", input: lines.joined(separator: "\n"))
        try #require(run.status == 0, "\(run.messages)")
        let table = try ToolRun.shell(
            "ulimit -d 180000; '\(tool)' inspect '\(folder.log)' --events --output table")
        #expect(table.status == 0, "\(table.messages)")
        #expect(table.output.split(separator: "\n").count == 151)
        #expect(table.output.utf8.count < 151 * 140)
    }
}
