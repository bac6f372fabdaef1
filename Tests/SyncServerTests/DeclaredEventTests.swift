// The derivatives of the declarations of event data: the tables in Spec, the rules in SQL, random values.
// Spec/model/events.md, EVT-18.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct DeclaredEventTests {
    private static let catalogue = OfflineModel.catalogue
    private static let declared = catalogue.types.compactMap { catalogue[$0]?.schema }
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Expects the text between two lines of a file; writes it if DAYBOOK_UPDATE_GOLDEN is set.
    private func expect(
        _ text: String, in path: String, between first: String, and last: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let file = Self.root.appending(path: path)
        let content = try String(contentsOf: file, encoding: .utf8)
        let begin = try #require(content.range(of: first + "\n"), sourceLocation: sourceLocation)
        let end = try #require(
            content.range(of: last, range: begin.upperBound..<content.endIndex),
            sourceLocation: sourceLocation)
        let range = begin.upperBound..<end.lowerBound
        if ProcessInfo.processInfo.environment["DAYBOOK_UPDATE_GOLDEN"] != nil {
            let updated = content.replacingCharacters(in: range, with: text + "\n")
            if updated != content { try updated.write(to: file, atomically: true, encoding: .utf8) }
        } else {
            #expect(
                content[range] == text + "\n",
                "\(path) is out of date: run this test with DAYBOOK_UPDATE_GOLDEN=1",
                sourceLocation: sourceLocation)
        }
    }

    @Test(.verifies("EVT-18"))
    func `the tables of the page are those of the declarations`() throws {
        for isShipped in [true, false] {
            let schemas = Self.declared.filter {
                (Self.catalogue[$0.type]?.action != nil) == isShipped
            }
            let name = isShipped ? "shipped" : "kept"
            try expect(
                EventTable.text(of: schemas), in: "Spec/model/events.md",
                between: "<!-- \(name): written by DeclaredEventTests -->",
                and: "<!-- \(name): ends -->")
        }
    }

    @Test(.verifies("EVT-18", "SUP-11"))
    func `the SQL of a Supabase project has the catalogue's types`() throws {
        try expect(
            Self.catalogue.supabaseSQL,
            in: "Tools/syncserver/PostgreSQL/sql/supabase.sql",
            between: "-- The catalogue of the library, written by a test of it (EVT-18). Begins:",
            and: "-- Ends.")
    }

    /// The payload types whose declarations are complete: a copy of a city checks more than it declares.
    private static let payloads = catalogue.types.compactMap { type in
        catalogue[type]?.payload as? any DeclaredPayload.Type
    }.filter { $0 != CityCached.self }

    @Test(.verifies("EVT-18"))
    func `any value that a declaration allows is written, read and written alike`() throws {
        try Property.check("declared payloads", runs: 300) { choices in
            let type = choices.element(of: Self.payloads)
            try Self.checkRoundTrip(type, &choices)
        }
    }

    private static func checkRoundTrip<P: DeclaredPayload>(
        _ type: P.Type, _ choices: inout Choices
    ) throws {
        let payload = try choices.payload(type)
        let json = try payload.json()
        let again = try P(json: json)
        try #require(try again.json() == json, "\(type)")
        try #require(again.subjectText == payload.subjectText)
        try #require(again.laneText == payload.laneText)
        let schema = EventSchema(of: type)
        let members = try JSONFields(json)
        try #require(Set(members.names).isSubset(of: schema.data.members.map(\.name)), "\(type)")
        try #require(schema.subject(of: members) == payload.subjectText, "\(type)")
        try #require(schema.lane(of: members) == payload.laneText, "\(type)")
    }

    @Test(.verifies("EVT-18", "EVT-1"))
    func `a payload without a required member, or with null, is refused`() throws {
        try Property.check("members that must be there", runs: 300) { choices in
            let type = choices.element(of: Self.payloads)
            try Self.checkRefusals(type, &choices)
        }
    }

    private static func checkRefusals<P: DeclaredPayload>(
        _ type: P.Type, _ choices: inout Choices
    ) throws {
        let members = try JSONFields(try choices.payload(type).json())
        for member in ObjectSchema(of: type).members {
            for replacement in [nil, Array("null".utf8)]
            where replacement != nil || member.isRequired {
                var changed = JSONObjectWriter()
                for name in members.names where name != member.name {
                    changed.appendMember(name, raw: members.raw(named: name) ?? [])
                }
                if let replacement { changed.appendMember(member.name, raw: replacement) }
                let json = changed.finished()
                try #require(throws: EventError.self, "\(type) without \(member.name)") {
                    try P(json: json)
                }
            }
        }
    }
}

