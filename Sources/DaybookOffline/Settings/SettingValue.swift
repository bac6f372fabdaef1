// The types of settings' values, and their encoding as JSON. Spec/model/settings.md, SET-2.

import Daybook
import Foundation

/// A value of a setting.
///
/// `Bool`, `Int`, `Double`, `String`, `Timestamp` and arrays conform. A `Codable` type of an app needs only
/// the declaration `extension Profile: SettingValue {}`.
public protocol SettingValue: Hashable, Sendable {
    /// Decodes a value; nil for JSON of another type.
    init?(settingJSON: [UInt8])
    /// Encodes the value as JSON text.
    ///
    /// - Throws: what an encoder throws; nothing is recorded then.
    func settingJSON() throws -> [UInt8]
}

extension SettingValue where Self: Codable {
    /// Decodes with `JSONDecoder`.
    public init?(settingJSON: [UInt8]) {
        guard let value = try? JSONDecoder().decode(Self.self, from: Data(settingJSON)) else {
            return nil
        }
        self = value
    }

    /// Encodes with `JSONEncoder` and sorted members, so that equal values have equal bytes.
    public func settingJSON() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return Array(try encoder.encode(self))
    }
}

extension Bool: SettingValue {}
extension Int: SettingValue {}
extension Double: SettingValue {}
extension String: SettingValue {}
extension Array: SettingValue where Element: SettingValue & Codable {}

/// A moment, encoded as in events: `2026-02-22T10:30:14.425Z`.
extension Timestamp: SettingValue {
    /// Decodes a time in the format of RFC 3339.
    public init?(settingJSON: [UInt8]) {
        guard let text = String(settingJSON: settingJSON) else { return nil }
        self.init(text)
    }

    /// Encodes the time in UTC as a JSON string.
    public func settingJSON() -> [UInt8] { JSONObjectWriter.string(description) }
}
