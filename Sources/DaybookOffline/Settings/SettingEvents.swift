// A setting is put or deleted. Kept on the device. Spec/model/events.md, EVT-7; Spec/model/settings.md.

import Daybook

/// A setting got a value.
public struct SettingPut: EventPayload, Hashable {
    public static let type = "daybook.setting.put"
    /// Its key.
    public let key: String
    /// Its value, as JSON text.
    public let value: [UInt8]

    /// Keys of what is never recorded: such values belong into a `SecretStore`.
    public static let secretKeys: Set<String> = [
        "accessToken", "clientCertificate", "clientCertificatePassword", "customHeaders",
    ]

    /// Creates the event's data.
    ///
    /// - Throws: `EventError` (`refused`) for an empty key or that of a secret; what the value's
    ///   encoder throws.
    public init(key: String, value: some SettingValue) throws {
        try Self.require(key, "key of the setting")
        guard !Self.secretKeys.contains(key) else { throw Self.isSecret(.refused, key) }
        self.key = key
        self.value = try value.settingJSON()
        guard self.value != Array("null".utf8) else {
            throw EventError(.refused, "the value of \(key) is null. Delete it instead")
        }
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        key = try fields.identifier("key")
        guard !Self.secretKeys.contains(key) else { throw Self.isSecret(.invalidData, key) }
        value = try fields.required(fields.raw("value"), "value")
        guard value != Array("null".utf8) else {
            throw EventError(.invalidData, "data.value is null; a deletion is an event of its own")
        }
    }

    public var subject: String? { key }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("key", key)
        writer.add("value", raw: value)
        return writer.finished()
    }

    private static func isSecret(_ code: EventError.Code, _ key: String) -> EventError {
        EventError(code, "\(key) is a secret; a log holds none. Put it into a SecretStore")
    }
}

/// A setting has no value any more.
public struct SettingDeleted: DeclaredPayload, Hashable {
    public static let type = "daybook.setting.deleted"
    /// Its key.
    public private(set) var key: String

    /// Creates the event's data.
    public init(key: String) { self.key = key }

    public static var example: Self {
        Self(key: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("key", &key, .identifier)
    }

    public var subject: String? { key }
}