/// The table of declared data in the page.
private enum EventTable {
    static func text(of schemas: [EventSchema]) -> String {
        var lines = ["| type | data | |", "|---|---|---|"]
        var groups: [(types: [String], members: [String])] = []
        for schema in schemas {
            let name = "`\(schema.type.replacing("daybook.", with: ""))`"
            let members = rows(of: schema.data)
            if let index = groups.firstIndex(where: { $0.members == members }) {
                groups[index].types.append(name)
            } else {
                groups.append(([name], members))
            }
        }
        for row in groups {
            for (index, member) in row.members.enumerated() {
                let types = index == 0 ? " \(row.types.joined(separator: ", "))" : ""
                lines.append("|\(types) | \(member) |")
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Members with the same description share a row.
    private static func rows(of schema: ObjectSchema) -> [String] {
        var rows: [(names: [String], description: String)] = []
        for member in schema.members {
            let kind = description(of: member.kind)
            let hasArticle = ["a ", "an ", "the ", "one "].contains { kind.hasPrefix($0) }
            let text = member.isRequired ? kind : (hasArticle ? "optional: " : "optional ") + kind
            let rules = schema.constraints.compactMap { note(on: member.name, $0) }
            let description = ([text] + rules).joined(separator: "; ")
            if let last = rows.indices.last, rows[last].description == description {
                rows[last].names.append("`\(member.name)`")
            } else {
                rows.append((["`\(member.name)`"], description))
            }
        }
        return rows.map { "\($0.names.joined(separator: ", ")) | \($0.description)" }
    }

    private static func note(on name: String, _ constraint: MemberConstraint) -> String? {
        switch constraint {
        case .atMost(name, let larger): "at most `\(larger)`"
        case .atLeastOne(let names) where names.last == name:
            "together with \(names.dropLast().map { "`\($0)`" }.joined(separator: ", ")) at least one"
        case .requiredWhere(let member, let value, name):
            "required where `\(member)` is `\(value)`"
        default: nil
        }
    }

    private static func description(of kind: MemberSchema.Kind) -> String {
        switch kind {
        case .identifier: "identifier"
        case .text(let isEmptyAllowed): isEmptyAllowed ? "text" : "text, not empty"
        case .meaningful(let description, _): description
        case .flag: "flag"
        case .count(let range):
            switch (range.lowerBound, range.upperBound) {
            case (0, .max): "count"
            case (let least, .max): "count from \(least)"
            case (let least, let most): "count, \(least) to \(most)"
            }
        case .number(let range):
            switch (range.lowerBound, range.upperBound) {
            case (-Double.greatestFiniteMagnitude, .greatestFiniteMagnitude): "number"
            case (let least, .greatestFiniteMagnitude): "number from \(least.formatted())"
            case (let least, let most): "number, \(least.formatted()) to \(most.formatted())"
            }
        case .choice(let choices):
            "one of " + choices.map { "`\($0)`" }.joined(separator: ", ")
        case .object(nil): "an object, kept as it is written"
        case .object(let schema?):
            (schema.isChange ? "an object with at least one of, and nothing but: " : "an object: ")
                + members(of: schema)
        case .list(let element, let count, let unique):
            list(of: element, count, unique)
        }
    }

    private static func members(of schema: ObjectSchema) -> String {
        rows(of: schema).map { $0.replacing(" | ", with: " ") }.joined(separator: "; ")
    }

    private static func list(
        of element: MemberSchema.Kind, _ count: ClosedRange<Int>, _ unique: String?
    ) -> String {
        let size =
            switch (count.lowerBound, count.upperBound) {
            case (0, .max): "an array"
            case (1, .max): "an array, not empty,"
            case (_, let most): "an array of at most \(most)"
            }
        let elements =
            switch element {
            case .identifier: "identifiers"
            case .object(let schema?): "objects (\(members(of: schema)))"
            default: "\(description(of: element))"
            }
        let of = size.hasSuffix("\(count.upperBound)") ? " " : " of "
        return size + of + elements + (unique.map { "; no two with one `\($0)`" } ?? "")
    }
}
