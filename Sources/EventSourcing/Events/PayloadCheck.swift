// Finds values in a Codable payload that Foundation writes as JSON that means something else, or as no JSON at
// all. Below PayloadCoding.

import Foundation
import LogFormat
import Synchronization

/// The checks of an encoded payload.
enum PayloadCheck {
    /// The number of checked values of each type.
    private static let checkedValues = Mutex<[ObjectIdentifier: Int]>([:])
    /// The values of a type that are checked: a later one may have an enum case or an element that the first one has
    /// not.
    private static let checkedValuesMax = 16

    /// Refuses dictionaries that are written as arrays, and `Decimal` values that are NaN.
    ///
    /// Only the first 16 values of each type whose JSON has an array are searched for dictionaries, since each append
    /// would otherwise visit its whole value. A dictionary is found by its type, also where it is nil or in an empty
    /// array; not in an enum case, or in an element of an array, that none of these values has.
    ///
    /// - Throws: `EventError` (`invalidData`), naming the member.
    /// - Complexity: O(bytes), a search for the letter N and for a bracket; for the first values of a type with an
    ///   array, O(members).
    static func check<Value: Encodable>(_ value: Value, _ json: [UInt8]) throws(EventError) {
        if hasNaN(json), !isJSON(json) {
            let path = ValueSearch.path(in: value) { _, value in
                (value as? Decimal)?.isNaN ?? false
            }
            throw EventError(
                .invalidData, "\(path ?? "the data") is NaN, which JSON cannot express")
        }
        guard json.contains(UInt8(ascii: "[")) else { return }
        let type = ObjectIdentifier(Value.self)
        guard checkedValues.withLock({ $0[type, default: 0] < checkedValuesMax }) else { return }
        if let path = ValueSearch.path(in: value, { type, _ in isWrittenAsArray(type) }) {
            throw EventError(
                .invalidData,
                "\(path) is a dictionary that JSON can only express as an array, in an order that differs "
                    + "from run to run. Use keys of the type String, such as uuidString, or make the type "
                    + "of the keys CodingKeyRepresentable")
        }
        checkedValues.withLock { $0[type, default: 0] += 1 }
    }

    /// Whether a type is a dictionary that is written as an array, or has such elements.
    private static func isWrittenAsArray(_ type: Any.Type) -> Bool {
        if let type = type as? any KeyedByValues.Type, !type.hasTextKeys { return true }
        return (type as? any Container.Type).map { isWrittenAsArray($0.content) } ?? false
    }

    private static func hasNaN(_ json: [UInt8]) -> Bool {
        json.withUnsafeBytes { bytes in
            guard var start = bytes.baseAddress else { return false }
            let end = start + bytes.count
            while let found = memchr(start, Int32(UInt8(ascii: "N")), end - start) {
                start = UnsafeRawPointer(found)
                if end - start >= 3, memcmp(start, "NaN", 3) == 0 { return true }
                start += 1
            }
            return false
        }
    }

    private static func isJSON(_ json: [UInt8]) -> Bool {
        var scanner = JSONScanner()
        return (try? scanner.value(json.span.bytes)) != nil
    }
}

/// A dictionary.
private protocol KeyedByValues {
    /// True if its keys become the names of an object's members.
    static var hasTextKeys: Bool { get }
}

extension Dictionary: KeyedByValues {
    fileprivate static var hasTextKeys: Bool {
        Key.self == String.self || Key.self == Int.self
            || Key.self is any CodingKeyRepresentable.Type
    }
}

/// A type of which a value can be empty.
private protocol Container {
    /// The type of what it contains.
    static var content: Any.Type { get }
}

extension Optional: Container { fileprivate static var content: Any.Type { Wrapped.self } }
extension Array: Container { fileprivate static var content: Any.Type { Element.self } }
extension Dictionary: Container { fileprivate static var content: Any.Type { Value.self } }
