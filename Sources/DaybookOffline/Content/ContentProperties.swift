// Members of the server's JSON that the types do not name. They are kept as they were written, from the
// folder layout to the log and back. Spec/model/content.md, CONT-37.

import Daybook

extension JSONFields {
    /// The members of an object that its type does not name; nil if there are none. A file stores them
    /// next to the named ones, an event in the member `properties`. A member `properties` that is no
    /// object is ignored.
    func properties(_ spelling: ContentSpelling, beside names: [StaticString]) -> [UInt8]? {
        // Parsed again: a name with escapes may equal one of `names` once its duplicate was removed.
        let object = spelling.nestsProperties ? raw("properties") : others(than: names)
        guard let object, let fields = try? JSONFields(object) else { return nil }
        return fields.others(than: names)
    }
}

extension JSONFields {
    /// The object with the names that this project gives to its members. Folders of other years have other
    /// names for some of them; a member with the present name has precedence. In events nothing is renamed.
    ///
    /// - Parameter names: the present name for each other name.
    func renamed(
        _ names: KeyValuePairs<StaticString, StaticString>, _ spelling: ContentSpelling
    ) throws(EventError) -> JSONFields {
        guard spelling.isFolder else { return self }
        var object = JSONObjectWriter()
        var replaced: [StaticString] = []
        for (other, present) in names where has(other) && !has(present) {
            guard let value = raw(other), !replaced.contains(where: { "\($0)" == "\(present)" })
            else { continue }
            object.appendMember(literal: present, raw: value)
            replaced += [other, present]
        }
        guard !replaced.isEmpty else { return self }
        if let others = others(than: replaced) { object.appendMembers(of: others) }
        return try JSONFields(object.finished(), path: path, nullIsMissing: true)
    }
}

extension JSONObjectWriter {
    /// Appends the properties in the form that `properties(_:beside:)` reads.
    ///
    /// - Throws: as `checkedProperties`.
    mutating func appendProperties(
        _ properties: [UInt8]?, _ spelling: ContentSpelling, beside names: [StaticString]
    ) throws(EventError) {
        guard let properties = try checkedProperties(properties, beside: names) else { return }
        if spelling.nestsProperties {
            appendMember("properties", raw: properties)
        } else {
            appendMembers(of: properties)
        }
    }
}

extension StateWriter {
    /// Writes optional properties.
    mutating func write(properties: [UInt8]?) {
        write(optional: properties.map { String(decoding: $0, as: UTF8.self) })
    }
}

extension StateReader {
    /// Reads the properties that `write(properties:)` wrote.
    mutating func properties() throws(EventError) -> [UInt8]? {
        guard let text = try optionalString() else { return nil }
        guard let fields = try? JSONFields(Array(text.utf8)), !fields.names.isEmpty else {
            throw fault("properties are not an object with members")
        }
        return Array(text.utf8)
    }
}
