// A reply is parsed in one pass. The result is compared with that of a parser that builds a tree.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import Replay

@Suite struct VerdictReadingTests {
    /// The verdicts of a reply, member by member from its tree.
    private static func reference(_ body: [UInt8]) -> [Verdict]? {
        guard case .object(let members)? = try? JSONValue(body.span.bytes),
            case .array(let list)? = members["verdicts"]
        else { return nil }
        var verdicts: [Verdict] = []
        for element in list {
            // Foundation accepts texts that are not UUIDs.
            guard case .object(let verdict) = element, let text = verdict["id"]?.stringValue,
                text.wholeMatch(of: /(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/) != nil,
                let id = UUID(uuidString: text)
            else { return nil }
            var seconds: Double?
            if case .number(let number)? = verdict["retryAfterSeconds"] {
                seconds = number.doubleValue
            }
            verdicts.append(
                Verdict(
                    id: id,
                    status: verdict["status"]?.stringValue.flatMap(Verdict.Status.init)
                        ?? .unprocessed,
                    code: verdict["code"]?.stringValue, detail: verdict["detail"]?.stringValue,
                    current: verdict["current"], retryAfterSeconds: seconds))
        }
        return verdicts
    }

    private static func member(_ choices: inout Choices) -> String {
        let names = [
            "id", "status", "code", "detail", "current", "retryAfterSeconds", "other", "i\\u0064",
            "verdicts",
        ]
        let values = [
            "\"0a3e8ff8-bb52-454e-9574-3045281726ad\"", "\"0A3E8FF8-bb52-454e-9574-3045281726ad\"",
            "\"applied\"", "\"duplicate\"", "\"con\\u0066lict\"", "\"odd\"", "null", "7", "1.5e3",
            "{\"id\":\"x\"}", "[1]", "\"\"",
        ]
        let name = choices.element(of: names)
        let value = name == "id" && choices.bool() ? values[0] : choices.element(of: values)
        return "\"\(name)\":\(value)"
    }

    /// A verdict without white space as servers write it, or nearly.
    private static func plain(_ choices: inout Choices) -> String {
        let id = choices.element(of: [
            "0a3e8ff8-bb52-454e-9574-3045281726ad", "0A3E8FF8-BB52-454E-9574-3045281726AD",
            "0a3e8ff8-bb52-454e-9574-3045281726ag", "0a3e8ff8-bb52-454e-9574-3045281726a",
        ])
        let status = choices.element(of: ["applied", "duplicate", "rejected", "applied2"])
        let rest = choices.element(of: ["", " ", ",\"code\":\"source_fork\"", ",\"id\":\"x\""])
        return "{\"id\":\"\(id)\",\"status\":\"\(status)\"\(rest)}"
    }

    @Test func `a plain verdict that is cut anywhere is not a reply`() throws {
        let body = Array(
            "{\"verdicts\":[{\"id\":\"0a3e8ff8-bb52-454e-9574-3045281726ad\",\"status\":\"applied\"}]}"
                .utf8)
        try #require(Verdict.parse(body)?.count == 1)
        for length in 0..<body.count { #expect(Verdict.parse(Array(body[..<length])) == nil) }
    }

    @Test(.verifies("SYNC-21"))
    func `a reply is parsed like its tree, whatever its content`() throws {
        var read = 0
        try Property.check("verdicts", runs: 4_000) { choices in
            let verdicts = choices.array(0...4) { choices in
                guard !choices.bool(oneIn: 20) else { return "7" }
                guard !choices.bool() else { return Self.plain(&choices) }
                let first = "\"id\":\"0a3e8ff8-bb52-454e-9574-3045281726ad\""
                let members = [first] + choices.array(0...5) { Self.member(&$0) }
                return "{" + members.joined(separator: ", ") + "}"
            }
            var text = "{\"a\":1, \"verdicts\" : [\(verdicts.joined(separator: ","))]"
            if choices.bool(oneIn: 8) { text += ",\"verdicts\":\(choices.bool() ? "[]" : "7")" }
            var body = Array((text + "}").utf8)
            if choices.bool(oneIn: 4) {
                body[choices.int(in: 0...body.count - 1)] = UInt8(choices.int(in: 32...126))
            }
            let expected = Self.reference(body)
            try #require(Verdict.parse(body) == expected)
            if expected != nil { read += 1 }
        }
        #expect(read > 500)
    }
}
