// An event schema as JSON, for databases that check events. Spec/operations/supabase.md, SUP-11.

extension EventSchema {
    /// The description as one JSON object.
    public var json: [UInt8] {
        var object = JSONObjectWriter()
        if let subject { object.appendMember("subject", raw: Self.json(of: subject)) }
        if let lane { object.appendMember("lane", raw: Self.json(of: lane)) }
        data.addMembers(to: &object)
        return object.finished()
    }

    /// An array in which literal texts, possibly empty, and names of members alternate.
    private static func json(of parts: [Part]) -> [UInt8] {
        var strings: [String] = []
        for part in parts {
            switch part {
            case .text(let text): strings.append(text)
            case .member(let name):
                if strings.count.isMultiple(of: 2) { strings.append("") }
                strings.append(name)
            }
        }
        return strings.json
    }
}

extension ObjectSchema {
    fileprivate func addMembers(to object: inout JSONObjectWriter) {
        if isChange { object.appendMember("change", true) }
        object.appendMember("members", raw: JSONObjectWriter.array(members.map(\.json)))
        if !constraints.isEmpty {
            object.appendMember("rules", raw: JSONObjectWriter.array(constraints.map(\.json)))
        }
    }
}

extension MemberConstraint {
    /// An array: the constraint's name, then its arguments.
    fileprivate var json: [UInt8] {
        switch self {
        case .atMost(let smaller, let larger): ["atMost", smaller, larger].json
        case .atLeastOne(let names): (["atLeastOne"] + names).json
        case .requiredWhere(let member, let value, let name):
            ["requiredWhere", member, value, name].json
        }
    }
}

extension MemberSchema {
    fileprivate var json: [UInt8] {
        var object = JSONObjectWriter()
        object.appendMember("name", name)
        if !isRequired { object.appendMember("optional", true) }
        kind.appendMembers(to: &object)
        return object.finished()
    }
}

extension MemberSchema.Kind {
    fileprivate func appendMembers(to object: inout JSONObjectWriter) {
        switch self {
        case .identifier: object.appendMember("kind", "identifier")
        case .text(let isEmptyAllowed):
            object.appendMember("kind", isEmptyAllowed ? "text" : "nonEmptyText")
        case .meaningful(let description, _):
            object.appendMember("kind", "text")
            object.appendMember("meaning", description)
        case .flag: object.appendMember("kind", "flag")
        case .count(let range):
            object.appendMember("kind", "count")
            if range.lowerBound > 0 { object.appendMember("min", range.lowerBound) }
            if range.upperBound < .max { object.appendMember("max", range.upperBound) }
        case .number(let range):
            object.appendMember("kind", "number")
            let greatest = Double.greatestFiniteMagnitude
            if range.lowerBound > -greatest { object.appendMember("min", range.lowerBound) }
            if range.upperBound < greatest { object.appendMember("max", range.upperBound) }
        case .choice(let choices):
            object.appendMember("kind", "choice")
            object.appendMember("choices", raw: choices.json)
        case .object(let schema):
            object.appendMember("kind", "object")
            schema?.addMembers(to: &object)
        case .list(let element, let count, let unique):
            object.appendMember("kind", "list")
            if count.lowerBound > 0 { object.appendMember("min", count.lowerBound) }
            if count.upperBound < .max { object.appendMember("max", count.upperBound) }
            if let unique { object.appendMember("unique", unique) }
            var inner = JSONObjectWriter()
            element.appendMembers(to: &inner)
            object.appendMember("element", raw: inner.finished())
        }
    }
}

extension [String] {
    fileprivate var json: [UInt8] { JSONObjectWriter.array(map(JSONObjectWriter.string)) }
}
