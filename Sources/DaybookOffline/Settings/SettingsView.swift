// The settings of a log: one register for each key. Spec/model/views.md; Spec/model/settings.md.

import Daybook
import HashTreeCollections

/// The values of all keys.
public struct SettingsView: DeclaredRows {
    public static let name = "settings"
    public static let version = 2
    public static let events: ViewEvents<SettingsView> = [
        .on(SettingPut.self) { put, view, change in
            change.set(&view.settings, put.key, to: SettingJSON(bytes: put.value))
        },
        .on(SettingDeleted.self) { $2.set(&$1.settings, $0.key, to: nil) },
    ]
    public static let fields: [ViewField<Row>] = [
        .init("key") { $0.key }, .init("value", raw: { $0.json }),
    ]

    /// A key with its value.
    public struct Row: Sendable {
        let key: String
        let json: [UInt8]
    }

    /// The JSON text of each value; nil after its deletion.
    private var settings: TreeDictionary<EntityID, Register<SettingJSON?>> = [:]
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&settings)
    }

    /// The value of a key; nil if none was put, if it was deleted, or if it is of another type. O(bytes of
    /// the value).
    public subscript<Value>(key: SettingKey<Value>) -> Value? {
        json(of: key.name).flatMap(Value.init(settingJSON:))
    }

    /// The value of a setting, or its default. O(bytes of the value).
    public subscript<Value>(setting: UserSetting<Value>) -> Value {
        self[setting.key] ?? setting.defaultValue
    }

    /// Whether the value of a key is of another type.
    func isUnreadable<Value>(_ key: SettingKey<Value>) -> Bool {
        json(of: key.name) != nil && self[key] == nil
    }

    /// The JSON text of a value; nil if there is none. O(1).
    func json(of key: String) -> [UInt8]? { settings[EntityID(key)]?.value?.bytes }

    /// The LWW timestamp of the event that put or deleted the value; nil if there is none. O(1).
    func lwwTimestamp(of key: String) -> LWWTimestamp? { settings[EntityID(key)]?.lwwTimestamp }

    public var rowIDs: [EntityID] { settings.compactMap { $1.value == nil ? nil : $0 } }

    public func rowValue(_ id: EntityID) -> Row? {
        json(of: id.string).map { Row(key: id.string, json: $0) }
    }
}

/// The JSON text of a setting.
private struct SettingJSON: StateValue, Hashable {
    var bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    func write(to state: inout StateWriter) {
        state.write(String(decoding: bytes, as: UTF8.self))
    }

    init(from state: inout StateReader) throws(EventError) {
        bytes = Array(try state.string().utf8)
        guard bytes.withUnsafeBytes({ try? JSONValue($0.bytes) }) != nil else {
            throw state.fault("a value is not JSON")
        }
    }
}
