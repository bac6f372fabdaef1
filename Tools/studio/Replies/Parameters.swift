// The parameters of a request.

import EventSourcing
import Foundation
import LogFormat

/// The parameters in a request's address, decoded.
struct Parameters {
    let all: [(name: String, value: String)]

    /// The last value of a parameter; nil if it is missing or empty.
    func string(_ name: String) -> String? {
        all.last { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    /// A number within a range.
    ///
    /// - Throws: `APIError` `badRequest` for anything else.
    func integer(
        _ name: String, in range: ClosedRange<Int>, default value: Int
    ) throws(APIError) -> Int {
        guard let text = string(name) else { return value }
        guard let number = Int(text), range.contains(number) else {
            throw .badRequest(
                "\(name) must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A position; nil if it is missing.
    func position(_ name: String) throws(APIError) -> Position? {
        guard let text = string(name) else { return nil }
        guard let number = UInt64(text), number <= FormatLimit.positionMax else {
            throw .badRequest("\(name) must be a position, such as 17")
        }
        return Position(number)
    }

    /// An id.
    func id(_ name: String) throws(APIError) -> UUID {
        guard let id = string(name).flatMap(UUID.init(uuidString:)) else {
            throw .badRequest("\(name) must be a UUID")
        }
        return id
    }

    /// The offset and the number of rows of a page.
    func page(default limit: Int = 200) throws(APIError) -> (offset: Int, limit: Int) {
        (
            try integer("offset", in: 0...Int(UInt32.max), default: 0),
            try integer("limit", in: 1...1_000, default: limit)
        )
    }
}
