// What can be the value of a setting: JSON of a shape that the key's type knows. Before SettingKey.
// Spec/model/settings.md, SET-2.

import Daybook
import Foundation

/// A value that a setting can have.
///
/// Truth values, numbers, texts, times and lists of such are; an app's own type is with
/// `Codable` alone: `extension Profile: SettingValue {}`.
public protocol SettingValue: Hashable, Sendable {
    /// Reads a value; nil for JSON of another shape.
    init?(settingJSON: [UInt8])
    /// The value as JSON text.
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

    /// Encodes with `JSONEncoder`, members sorted: the same value always makes the same bytes.
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

/// A moment, written as in events: `2026-02-22T10:30:14.425Z`.
extension Timestamp: SettingValue {
    /// Reads a time as of RFC 3339.
    public init?(settingJSON: [UInt8]) {
        guard let text = String(settingJSON: settingJSON) else { return nil }
        self.init(text)
    }

    /// The time in UTC, a JSON string.
    public func settingJSON() -> [UInt8] { JSONObjectWriter.string(description) }
}
