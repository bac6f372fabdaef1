// When two events with one id are the same event, also if all that is left of one are hashes.
// Spec/format/line.md, LINE-6, and Spec/format/compaction.md, CMP-26.

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

    /// What is remembered of this event's content when compaction takes it out.
    ///
    /// - Throws: `JSONError` for data or an extension that are not JSON.
    package func contentHashes() throws(JSONError) -> ContentHashes {
        ContentHashes(
            withoutTime: try hash(withTime: false), withTime: try hash(withTime: true))
    }

    /// Whether an event with this id and these hashes is this newcomer, as far as 32 bits can tell.
    ///
    /// The newcomer is normalised, and leaves its lane out of account.
    package func isContent(of hashes: ContentHashes) -> Bool {
        guard let own = try? contentHashes() else { return false }
        return time == nil
            ? own.withoutTime == hashes.withoutTime : own.withTime == hashes.withTime
    }

    private func hash(withTime: Bool) throws(JSONError) -> UInt32 {
        var writer = JSONObjectWriter()
        writer.add("type", type)
        if let subject { writer.add("subject", subject) }
        if withTime, let time { writer.add("time", time.description) }
        for attribute in extensions { writer.add(attribute.name, raw: attribute.json) }
        if let dataContentType { writer.add("datacontenttype", dataContentType) }
        switch data {
        case .none: break
        case .json(let json): writer.add("data", raw: json)
        case .base64(let json): writer.add("data_base64", raw: json)
        }
        let object = writer.finished()
        let canonical = try JSONCanonical.text(object.span.bytes)
        return UInt32(truncatingIfNeeded: XXH64.hash(canonical.span.bytes))
    }
}
