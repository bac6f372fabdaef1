// The stored form of a token: {"value":…,"expiresAt":…}. Spec/operations/secrets.md, SEC-3.

import EventSourcing

/// The stored form of a token.
enum StoredToken {
    static func bytes(_ token: AccessToken) -> [UInt8] {
        var object = JSONObjectWriter()
        object.appendMember("value", token.value)
        if let end = token.expiresAt { object.appendMember("expiresAt", Int(end.milliseconds)) }
        return object.finished()
    }

    /// Decodes a token; nil if the bytes are not a token.
    static func read(_ bytes: [UInt8]) -> AccessToken? {
        guard let fields = try? JSONFields(bytes), let value = try? fields.string("value") else {
            return nil
        }
        guard fields.names.contains("expiresAt") else { return AccessToken(value) }
        guard let end = try? fields.number("expiresAt")?.integerValue else { return nil }
        return AccessToken(value, expiresAt: Timestamp(milliseconds: Int64(end)))
    }
}
