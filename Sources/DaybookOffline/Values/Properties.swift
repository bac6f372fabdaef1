// Members of a JSON object that its type does not name, stored unchanged: of assets and of cached content.
// Spec/model/media.md, MED-2; Spec/model/content.md, CONT-37.

import Daybook

/// Checks properties: one JSON object whose members the type does not name.
///
/// - Parameters:
///   - properties: the object's text; nil without properties.
///   - names: the members that the type names.
/// - Returns: the object without white space between its members; nil if it has none.
/// - Throws: `EventError` (`notJSON`, `invalidData`) for a value that is not an object, and for a member
///   that the type names.
func checkedProperties(
    _ properties: [UInt8]?, beside names: [StaticString]
) throws(EventError) -> [UInt8]? {
    guard let properties else { return nil }
    let fields = try JSONFields(properties, path: "properties")
    if let name = names.first(where: { fields.raw($0) != nil }) {
        throw EventError(
            .invalidData, "properties.\(name) is a member of the type itself; remove it")
    }
    return fields.others(than: [])
}
