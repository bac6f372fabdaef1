// Finds values in a Codable payload that Foundation writes as JSON that means something else, or as no JSON at
// all. Below PayloadCoding.

import Foundation
import LogFormat
import Synchronization

/// The checks of an encoded payload.
enum PayloadCheck {
    /// The types of which a value was checked.
    private static let checkedTypes = Mutex<Set<ObjectIdentifier>>([])

    /// Refuses dictionaries that were written as arrays, and `Decimal` values that are NaN.
    ///
    /// Only the first value of each type whose JSON has an array is searched for dictionaries, since each append would
    /// otherwise reflect its whole value. So a dictionary is not found in later values if it is nil in one that has
    /// another array.
    ///
    /// - Throws: `EventError` (`invalidData`), naming the member.
    /// - Complexity: O(bytes), a search for the letter N and for a bracket; for the first value of a type with an array,
    ///   O(members).
    static func check<Value>(_ value: Value, _ json: [UInt8]) throws(EventError) {
        if hasNaN(json), !isJSON(json) {
            let path = path(in: value, { ($0 as? Decimal)?.isNaN ?? false }) ?? "the data"
            throw EventError(.invalidData, "\(path) is NaN, which JSON cannot express")
        }
        guard json.contains(UInt8(ascii: "[")) else { return }
        guard checkedTypes.withLock({ $0.insert(ObjectIdentifier(Value.self)).inserted }) else {
            return
        }
        let isArray = { (value: Any) in
            (value as? any KeyedByValues).map { !type(of: $0).hasTextKeys } ?? false
        }
        guard path(in: value, isArray) != nil,
            let written = try? JSONSerialization.jsonObject(with: Data(json)),
            let path = path(in: value, isArray, writtenAs: written)
        else { return }
        checkedTypes.withLock { _ = $0.remove(ObjectIdentifier(Value.self)) }
        throw EventError(
            .invalidData,
            "\(path) is a dictionary that JSON can only express as an array, in an order that differs "
                + "from run to run. Use keys of the type String, such as uuidString, or make the type "
                + "of the keys CodingKeyRepresentable")
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

    /// The path of the first value that meets a condition, as in `stops[2].name`.
    ///
    /// - Parameter json: the JSON of the value, if only values count that are written as arrays.
    private static func path(
        in value: Any, _ condition: (Any) -> Bool, writtenAs json: Any? = nil, _ path: String = "",
        depth: Int = 0
    ) -> String? {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional {
            return mirror.children.first.flatMap {
                Self.path(in: $0.value, condition, writtenAs: json, path, depth: depth)
            }
        }
        if condition(value), json == nil || json is [Any] {
            return path.isEmpty ? "the data" : path
        }
        guard depth < 16 else { return nil }
        for (index, child) in mirror.children.enumerated() {
            let name =
                child.label.map { (path.isEmpty ? "" : path + ".") + $0 } ?? "\(path)[\(index)]"
            var written: Any?
            if let json {
                // Members that a type writes in its own way are its own affair.
                let elements = json as? [Any]
                written =
                    child.label.flatMap { (json as? [String: Any])?[$0] }
                    ?? elements.flatMap { index < $0.count ? $0[index] : nil }
                guard written != nil else { continue }
            }
            let found = Self.path(
                in: child.value, condition, writtenAs: written, name, depth: depth + 1)
            if let found { return found }
        }
        return nil
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
