// The settings of a log: one register for each key. Spec/model/views.md; Spec/model/settings.md.

import Daybook
import HashTreeCollections

/// The values of all keys.
public struct SettingsView: KeyedView {
    public static let name = "settings"
    public static let version = 1
    public static let eventTypes: Set<String>? = [SettingPut.type, SettingDeleted.type]

    /// The JSON text of each value; nil after its deletion.
    private var settings: TreeDictionary<EntityID, Register<[UInt8]?>> = [:]
    /// The number of events with invalid data.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        do {
            guard let change = try Self.change(event) else { return }
            settings[EntityID(change.key)].set(change.value, event.lwwTimestamp)
        } catch { ignored += 1 }
    }

    /// Returns the change of a setting by an event; nil for an event of another type.
    private static func change(_ event: Event) throws -> (key: String, value: [UInt8]?)? {
        guard event.type.hasPrefix("daybook.setting.") else { return nil }
        switch event.type {
        case SettingPut.type:
            let put = try event.payload(as: SettingPut.self)
            return (put.key, put.value)
        case SettingDeleted.type: return (try event.payload(as: SettingDeleted.self).key, nil)
        default: return nil
        }
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
    func json(of key: String) -> [UInt8]? { settings[EntityID(key)]?.value }

    /// The LWW timestamp of the event that put or deleted the value; nil if there is none. O(1).
    func lwwTimestamp(of key: String) -> LWWTimestamp? { settings[EntityID(key)]?.lwwTimestamp }

    public static let keyNames = ["key"]
    public static let columns = ["key", "value"]

    public func rows() -> ViewRows {
        let present = settings.keys.filter { json(of: $0.string) != nil }
        return ViewRows(ids: present) { Self.row($0.string, json(of: $0.string)) }
    }

    public func rowKeys(changedBy event: Event) -> [[String]]? {
        (try? Self.change(event)).map { [[$0.key]] } ?? []
    }

    public func row(key: [String]) -> ViewRow? {
        json(of: key[0]).map { Self.row(key[0], $0) }
    }

    private static func row(_ key: String, _ json: [UInt8]?) -> ViewRow {
        var row = ViewRow()
        row.appendField("key", key)
        row.appendField("value", raw: json)
        return row
    }
}

extension SettingsView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        var entries = writer.entries(count: settings.count)
        for (key, setting) in settings {
            writer.begin(key, of: &entries)
            writer.write(setting.value != nil)
            if let value = setting.value { writer.write(String(decoding: value, as: UTF8.self)) }
            writer.write(setting.lwwTimestamp)
        }
        writer.end(entries)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var settings = self.settings
        try reader.entries { (reader, key) throws(EventError) in
            let value = try reader.bool() ? Array(try reader.string().utf8) : nil
            if let value, value.withUnsafeBytes({ try? JSONValue($0.bytes) }) == nil {
                throw reader.fault("a value is not JSON")
            }
            settings[key] = Register(value, try reader.lwwTimestamp())
        }
        try reader.finish()
        self.settings = settings
    }
}

extension SettingsView: CompactableView {
    /// The winner of a setting's register is needed, including a deletion, because an older event may arrive
    /// after it.
    public func retention(of event: Event) -> Retention {
        do {
            guard let change = try Self.change(event) else { return .unconcerned }
            return .of(event, heldBy: [settings[EntityID(change.key)]?.lwwTimestamp])
        } catch { return .needed(.notUnderstood) }
    }
}
