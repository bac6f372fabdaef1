// The event of an app that stores its events in SQLite: a `Codable` type, encoded with `JSONEncoder`.

import Foundation

/// The members that all event types have, and the data.
struct CodableEvent: Codable {
    var id: UUID
    var source: String
    var sequence: String
    var type: String
    var subject: String?
    var partitionkey: String?
    var time: String
    var data: [String: Member]

    enum Member: Codable {
        case text(String), number(Double), flag(Bool), other

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let text = try? container.decode(String.self) {
                self = .text(text)
            } else if let number = try? container.decode(Double.self) {
                self = .number(number)
            } else if let flag = try? container.decode(Bool.self) {
                self = .flag(flag)
            } else {
                self = .other
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .text(let text): try container.encode(text)
            case .number(let number): try container.encode(number)
            case .flag(let flag): try container.encode(flag)
            case .other: try container.encodeNil()
            }
        }
    }
}
