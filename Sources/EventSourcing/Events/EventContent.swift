// Compares two events with one id, also if compaction has left only hashes of one of them.
// Spec/format/line.md, LINE-6, and Spec/format/compaction.md, CMP-26.

import LogFormat

extension EventDraft {
    /// True if a draft with this event's id has the same content: all members are equal as parsed JSON. A
    /// lane or a time that the draft does not set is ignored.
    ///
    /// - Parameter newcomer: the draft, normalised by the same catalogue as this event.
    package func isSameContent(as newcomer: EventDraft) -> Bool {
        guard id == newcomer.id, Self.isSame(type, newcomer.type),
            Self.isSame(subject, newcomer.subject),
            newcomer.lane == nil || Self.isSame(newcomer.lane, lane),
            newcomer.time == nil || newcomer.time == time,
            Self.isSame(dataContentType, newcomer.dataContentType),
            extensions.count == newcomer.extensions.count
        else { return false }
        var newExtensions: [String: [UInt8]] = [:]
        for attribute in newcomer.extensions { newExtensions[attribute.name] = attribute.json }
        for attribute in extensions {
            guard let other = newExtensions[attribute.name], Self.isSame(attribute.json, other)
            else {
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

    /// The hashes of this event's content, which the log keeps when compaction removes the event.
    ///
    /// - Throws: `JSONError` for data or an extension that is not JSON.
    package func contentHashes() throws(JSONError) -> ContentHashes {
        ContentHashes(
            withoutTime: try hash(withTime: false), withTime: try hash(withTime: true))
    }

    /// True if the removed event with this draft's id has these hashes of 32 bits.
    ///
    /// The draft must be normalised. Its lane is ignored.
    package func isContent(of hashes: ContentHashes) -> Bool {
        guard let own = try? contentHashes() else { return false }
        return time == nil
            ? own.withoutTime == hashes.withoutTime : own.withTime == hashes.withTime
    }

    private func hash(withTime: Bool) throws(JSONError) -> UInt32 {
        var writer = JSONObjectWriter()
        writer.appendMember("type", type)
        if let subject { writer.appendMember("subject", subject) }
        if withTime, let time { writer.appendMember("time", time.description) }
        for attribute in extensions { writer.appendMember(attribute.name, raw: attribute.json) }
        if let dataContentType { writer.appendMember("datacontenttype", dataContentType) }
        switch data {
        case .none: break
        case .json(let json): writer.appendMember("data", raw: json)
        case .base64(let json): writer.appendMember("data_base64", raw: json)
        }
        let object = writer.finished()
        let canonical = try JSONCanonical.text(object.span.bytes)
        return UInt32(truncatingIfNeeded: XXH64.hash(canonical.span.bytes))
    }
}
