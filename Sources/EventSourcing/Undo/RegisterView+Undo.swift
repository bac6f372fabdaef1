// The event that undoes one of a RegisterView, derived from the registers: the event's own data, with the values
// that the members have without it. Spec/model/undo.md, UNDO-3.

extension RegisterView {
    /// The data of an event that undoes or redoes another: with the values before it, or with its own.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - before: the views as if the event had never been recorded; nil to redo it.
    ///   - now: the views with the event.
    /// - Returns: nil if newer events have set every member.
    /// - Throws: `UndoError` (`noInverse`) for a member that was not set before; what `change(in:)` throws.
    static func compensatingData(
        of event: Event, before: ViewSet?, now: ViewSet
    ) throws -> [UInt8]? {
        let (change, now) = (try change(in: event), now.snapshot(Self.self))
        guard let before = before?.snapshot(Self.self) else {
            return try rewritten(event, change, now) { _ in nil }
        }
        return try rewritten(event, change, now, try before.values(before: event, change))
    }

    /// Returns a function that gives the JSON of a member of the key that an event changes.
    private func values(
        before event: Event, _ change: RegisterChange<Values>
    ) throws -> (String) throws -> [UInt8]? {
        let entry = registers[key: change.key]
        let fields = try (entry ?? MemberRegisters(initial: registers.initial)).fields()
        let values = Dictionary(uniqueKeysWithValues: fields.map { ($0.name, $0.json) })
        // A required member has an example in place of a value before a key's first event.
        let defaults = Set(
            ObjectSchema(of: Values.self).members.filter { !$0.isRequired }.map(\.name))
        return { name in
            guard let json = values[name], !json.elementsEqual("null".utf8),
                entry != nil || defaults.contains(name)
            else {
                throw UndoError(
                    .noInverse,
                    "the event \(event.id.text) (\(event.type)) cannot be undone: it was the first to set "
                        + "\(name), which has no earlier value")
            }
            return json
        }
    }

    /// The event's data with the members that it holds.
    ///
    /// - Parameter value: the JSON of a member; nil for that of the event.
    private static func rewritten(
        _ event: Event, _ change: RegisterChange<Values>, _ now: Self,
        _ value: (String) throws -> [UInt8]?
    ) throws -> [UInt8]? {
        let members = try now.holders(of: change)
        let held = Set(members.filter { $0.holder == event.lwwTimestamp }.map(\.name))
        guard !held.isEmpty, let data = event.content.json else { return nil }
        return try rewritten(try JSONFields(data), Set(members.map(\.name)), held, value)
    }

    /// An object with the held ones of some members, which are its own, or those of an object in it.
    private static func rewritten(
        _ fields: JSONFields, _ members: Set<String>, _ held: Set<String>,
        _ value: (String) throws -> [UInt8]?
    ) throws -> [UInt8]? {
        let isOwn = members.isSubset(of: fields.names)
        var object = JSONObjectWriter()
        var isFound = isOwn
        for name in fields.names {
            guard let json = fields.raw(named: name) else { continue }
            if isOwn {
                guard held.contains(name) || !members.contains(name) else { continue }
                let value = held.contains(name) ? try value(name) : nil
                object.appendMember(name, raw: value ?? json)
            } else if !isFound, let inner = try? JSONFields(json),
                let inner = try rewritten(inner, members, held, value)
            {
                isFound = true
                object.appendMember(name, raw: inner)
            } else {
                object.appendMember(name, raw: json)
            }
        }
        return isFound ? object.finished() : nil
    }
}
