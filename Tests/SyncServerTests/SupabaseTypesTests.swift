// The types that an app adds to a Supabase project: SQL accepts and refuses the same data as their payload
// types. Spec/operations/supabase.md, SUP-11.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

/// Data with a member of each kind, and each rule.
private struct Everything: DeclaredPayload {
    static let type = "com.example.everything"
    enum Level: String, CaseIterable, Sendable { case low, high }

    struct Stop: DeclaredObject {
        var id = "-"
        var place = Place()
        static var example: Self { Self() }
        mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
            try members.required("id", &id, .identifier)
            try members.required("place", &place, .object(Place.self))
        }
    }

    struct Place: DeclaredObject {
        var latitude = 0.0
        static var example: Self { Self() }
        mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
            try members.required("latitude", &latitude, .number(-90...90))
        }
    }

    struct Change: DeclaredObject {
        var name: String?
        var size: Int?
        static var example: Self { Self() }
        mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
            try members.optional("name", &name, .text)
            try members.optional("size", &size, .count(2...9))
        }
    }

    var id = "-"
    var label = "-"
    var note: String?
    var isOpen = false
    var from = 1
    var to = 1
    var ratio: Double?
    var level = Level.low
    var tags: [String] = []
    var levels: [Level] = []
    var stops: [Stop] = []
    var raw: [UInt8]?
    var changes = Change()

    static var example: Self { Self() }

    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("label", &label, .nonEmptyText)
        try members.optional("note", &note, .text)
        try members.required("isOpen", &isOpen, .flag)
        try members.required("from", &from, .count(1...20))
        try members.required("to", &to, .count(1...20))
        try members.constraint(.atMost("from", "to"), isMet: from <= to)
        try members.optional("ratio", &ratio, .number(0...1))
        try members.required("level", &level, .choice(Level.self))
        try members.constraint(
            .requiredWhere("level", is: "high", "ratio"), isMet: level != .high || ratio != nil)
        try members.optional("tags", &tags, .identifiers, missing: [])
        try members.required("levels", &levels, .choices(Level.self))
        try members.required("stops", &stops, .objects(Stop.self, uniqueBy: "id"))
        try members.optional("raw", &raw, .writtenObject)
        try members.constraint(
            .atLeastOne(["tags", "raw"]), isMet: !tags.isEmpty || raw != nil)
        try members.required("changes", &changes, .changes(Change.self))
    }

    var subject: String? { id }
    var lane: String? { "all:\(id):\(label)" }
}

/// Data without a subject: their lane is the type.
private struct Ticked: DeclaredPayload {
    static let type = "com.example.ticked"
    var times = 1
    static var example: Self { Self() }
    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("times", &times, .count)
    }
}

@Suite(.disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
struct SupabaseTypesTests {
    private static let catalogue = EventCatalogue([
        .of(Everything.self, action: "DO_ALL"), .of(Ticked.self, action: "TICK"),
    ])

    private func project() async throws -> SupabaseProject {
        let project = try await SupabaseProject()
        // It may be run again.
        for _ in 0..<2 {
            try await project.fixture.connect().runScript(Self.catalogue.supabaseSQL)
        }
        return project
    }

    /// Returns the data, and variants with each member left out or replaced by other JSON.
    private static func variants(of json: [UInt8]) throws -> [[UInt8]] {
        let members = try JSONFields(json)
        let others: [String?] = [
            nil, "null", #""""#, #""x""#, "true", "0", "-1", "2.5", "21", "1e400", "[]",
            #"["high"]"#,
            #"["x",""]"#, #"[{"id":"a","place":{"latitude":91}}]"#,
            #"[{"id":"a","place":{"latitude":9}},{"id":"a","place":{"latitude":9}}]"#, "{}",
            #"{"size":1}"#, #"{"name":"n"}"#, #"{"name":"n","other":1}"#,
        ]
        return [json]
            + members.names.flatMap { changed in
                others.map { other in
                    var object = JSONObjectWriter()
                    for name in members.names where name != changed {
                        object.appendMember(name, raw: members.raw(named: name) ?? [])
                    }
                    if let other { object.appendMember(changed, raw: Array(other.utf8)) }
                    return object.finished()
                }
            }
    }

    @Test(.verifies("SUP-11", "EVT-18"))
    func `an app's own types are accepted and refused as the app does it`() async throws {
        let project = try await project()
        var choices = Choices(seed: 20)
        var (accepted, refused) = (0, 0)
        for draw in 0..<4 {
            let payload = try choices.payload(
                Everything.self, identifiers: ["a", "caf\u{E9}", "b"])
            // PostgreSQL's jsonb has no U+0000: such a batch is refused as a whole (SUP-9).
            let data = try Self.variants(of: payload.json()).filter {
                !String(decoding: $0, as: UTF8.self).contains("\\u0000")
            }
            for start in stride(from: 0, to: data.count, by: 100) {
                let part = data[start..<min(start + 100, data.count)]
                let events = part.enumerated().map { index, json in
                    let id = (try? JSONFields(json).identifier("id")) ?? "a"
                    // A lane of its own: after a refusal the later events of a lane are not processed.
                    let number = UInt64(draw * 10_000 + start + index + 1)
                    return Sample(
                        sequence: number, type: Everything.type, subject: id,
                        lane: "lane-\(number)", data: String(decoding: json, as: UTF8.self))
                }
                let verdicts = try await project.append(events)
                for (json, verdict) in zip(part, verdicts) {
                    let isRead = (try? Everything(json: json)) != nil
                    #expect(
                        verdict["status"] as? String == (isRead ? "applied" : "rejected"),
                        "\(String(decoding: json, as: UTF8.self)): \(verdict)")
                    if isRead { accepted += 1 } else { refused += 1 }
                }
            }
        }
        #expect(accepted > 20, "\(accepted) accepted, \(refused) refused")
        #expect(refused > 100, "\(accepted) accepted, \(refused) refused")
    }

    @Test(.verifies("SUP-11"))
    func `subject and lane follow from the data of an app's own type`() async throws {
        let project = try await project()
        var all = Everything()
        (all.id, all.label, all.tags, all.levels) = ("caf\u{E9}", "x:y", ["t"], [.low])
        all.changes.size = 3
        let events = [
            Sample(
                sequence: 1, type: Everything.type, subject: all.id, lane: "wrong",
                data: String(decoding: try all.json(), as: UTF8.self)),
            Sample(
                sequence: 2, type: Ticked.type, subject: "s", lane: "wrong", data: #"{"times":3}"#),
        ]
        let verdicts = try await project.append(events)
        #expect(verdicts.map { $0["status"] as? String } == ["applied", "rejected"])
        let stored = try await project.all()
        #expect(stored.first?["partitionkey"] as? String == "all:caf\u{E9}:x:y")
    }

    @Test(.verifies("SUP-11"))
    func `a type that is no longer declared is no longer checked`() async throws {
        let project = try await project()
        let rule = EventRule(type: Ticked.type, action: "TICK") { _ in }
        try await project.fixture.connect().runScript(EventCatalogue([rule]).supabaseSQL)
        let event = Sample(
            sequence: 1, type: Ticked.type, subject: "s", lane: nil, data: #"{"times":"x"}"#)
        let verdict = try #require(try await project.append([event]).first)
        #expect(verdict["status"] as? String == "applied")
    }
}
