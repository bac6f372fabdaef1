// The tools that a language model can call, each as one command of logtool. Spec/operations/logtool.md, TOOL-61.

import DaybookOffline
import EventSourcing
import Foundation

/// A tool, and the command that answers its calls.
struct LogToolCall {
    /// An argument of a tool.
    struct Argument {
        let name: String
        let type: Kind
        let description: String
        var isRequired = false
        /// The option of the command; nil for a plain argument.
        var option: String?

        enum Kind: String { case string, integer }
    }

    let name: String
    let command: String
    let description: String
    var arguments: [Argument] = []
    /// Arguments of the command after the log.
    var operands: [String] = []

    private static let at = Argument(
        name: "at", type: .integer,
        description: "A position: the log as it was then. Without it, the end of the log.",
        option: "--at")

    static let all: [LogToolCall] = [
        LogToolCall(
            name: "inspect", command: "inspect",
            description: "Summary of the log: events, segments, types, times, unsent events."),
        LogToolCall(
            name: "sql", command: "sql",
            description: """
                Answers a statement of SQLite with the rows as JSON lines. Tables: events (\(SQLCommand.eventColumns)), \
                segments, outbox, and the views \(SQLCommand.viewNames). Only reads. \
                `select * from notes limit 1` shows the columns of a view.
                """,
            arguments: [
                Argument(
                    name: "statement", type: .string,
                    description: "for example: select type, count(*) from events group by type",
                    isRequired: true), at,
            ]),
        LogToolCall(
            name: "view", command: "views",
            description: "The rows of one view, now or at an earlier position.",
            arguments: [
                Argument(
                    name: "name", type: .string,
                    description: "One of \(SQLCommand.viewNames), outbox.", isRequired: true), at,
            ]),
        LogToolCall(
            name: "outbox", command: "views",
            description: """
                The events that the server has not settled: waiting, parked with the server's reason, or in conflict.
                """,
            arguments: [at], operands: [Outbox.name]),
        LogToolCall(
            name: "why", command: "why",
            description: """
                The history of one event: when it was recorded, the server's answers, decisions, its present state.
                """,
            arguments: [
                Argument(
                    name: "id", type: .string, description: "The event's id, a UUID.",
                    isRequired: true)
            ]),
        LogToolCall(
            name: "doctor", command: "doctor",
            description:
                "What needs attention: damage, permissions, space, events that are not sent."),
    ]

    /// The description of the tool as the protocol has it.
    var json: JSONValue {
        var schema: [String: JSONValue] = [
            "type": .string("object"), "additionalProperties": .bool(false),
            "properties": .object(
                Dictionary(
                    uniqueKeysWithValues: arguments.map { argument in
                        (
                            argument.name,
                            .object([
                                "type": .string(argument.type.rawValue),
                                "description": .string(argument.description),
                            ])
                        )
                    })),
        ]
        let required = arguments.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { schema["required"] = .array(required) }
        return .object([
            "name": .string(name), "description": .string(description),
            "inputSchema": .object(schema),
            "annotations": .object([
                "readOnlyHint": .bool(true), "openWorldHint": .bool(false),
            ]),
        ])
    }

    /// The arguments of logtool for a call.
    ///
    /// - Throws: `Fault` for an argument that is unknown, missing or of another type.
    func commandLine(_ log: String, _ values: [String: JSONValue]) throws(Fault) -> [String] {
        if let unknown = values.keys.sorted().first(where: { name in
            !arguments.contains { $0.name == name }
        }) {
            throw Fault("the tool \(name) has no argument \(unknown)")
        }
        var (options, operands): ([String], [String]) = ([], operands)
        for argument in arguments {
            let value = values[argument.name] ?? .null
            guard let text = argument.text(value) else {
                let bound = argument.type == .string ? "at most 64 KiB" : "at least 0"
                throw Fault(
                    "the argument \(argument.name) must be of type \(argument.type), \(bound)")
            }
            guard !text.isEmpty else {
                guard !argument.isRequired else {
                    throw Fault("the tool \(name) needs the argument \(argument.name)")
                }
                continue
            }
            if let option = argument.option {
                options.append("\(option)=\(text)")
            } else {
                operands.append(text)
            }
        }
        return [command, "--output=ndjson"] + options + ["--", log] + operands
    }

    /// Why a request is refused.
    struct Fault: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }
}

extension LogToolCall.Argument {
    /// The most bytes of a text, less than a system allows in an argument.
    private static let textBytesMax = 64 * 1_024

    /// The value as text: empty for null; nil for a value of another type, or a text that is too long.
    fileprivate func text(_ value: JSONValue) -> String? {
        switch (type, value) {
        case (_, .null): ""
        case (.string, .string(let text)):
            text.utf8.contains(0) || text.utf8.count > Self.textBytesMax ? nil : text
        case (.integer, .number(let number)): UInt64(number.text).map(String.init)
        default: nil
        }
    }
}
