// Takes a view's state out of bytes. The bytes may be anything: every number and length is checked
// against what is left before it is used, and what StateWriter would have written otherwise is
// refused, so that whatever is read encodes to the same bytes again. Spec/model/views.md, VIEW-10.

import Foundation
import LogFormat

/// Reads the parts of a state one after the other, as `StateWriter` wrote them: what a view with an
/// encoded state of its own uses. No read costs more than the bytes it takes. All methods throw `EventError` (`invalidData`)
/// for bytes that `StateWriter` does not write.
public struct StateReader: Sendable {
    private let bytes: [UInt8]
    /// The next byte.
    var offset = 0

    /// Creates a reader at the first byte of a state.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Bytes that were not read yet.
    private var left: Int { bytes.count - offset }

    /// Says what is wrong, and where.
    public func fault(_ detail: String) -> EventError {
        EventError(.invalidData, "\(detail), at byte \(offset) of the state")
    }

    private mutating func advance(_ count: Int) throws(EventError) -> Range<Int> {
        guard count <= left else { throw fault("the state ends early") }
        defer { offset += count }
        return offset..<offset + count
    }

    /// Nothing may be left.
    public func finish() throws(EventError) {
        guard left == 0 else { throw fault("there is something behind the state") }
    }

    /// Reads a whole number.
    public mutating func integer() throws(EventError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            let byte = try self.byte()
            // The tenth byte has room for one bit, and a last byte of 0 says nothing.
            guard shift < 63 || byte <= 1, byte != 0 || shift == 0 else { break }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw fault("a number is written in no valid way")
    }

    /// Reads a number of things that take at least one byte each: no more than bytes are left.
    public mutating func count() throws(EventError) -> Int {
        let count = try integer()
        guard count <= UInt64(left) else { throw fault("the state ends early") }
        return Int(count)
    }

    /// Reads a whole number that an `Int` can hold.
    public mutating func nonNegative() throws(EventError) -> Int {
        guard let value = Int(exactly: try integer()) else { throw fault("a number is too large") }
        return value
    }

    /// Reads how many events something happened to. Far fewer than an `Int` can hold, so that adding
    /// to it never overflows.
    public mutating func tally() throws(EventError) -> Int {
        let value = try integer()
        guard value <= UInt64(UInt32.max) << 16 else { throw fault("a number is too large") }
        return Int(value)
    }

    /// Reads one byte.
    public mutating func byte() throws(EventError) -> UInt8 { bytes[try advance(1).lowerBound] }

    /// Reads a truth value.
    public mutating func bool() throws(EventError) -> Bool {
        switch try byte() {
        case 0: return false
        case 1: return true
        default: throw fault("a truth value is neither 0 nor 1")
        }
    }

    /// Reads a number, all its bits.
    public mutating func double() throws(EventError) -> Double {
        let range = try advance(8)
        return Double(bitPattern: bytes.span.bytes.integer(at: range.lowerBound))
    }

    /// Reads four bytes.
    mutating func integer32() throws(EventError) -> UInt32 {
        let range = try advance(4)
        return bytes.span.bytes.integer(at: range.lowerBound)
    }

    /// Reads the length of a value that follows.
    ///
    /// - Returns: where the value ends.
    mutating func length() throws(EventError) -> Int {
        let length = try integer32()
        guard length <= left else { throw fault("the state ends early") }
        return offset + Int(length)
    }

    /// Reads a string and compares it with one, byte by byte.
    mutating func matches(_ string: String) throws(EventError) -> Bool {
        let range = try advance(try count())
        return range.count == string.utf8.count && bytes[range].elementsEqual(string.utf8)
    }

    /// Reads so many bytes.
    mutating func bytes(_ count: Int) throws(EventError) -> ArraySlice<UInt8> {
        bytes[try advance(count)]
    }

    /// The bytes of a range that was read before.
    func bytes(in range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

    /// True if bytes that were read before begin with others.
    func begins(with prefix: ArraySlice<UInt8>, at offset: Int) -> Bool {
        bytes[offset...].starts(with: prefix)
    }

    /// True if bytes that were read before are less than others, one by one.
    func isLess(_ range: Range<Int>, than other: ArraySlice<UInt8>) -> Bool {
        bytes[range].lexicographicallyPrecedes(other)
    }

    /// True if the first bytes are less than the second, one by one.
    func precedes(_ first: Range<Int>, _ second: Range<Int>) -> Bool {
        let bytes = self.bytes.span.bytes
        return bytes.extracting(first).precedes(bytes.extracting(second))
    }

    /// Reads 16 bytes.
    public mutating func integer128() throws(EventError) -> UInt128 {
        let range = try advance(16)
        return bytes.span.bytes.integer(at: range.lowerBound)
    }

    /// Reads an identity.
    public mutating func uuid() throws(EventError) -> UUID { UUID(integer: try integer128()) }

    /// Reads a string.
    public mutating func string() throws(EventError) -> String {
        let range = try advance(try count())
        guard let text = String(utf8: bytes.span.bytes.extracting(range)) else {
            throw fault("a string is not UTF-8")
        }
        return text
    }

    /// Reads a string that nobody wants to know yet.
    public mutating func checkString() throws(EventError) {
        let range = try advance(try count())
        let text = bytes.span.bytes.extracting(range)
        guard text.isASCII || String(utf8: text) != nil else {
            throw fault("a string is not UTF-8")
        }
    }

    /// Steps over bytes that were checked before.
    public mutating func skip(_ count: Int) throws(EventError) { _ = try advance(count) }

    /// What `body` steps over.
    public mutating func bytes(
        _ body: (inout StateReader) throws(EventError) -> Void
    ) throws(EventError) -> ArraySlice<UInt8> {
        let start = offset
        try body(&self)
        return bytes[start..<offset]
    }

    /// Reads a time that a line can express.
    public mutating func time() throws(EventError) -> Timestamp {
        let value = try integer()
        let milliseconds = Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
        guard Timestamp.range.contains(milliseconds) else {
            throw fault("a time lies outside the years 0 to 9999")
        }
        return Timestamp(milliseconds: milliseconds)
    }

    /// Reads a stamp.
    public mutating func stamp() throws(EventError) -> Stamp {
        Stamp(time: try time(), source: try integer128(), sequence: try integer())
    }

    /// Reads entries, whose keys must rise; `body` reads what stands behind each key.
    public mutating func entries(
        _ body: (inout StateReader, EntityID) throws(EventError) -> Void
    ) throws(EventError) {
        var last: EntityID?
        for _ in 0..<(try count()) {
            let key = EntityID(try string())
            if let last, !(last < key) { throw fault("the keys do not rise") }
            try body(&self, key)
            last = key
        }
    }
}
