// The events of settings: put, deleted. They are not shipped. Spec/model/events.md, EVT-7;
// Spec/model/settings.md.

import Daybook

/// The value of a setting was set.
public struct SettingPut: EventPayload, Hashable {
    public static let type = "daybook.setting.put"
    /// The setting's key.
    public let key: String
    /// The value as JSON text.
    public let value: [UInt8]

    /// The keys of secrets, which are never recorded: they belong in a `SecretStore`.
    public static let secretKeys: Set<String> = [
        "accessToken", "clientCertificate", "clientCertificatePassword", "customHeaders",
    ]

    /// Creates the event's data.
    ///
    /// - Throws: `EventError` (`refused`) for an empty key or that of a secret; what the value's
    ///   encoder throws.
    public init(key: String, value: some SettingValue) throws {
        try Self.require(key, "key of the setting")
        guard !Self.secretKeys.contains(key) else { throw Self.secretError(.refused, key) }
        self.key = key
        self.value = try value.settingJSON()
        guard self.value != Array("null".utf8) else {
            throw EventError(.refused, "the value of \(key) is null; delete the setting instead")
        }
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        key = try fields.identifier("key")
        guard !Self.secretKeys.contains(key) else { throw Self.secretError(.invalidData, key) }
        value = try fields.required(fields.raw("value"), "value")
        guard value != Array("null".utf8) else {
            throw EventError(.invalidData, "data.value is null; a deletion is an event of its own")
        }
    }

    public var subject: String? { key }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("key", key)
        writer.appendMember("value", raw: value)
        return writer.finished()
    }

    private static func secretError(_ code: EventError.Code, _ key: String) -> EventError {
        EventError(
            code, "\(key) is a secret and is not recorded in a log; store it in a SecretStore")
    }
}

/// The value of a setting was deleted.
public struct SettingDeleted: DeclaredPayload, Hashable {
    public static let type = "daybook.setting.deleted"
    /// The setting's key.
    public internal(set) var key: String

    public var subject: String? { key }
}
