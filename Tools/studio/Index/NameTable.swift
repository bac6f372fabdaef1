// The names in the index. Each distinct type, subject, lane, source and account is stored once.

import LogFormat

/// Distinct names, numbered in the order in which they first occur.
struct NameTable {
    /// The number of an absent name, as of an event without a subject.
    static let none: UInt32 = 0

    /// The names by number. The first is empty.
    private(set) var names = [""]
    private var numbers: [UInt64: UInt32] = [:]

    /// The number of a name, which is new if the name is. O(bytes).
    mutating func number(of bytes: RawSpan) -> UInt32 {
        var hash = XXH64.hash(bytes)
        while let number = numbers[hash] {
            if bytes.isEqual(to: names[Int(number)]) { return number }
            // Another name has the same hash: its successor is tried.
            hash &+= 1
        }
        let number = UInt32(names.count)
        names.append(bytes.text)
        numbers[hash] = number
        return number
    }

    /// The number of a name; nil if no event has it. O(bytes).
    func existingNumber(of name: String) -> UInt32? {
        let bytes = Array(name.utf8)
        var hash = XXH64.hash(bytes.span.bytes)
        while let number = numbers[hash] {
            if names[Int(number)] == name { return number }
            hash &+= 1
        }
        return nil
    }

    /// The name of a number; nil for `none`.
    func name(_ number: UInt32) -> String? {
        number == Self.none ? nil : names[Int(number)]
    }
}
