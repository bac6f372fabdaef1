// A description as JSON, stored by databases that check events. Spec/operations/supabase.md, SUP-11.

extension EventSchema {
    /// The description as one JSON object.
    public var json: [UInt8] {
        var object = JSONObjectWriter()
        if let subject { object.add("subject", raw: Self.json(of: subject)) }
        if let lane { object.add("lane", raw: Self.json(of: lane)) }
        data.addMembers(to: &object)
        return object.finished()
    }

    /// An array in which texts, perhaps empty, and names of members alternate.
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
        if isChange { object.add("change", true) }
        object.add("members", raw: JSONObjectWriter.array(members.map(\.json)))
        if !constraints.isEmpty {
            object.add("rules", raw: JSONObjectWriter.array(constraints.map(\.json)))
        }
    }
}

extension MemberConstraint {
    /// An array: the rule's name, then what it is about.
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
        object.add("name", name)
        if !isRequired { object.add("optional", true) }
        kind.add(to: &object)
        return object.finished()
    }
}

extension MemberSchema.Kind {
    fileprivate func add(to object: inout JSONObjectWriter) {
        switch self {
        case .identifier: object.add("kind", "identifier")
        case .text(let isEmptyAllowed):
            object.add("kind", isEmptyAllowed ? "text" : "nonEmptyText")
        case .meaningful(let description, _):
            object.add("kind", "text")
            object.add("meaning", description)
        case .flag: object.add("kind", "flag")
        case .count(let range):
            object.add("kind", "count")
            if range.lowerBound > 0 { object.add("min", range.lowerBound) }
            if range.upperBound < .max { object.add("max", range.upperBound) }
        case .number(let range):
            object.add("kind", "number")
            let greatest = Double.greatestFiniteMagnitude
            if range.lowerBound > -greatest { object.add("min", range.lowerBound) }
            if range.upperBound < greatest { object.add("max", range.upperBound) }
        case .choice(let choices):
            object.add("kind", "choice")
            object.add("choices", raw: choices.json)
        case .object(let schema):
            object.add("kind", "object")
            schema?.addMembers(to: &object)
        case .list(let element, let count, let unique):
            object.add("kind", "list")
            if count.lowerBound > 0 { object.add("min", count.lowerBound) }
            if count.upperBound < .max { object.add("max", count.upperBound) }
            if let unique { object.add("unique", unique) }
            var inner = JSONObjectWriter()
            element.add(to: &inner)
            object.add("element", raw: inner.finished())
        }
    }
}

extension [String] {
    fileprivate var json: [UInt8] { JSONObjectWriter.array(map(JSONObjectWriter.string)) }
}
