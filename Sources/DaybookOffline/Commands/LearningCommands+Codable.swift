// Writes values of the app's own types as the JSON text that commands on learning store, and reads them back.
// Spec/model/learning.md, LRN-1.

import Daybook
import Foundation

extension LearningCommands {
    /// Writes a value of the app as the text of a JSON object, for `storeLesson`, `storeReview` and
    /// `storeUser`.
    ///
    /// - Throws: what the encoder throws; `EventError` (`invalidData`) for a value that is no JSON object.
    public static func json(
        of value: some Encodable, encoder: JSONEncoder = JSONEncoder()
    ) throws -> [UInt8] {
        let text = Array(try encoder.encode(value))
        _ = try JSONFields(text, path: "value")
        return text
    }
}

extension LearningMaterial {
    /// Reads the content as a type of the app.
    ///
    /// - Throws: what the decoder throws.
    public func decodeContent<Content: Decodable>(
        as type: Content.Type, decoder: JSONDecoder = JSONDecoder()
    ) throws -> Content { try decoder.decode(type, from: Data(content)) }
}

extension UserStored {
    /// Reads the information as a type of the app; nil if there is none.
    ///
    /// - Throws: what the decoder throws.
    public func decodeInfo<Info: Decodable>(
        as type: Info.Type, decoder: JSONDecoder = JSONDecoder()
    ) throws -> Info? { try info.map { try decoder.decode(type, from: Data($0)) } }
}

extension VocabularyItem {
    /// Writes a value of the app, whose JSON is an object with an identifier `id`.
    ///
    /// - Throws: what the encoder throws; as `init(json:)`.
    public init(
        encoding value: some Encodable, encoder: JSONEncoder = JSONEncoder()
    ) throws { try self.init(json: Array(encoder.encode(value))) }

    /// Reads the item as a type of the app.
    ///
    /// - Throws: what the decoder throws.
    public func decode<Item: Decodable>(
        as type: Item.Type, decoder: JSONDecoder = JSONDecoder()
    ) throws -> Item { try decoder.decode(type, from: Data(json)) }
}
