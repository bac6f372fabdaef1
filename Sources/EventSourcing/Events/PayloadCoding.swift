// Encodes and decodes Codable payloads as JSON, with errors that name the member. Below EventPayload.

import Foundation

/// The JSON coders of `Codable` payloads.
enum PayloadCoding {
    private static let otherYear = "a date outside the years 0 to 9999"

    private static let encoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            guard let time = Timestamp(exactly: date) else {
                throw EncodingError.invalidValue(
                    date.timeIntervalSince1970,
                    .init(
                        codingPath: container.codingPath,
                        debugDescription: date.timeIntervalSince1970.isFinite ? otherYear : ""))
            }
            try container.encode(time.description)
        }
        return encoder
    }()

    private static let decoder = {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let time = Timestamp(text) else {
                throw DecodingError.dataCorruptedError(
                    in: container,
                    debugDescription: "'\(text)' is not a date in ISO 8601 with a time zone")
            }
            return time.date
        }
        return decoder
    }()

    /// Encodes a payload as JSON.
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        do {
            let json = Array(try encoder.encode(value))
            try PayloadCheck.check(value, json)
            return json
        } catch let error as EncodingError {
            guard case .invalidValue(let value, let context) = error else { throw error }
            let problem =
                context.debugDescription == otherYear
                ? otherYear : "\(value), which JSON cannot express"
            throw EventError(.invalidData, "\(path(context.codingPath)) is \(problem)")
        }
    }

    /// Decodes a payload from JSON.
    static func decode<Value: Decodable>(_ type: Value.Type, _ json: [UInt8]) throws -> Value {
        do {
            return try decoder.decode(type, from: Data(json))
        } catch let error as DecodingError {
            throw EventError(.invalidData, description(of: error))
        }
    }

    private static func description(of error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            "\(path(context.codingPath + [key])) is missing"
        case .valueNotFound(_, let context):
            "\(path(context.codingPath)) is null or missing"
        case .typeMismatch(let type, let context):
            "\(path(context.codingPath)) is not of the type \(type)"
        case .dataCorrupted(let context):
            path(context.codingPath) + ": "
                + (context.debugDescription.hasSuffix(".")
                    ? String(context.debugDescription.dropLast()) : context.debugDescription)
        @unknown default: "\(error)"
        }
    }

    /// The path of a value, as in `stops[2].name`.
    static func path(_ keys: [any CodingKey]) -> String {
        var path = ""
        for key in keys {
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += (path.isEmpty ? "" : ".") + key.stringValue
            }
        }
        return path.isEmpty ? "the data" : path
    }
}
