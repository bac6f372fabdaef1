// logtool mcp, over its standard input and output as a client starts it. Spec/operations/logtool.md, TOOL-61.

import DaybookTestKit
import EventSourcing
import Foundation
import TestSupport
import Testing

@Suite(.verifies("TOOL-61")) struct ModelContextTests {
    private func withSample(_ body: (_ log: String) throws -> Void) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let run = try ToolRun.logtool("import", folder.log, Tool.sample)
        try #require(run.status == 0, "\(run.messages)")
        try body(folder.log)
    }

    /// Sends lines to the server of a log, and returns its answers by the text of their ids.
    private static func answers(
        to lines: [String], _ log: String = "", status: Int32 = 0
    ) throws -> [String: JSONValue] {
        let run = try ToolRun.logtool(
            "mcp", log, input: lines.map { $0 + "\n" }.joined())
        #expect(run.status == status, "\(run.messages)")
        var answers: [String: JSONValue] = [:]
        for line in run.output.split(separator: "\n") {
            let answer = try JSONValue(Array(line.utf8).span.bytes)
            #expect(answer["jsonrpc"] == .string("2.0"))
            let id = String(decoding: (answer["id"] ?? .null).json, as: UTF8.self)
            #expect(answers.updateValue(answer, forKey: id) == nil, "two answers to \(id)")
        }
        return answers
    }

    private static func call(_ id: Int, _ tool: String, _ arguments: String = "{}") -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","#
            + #""params":{"name":"\#(tool)","arguments":\#(arguments)}}"#
    }

    /// The texts of a call's result, and whether it is an error.
    private static func result(_ answer: JSONValue?) -> (text: String, isError: Bool) {
        guard case .array(let content)? = answer?["result"]?["content"] else { return ("", true) }
        let texts = content.compactMap { block -> String? in
            if case .string(let text)? = block["text"] { text } else { nil }
        }
        return (texts.joined(separator: "\n"), answer?["result"]?["isError"] == .bool(true))
    }

    @Test func `a client is told the revision, the release and the tools`() throws {
        try withSample { log in
            let answers = try Self.answers(
                to: [
                    #"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"#
                        + #""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}"#,
                    #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                    #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1"}}"#,
                    #"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
                    #"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
                ], log)
            #expect(answers.count == 4)
            let first = answers["\"a\""]?["result"]
            #expect(first?["protocolVersion"] == .string("2025-06-18"))
            #expect(first?["serverInfo"]?["version"] == .string(DaybookVersion.text))
            #expect(answers["1"]?["result"]?["protocolVersion"] == .string("2025-11-25"))
            #expect(answers["2"]?["result"] == .object([:]))
            guard case .array(let tools)? = answers["3"]?["result"]?["tools"] else {
                throw Failure("no tools")
            }
            #expect(
                tools.map { $0["name"] }
                    == ["inspect", "sql", "view", "outbox", "why", "doctor"].map { .string($0) })
            #expect(tools.allSatisfy { $0["annotations"]?["readOnlyHint"] == .bool(true) })
        }
    }

    @Test func `each tool answers as its command does`() throws {
        try withSample { log in
            let first = try ToolRun.logtool(
                "sql", log, "select id from events where position = 1")
            let id = try #require(first.output.split(separator: "\"").dropFirst(3).first)
            let calls: [(tool: String, arguments: String, command: [String])] = [
                ("inspect", "{}", ["inspect", log]),
                (
                    "sql", #"{"statement":"-- all\nselect count(*) as n from events"}"#,
                    ["sql", log, "select count(*) as n from events"]
                ),
                (
                    "sql", #"{"statement":"select max(position) from events","at":1}"#,
                    ["sql", log, "--at", "1", "select max(position) from events"]
                ),
                ("view", #"{"name":"cities"}"#, ["views", log, "cities"]),
                ("outbox", "{}", ["views", log, "outbox"]),
                ("why", #"{"id":"\#(id)"}"#, ["why", log, String(id)]),
                ("doctor", "{}", ["doctor", log]),
            ]
            let answers = try Self.answers(
                to: calls.enumerated().map { Self.call($0, $1.tool, $1.arguments) }, log)
            for (index, call) in calls.enumerated() {
                let (text, isError) = Self.result(answers["\(index)"])
                #expect(!isError, "\(call.tool): \(text)")
                let expected = try ToolRun.logtool(call.command[0], Array(call.command.dropFirst()))
                let texts = [
                    expected.output.isEmpty ? "No rows." : expected.output, expected.messages,
                ]
                #expect(
                    text == texts.filter { !$0.isEmpty }.joined(separator: "\n"), "\(call.tool)")
            }
        }
    }

    @Test func `a wrong call is an error that says what is wrong, and the next one is answered`()
        throws
    {
        try withSample { log in
            let calls: [(call: String, text: String)] = [
                (Self.call(0, "sql"), "needs the argument statement"),
                (Self.call(1, "sql", #"{"statement":7}"#), "must be of type string"),
                (Self.call(2, "view", #"{"name":"cities","at":"x"}"#), "must be of type integer"),
                (Self.call(3, "view", #"{"name":"nonsense"}"#), "no view \"nonsense\""),
                (Self.call(4, "why", #"{"id":"x"}"#), "not a UUID"),
                (Self.call(5, "sql", #"{"statement":"delete from events"}"#), "events"),
                (Self.call(6, "doctor", #"{"bundle":"/tmp/x"}"#), "no argument bundle"),
                (Self.call(7, "sql", #"{"statement":"select 1","at":99999}"#), "no position"),
            ]
            let answers = try Self.answers(
                to: calls.map(\.call) + [Self.call(8, "sql", #"{"statement":"select 1 as one"}"#)],
                log)
            for (index, call) in calls.enumerated() {
                let (text, isError) = Self.result(answers["\(index)"])
                #expect(isError, "\(call.call)")
                #expect(text.contains(call.text), "\(text)")
            }
            #expect(Self.result(answers["8"]).text == "{\"one\":1}\n")
        }
    }

    @Test(arguments: [
        ("{", -32_700), ("[]", -32_600), (#"{"id":1,"method":"ping"}"#, -32_600),
        (#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32_601),
        (#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"compact"}}"#, -32_602),
    ])
    func `a line that is no request gets an error of JSON-RPC`(line: String, code: Int) throws {
        try withSample { log in
            let answers = try Self.answers(to: ["", line], log)
            let answer = try #require(answers.values.first)
            #expect(answers.count == 1)
            guard case .number(let number)? = answer["error"]?["code"] else {
                throw Failure("no code")
            }
            #expect(number.text == "\(code)")
        }
    }

    @Test func `an answer without end is cut, and says so`() throws {
        try withSample { log in
            let statement =
                "with recursive n(i) as (select 1 union all select i + 1 from n) "
                + "select i, 'a text of some length' from n"
            let answers = try Self.answers(
                to: [Self.call(1, "sql", #"{"statement":"\#(statement)"}"#)], log)
            let (text, isError) = Self.result(answers["1"])
            #expect(!isError)
            #expect(text.hasSuffix("The answer was cut after 262144 bytes. Ask for less."))
            #expect(text.utf8.count < 300_000)
        }
    }

    @Test func `a folder without a log is refused before the first message`() throws {
        let answers = try Self.answers(to: [], "/nowhere", status: 66)
        #expect(answers.isEmpty)
    }

    @Test(.verifies("TOOL-62")) func `the tools print their release`() throws {
        #expect(try ToolRun.logtool("--version").output == "\(DaybookVersion.text)\n")
        #expect(try ToolRun.syncserver("--version").output == "\(DaybookVersion.text)\n")
    }

    private struct Failure: Error {
        init(_ text: String) { self.text = text }
        let text: String
    }
}

extension JSONValue {
    fileprivate subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }
}
