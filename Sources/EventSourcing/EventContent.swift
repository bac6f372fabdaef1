// When two events with one id are the same event. Spec/line.md, LINE-6.

import LogFormat

extension EventDraft {
    /// Whether a newcomer with this event's id is this event: everything equal as parsed JSON but a
    /// lane or a time that the newcomer leaves open.
    ///
    /// - Parameter newcomer: normalised by the same catalogue as this event.
    package func isSameContent(as newcomer: EventDraft) -> Bool {
        guard id == newcomer.id, Self.isSame(type, newcomer.type),
            Self.isSame(subject, newcomer.subject),
            newcomer.lane == nil || Self.isSame(newcomer.lane, lane),
            newcomer.time == nil || newcomer.time == time,
            Self.isSame(dataContentType, newcomer.dataContentType),
            extensions.count == newcomer.extensions.count
        else { return false }
        var others: [String: [UInt8]] = [:]
        for attribute in newcomer.extensions { others[attribute.name] = attribute.json }
        for attribute in extensions {
            guard let other = others[attribute.name], Self.isSame(attribute.json, other) else {
                return false
            }
        }
        switch (data, newcomer.data) {
        case (.none, .none): return true
        case (.json(let a), .json(let b)), (.base64(let a), .base64(let b)):
            return Self.isSame(a, b)
        default: return false
        }
    }

    private static func isSame(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        if a == b { return true }
        guard let one = try? JSONCanonical.text(a.span.bytes),
            let other = try? JSONCanonical.text(b.span.bytes)
        else { return false }
        return one == other
    }

    private static func isSame(_ a: String?, _ b: String?) -> Bool {
        a.map(EntityID.init) == b.map(EntityID.init)
    }
}
