// `Date`, `Data` and the app's `Codable` types where commands and values have times, bytes and JSON text.
// See also LearningCommands+Codable and LearningUnit+Codable.

import Daybook
import Foundation

extension ZonedTime {
    /// Creates a time in UTC, in whole milliseconds.
    public init(_ date: Date) { self.init(Timestamp(date)) }

    /// The moment as a date.
    public var date: Date { moment.date }
}

/// A date is encoded as a `Timestamp`: in whole milliseconds, so the one that is read back may not be equal.
extension Date: SettingValue {
    /// Decodes a time in the format of RFC 3339.
    public init?(settingJSON: [UInt8]) {
        guard let time = Timestamp(settingJSON: settingJSON) else { return nil }
        self = time.date
    }

    /// Encodes the time in UTC as a JSON string.
    public func settingJSON() -> [UInt8] { Timestamp(self).settingJSON() }
}

/// Data is encoded as a JSON string in base64.
extension Data: SettingValue {}

extension CityImage {
    /// Creates an image.
    public init(
        id: String, url: String, kind: CachedImage.Kind, width: Int, height: Int, data: Data
    ) {
        self.init(
            id: id, url: url, kind: kind, width: width, height: height, content: Array(data))
    }
}

extension LearningFileContent {
    /// Creates a file.
    public init(url: String, data: Data) { self.init(url: url, content: Array(data)) }
}

extension AssetCommands {
    /// Stores an asset with further data of the app's own type, as `put(_:properties:)`.
    ///
    /// - Throws: what the encoder throws; as `put(_:properties:)`.
    public func put(
        _ asset: Asset, encoding properties: some Encodable, encoder: JSONEncoder = JSONEncoder()
    ) async throws {
        try await put(asset, properties: Array(try encoder.encode(properties)))
    }

    /// The properties of an asset as a type of the app. See `properties(of:)`.
    ///
    /// - Throws: what the decoder throws; as `properties(of:)`.
    public func properties<Properties: Decodable>(
        of id: String, as type: Properties.Type, decoder: JSONDecoder = JSONDecoder()
    ) async throws -> Properties? {
        try await properties(of: id).map { try decoder.decode(type, from: Data($0)) }
    }
}

extension ContentPage {
    /// The other members as a type of the app; nil if there are none.
    ///
    /// - Throws: what the decoder throws.
    public func decodeProperties<Properties: Decodable>(
        as type: Properties.Type, decoder: JSONDecoder = JSONDecoder()
    ) throws -> Properties? { try properties.map { try decoder.decode(type, from: Data($0)) } }
}
