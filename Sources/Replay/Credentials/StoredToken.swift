// A token as a secret store keeps it: {"value":…,"expiresAt":…}. Used by RefreshingCredentials.
// Spec/operations/secrets.md, SEC-3.

import EventSourcing

/// The stored form of a token.
enum StoredToken {
    static func bytes(_ token: AccessToken) -> [UInt8] {
        var object = JSONObjectWriter()
        object.add("value", token.value)
        if let end = token.expiresAt { object.add("expiresAt", Int(end.milliseconds)) }
        return object.finished()
    }

    /// The token; nil if these bytes are none.
    static func read(_ bytes: [UInt8]) -> AccessToken? {
        guard let fields = try? JSONFields(bytes), let value = try? fields.string("value") else {
            return nil
        }
        guard fields.names.contains("expiresAt") else { return AccessToken(value) }
        guard let end = try? fields.number("expiresAt")?.integerValue else { return nil }
        return AccessToken(value, expiresAt: Timestamp(milliseconds: Int64(end)))
    }
}
