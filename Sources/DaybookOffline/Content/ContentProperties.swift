// Members of a server's JSON that no type here names: kept as they were written, from the folder
// layout through the log and back. Spec/model/content.md, CONT-37.

import Daybook

extension JSONFields {
    /// The members of an object beside those that its type names; nil if there are none. In a file
    /// they are stored among them, in an event in the member `properties`. A member `properties` that
    /// is no object counts as none: before, an event could have any value there.
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
    /// - Throws: as `checkedProperties`.
    mutating func addProperties(
        _ properties: [UInt8]?, _ spelling: ContentSpelling, beside names: [StaticString]
    ) throws(EventError) {
        guard let properties = try checkedProperties(properties, beside: names) else { return }
        if spelling.nestsProperties {
            add("properties", raw: properties)
        } else {
            addMembers(of: properties)
        }
    }
}

extension StateWriter {
    /// Writes properties, if there are any.
    mutating func addProperties(_ properties: [UInt8]?) {
        add(optional: properties.map { String(decoding: $0, as: UTF8.self) })
    }
}

extension StateReader {
    /// Reads what `addProperties(_:)` wrote.
    mutating func properties() throws(EventError) -> [UInt8]? {
        guard let text = try optionalString() else { return nil }
        guard let fields = try? JSONFields(Array(text.utf8)), !fields.names.isEmpty else {
            throw fault("properties are not an object with members")
        }
        return Array(text.utf8)
    }
}
