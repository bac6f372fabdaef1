// Random event data that follow a payload's declaration. Spec/model/events.md, EVT-18.

import Daybook

extension Choices {
    /// Draws data of an event type with any values that its declaration allows: empty and escaped texts, ends
    /// of ranges, omitted members.
    ///
    /// Identifiers come from a short list, in half of the cases the first, so that events share keys.
    ///
    /// - Parameters:
    ///   - type: the payload type.
    ///   - identifiers: the identifiers to choose from; at least one.
    /// - Throws: the error of a payload whose initializer checks more than its declaration.
    public mutating func payload<Payload: DeclaredPayload>(
        _ type: Payload.Type, identifiers: [String] = Self.hostileIdentifiers
    ) throws -> Payload {
        try Payload(json: object(ObjectSchema(of: type), identifiers))
    }

    /// Identifiers that look alike but differ in bytes, that are prefixes of each other, or that JSON must
    /// escape.
    public static let hostileIdentifiers = [
        "a", "b", "ab", "caf\u{E9}", "cafe\u{301}", "a\u{1}\"\\", "noteIdOf8Bytes", "noteIdOf",
    ]

    private static let texts = [
        "", "plain", "<p>\u{2713} \"quoted\"\\\r\n\t</p>", "\u{0}\u{1F}", "caf\u{E9}",
        "cafe\u{301}", String(repeating: "long ", count: 40),
    ]

    private mutating func object(_ schema: ObjectSchema, _ identifiers: [String]) -> [UInt8] {
        var values: [String: [UInt8]] = [:]
        for member in schema.members where member.isRequired || bool() {
            values[member.name] = value(member.kind, identifiers)
        }
        if schema.isChange, values.isEmpty, let member = schema.members.first {
            values[member.name] = value(member.kind, identifiers)
        }
        for constraint in schema.constraints {
            satisfy(constraint, of: schema, &values, identifiers)
        }
        var object = JSONObjectWriter()
        for member in schema.members {
            if let value = values[member.name] { object.appendMember(member.name, raw: value) }
        }
        return object.finished()
    }

    /// Changes values so that they satisfy a constraint.
    private mutating func satisfy(
        _ constraint: MemberConstraint, of schema: ObjectSchema, _ values: inout [String: [UInt8]],
        _ identifiers: [String]
    ) {
        func kind(_ name: String) -> MemberSchema.Kind? {
            schema.members.first { $0.name == name }?.kind
        }
        switch constraint {
        case .atMost(let smaller, let larger):
            guard let a = values[smaller], let b = values[larger] else { return }
            guard Self.number(a) > Self.number(b) else { return }
            switch (kind(smaller), kind(larger)) {
            case (.count(let one)?, .count(let other)?) where one.lowerBound <= other.upperBound:
                values[smaller] = Array("\(one.lowerBound)".utf8)
                values[larger] = Array("\(max(one.lowerBound, other.lowerBound))".utf8)
            case (.number(let one)?, .number(let other)?) where one.lowerBound <= other.upperBound:
                values[smaller] = Array("\(one.lowerBound)".utf8)
                values[larger] = Array("\(max(one.lowerBound, other.lowerBound))".utf8)
            default: return
            }
        case .atLeastOne(let names):
            guard names.allSatisfy({ values[$0].map { $0 == Array("[]".utf8) } ?? true }),
                let name = names.first, case .list(let element, _, _)? = kind(name)
            else { return }
            values[name] = JSONObjectWriter.array([value(element, identifiers)])
        case .requiredWhere(let member, let value, let name):
            guard values[member] == JSONObjectWriter.string(value), values[name] == nil,
                let kind = kind(name)
            else { return }
            values[name] = self.value(kind, identifiers)
        }
    }

    private static func number(_ json: [UInt8]) -> Double {
        Double(String(decoding: json, as: UTF8.self)) ?? 0
    }

    private mutating func value(
        _ kind: MemberSchema.Kind, _ identifiers: [String]
    ) -> [UInt8] {
        switch kind {
        case .identifier:
            let id = bool() ? element(of: identifiers) : identifiers[0]
            return JSONObjectWriter.string(id)
        case .text(let isEmptyAllowed):
            return JSONObjectWriter.string(
                element(of: isEmptyAllowed ? Self.texts : Array(Self.texts.dropFirst())))
        case .meaningful(_, let samples): return JSONObjectWriter.string(element(of: samples))
        case .flag: return Array("\(bool())".utf8)
        case .count(let range):
            let highest =
                range.upperBound - range.lowerBound > 9 ? range.lowerBound + 9 : range.upperBound
            let count = bool(oneIn: 9) ? range.upperBound : int(in: range.lowerBound...highest)
            return Array("\(count)".utf8)
        case .number(let range):
            let highest = min(range.upperBound, max(range.lowerBound, -100) + 200)
            let fraction = Double(int(in: 0...8)) / 8
            let lowest = max(range.lowerBound, highest - 200)
            return Array("\(lowest + (highest - lowest) * fraction)".utf8)
        case .choice(let choices): return JSONObjectWriter.string(element(of: choices))
        case .object(let schema?): return object(schema, identifiers)
        case .object(nil):
            return Array(element(of: ["{}", #"{"a":["\u2713",1e3,{"b":null}]}"#]).utf8)
        case .list(let element, let count, let unique):
            let maxCount =
                count.upperBound - count.lowerBound > 3 ? count.lowerBound + 3 : count.upperBound
            let elements = array(count.lowerBound...maxCount) { $0.value(element, identifiers) }
            return JSONObjectWriter.array(Self.unique(elements, by: unique))
        }
    }

    /// The elements without those that repeat an earlier one's identifier.
    private static func unique(_ elements: [[UInt8]], by name: String?) -> [[UInt8]] {
        guard let name else { return elements }
        var ids: Set<[UInt8]> = []
        return elements.filter { element in
            guard let id = (try? JSONFields(element))?.raw(named: name) else { return true }
            return ids.insert(id).inserted
        }
    }
}
