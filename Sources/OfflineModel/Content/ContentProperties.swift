// Members of a server's JSON that no type here names: kept as they were written, from the folder
// layout through the log and back. Spec/content.md, CONT-37.

import EventSourcing

extension JSONFields {
    /// The members of an object beside those that its type names: in a file they are stored among
    /// them, in an event in the member `properties`. Nil if there are none. A member `properties` of an event
    /// that is no object counts as none: an event made before had any meaning there.
    func properties(_ spelling: ContentSpelling, beside names: [StaticString]) -> [UInt8]? {
        // Parsed once more: a name with escapes may mean one of `names` only where its twin has gone.
        let object = spelling.nestsProperties ? raw("properties") : others(than: names)
        guard let object, let fields = try? JSONFields(object) else { return nil }
        return fields.others(than: names)
    }
}

extension JSONObjectWriter {
    /// Adds what `properties(_:beside:)` reads.
    ///
    /// - Throws: `EventError` (`invalidData`, `notJSON`) where `properties` is no object, or has a
    ///   member that the type names.
    mutating func add(
        properties: [UInt8]?, _ spelling: ContentSpelling, beside names: [StaticString]
    ) throws(EventError) {
        guard let properties else { return }
        let fields = try JSONFields(properties, place: "properties")
        if let name = names.first(where: { fields.raw($0) != nil }) {
            throw EventError(
                .invalidData, "properties.\(name) is a member of the type itself; remove it")
        }
        guard let others = fields.others(than: []) else { return }
        if spelling.nestsProperties {
            add("properties", raw: others)
        } else {
            add(membersOf: others)
        }
    }
}

extension StateWriter {
    /// Writes properties, if there are any.
    mutating func add(properties: [UInt8]?) {
        add(optional: properties.map { String(decoding: $0, as: UTF8.self) })
    }
}

extension StateReader {
    /// Reads what `add(properties:)` wrote.
    mutating func properties() throws(EventError) -> [UInt8]? {
        guard let text = try optionalString() else { return nil }
        guard let fields = try? JSONFields(Array(text.utf8)), !fields.names.isEmpty else {
            throw fault("properties are not an object with members")
        }
        return Array(text.utf8)
    }
}
