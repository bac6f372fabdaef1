// Reads a view's state from bytes. The bytes are untrusted: every number and length is checked against the
// remaining bytes before it is used. An encoding that StateWriter does not produce is refused, so that a
// state that was read encodes to the same bytes. Spec/model/views.md, VIEW-10.

import Foundation
import LogFormat

/// Reads the parts of a state in the order in which `StateWriter` wrote them, for a view that implements
/// `init(encodedState:)`. A read costs at most the bytes that it consumes. All methods throw `EventError`
/// (`invalidData`) for bytes that `StateWriter` does not write.
public struct StateReader: Sendable {
    private let bytes: [UInt8]
    /// The offset of the next byte.
    var offset = 0

    /// Creates a reader at the first byte of a state.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The number of bytes not yet read.
    private var remaining: Int { bytes.count - offset }

    /// An error with the current offset.
    public func fault(_ detail: String) -> EventError {
        EventError(.invalidData, "\(detail), at byte \(offset) of the state")
    }

    private mutating func advance(_ count: Int) throws(EventError) -> Range<Int> {
        guard count <= remaining else { throw fault("the state ends early") }
        defer { offset += count }
        return offset..<offset + count
    }

    /// Checks that all bytes have been read.
    public func finish() throws(EventError) {
        guard remaining == 0 else { throw fault("there are bytes after the state") }
    }

    /// Reads an unsigned integer.
    public mutating func integer() throws(EventError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            let byte = try self.byte()
            // The tenth byte holds one bit. A last byte of 0 is not the shortest encoding.
            guard shift < 63 || byte <= 1, byte != 0 || shift == 0 else { break }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw fault("an integer has an invalid encoding")
    }

    /// Reads a number of items of at least one byte each: at most the remaining bytes.
    public mutating func count() throws(EventError) -> Int {
        let count = try integer()
        guard count <= UInt64(remaining) else { throw fault("the state ends early") }
        return Int(count)
    }

    /// Reads an integer that fits an `Int`.
    public mutating func nonNegative() throws(EventError) -> Int {
        guard let value = Int(exactly: try integer()) else { throw fault("a number is too large") }
        return value
    }

    /// Reads a count of events. Its limit is far below that of `Int`, so that adding to it never overflows.
    public mutating func tally() throws(EventError) -> Int {
        let value = try integer()
        guard value <= UInt64(UInt32.max) << 16 else { throw fault("a number is too large") }
        return Int(value)
    }

    /// Reads one byte.
    public mutating func byte() throws(EventError) -> UInt8 { bytes[try advance(1).lowerBound] }

    /// Reads a boolean.
    public mutating func bool() throws(EventError) -> Bool {
        switch try byte() {
        case 0: return false
        case 1: return true
        default: throw fault("a boolean is neither 0 nor 1")
        }
    }

    /// Reads a double, bit by bit as it was written.
    public mutating func double() throws(EventError) -> Double {
        let range = try advance(8)
        return Double(bitPattern: bytes.span.bytes.integer(at: range.lowerBound))
    }

    /// Reads an integer of four bytes.
    mutating func integer32() throws(EventError) -> UInt32 {
        let range = try advance(4)
        return bytes.span.bytes.integer(at: range.lowerBound)
    }

    /// Reads the length of the following value.
    ///
    /// - Returns: the end of the value.
    mutating func length() throws(EventError) -> Int {
        let length = try integer32()
        guard length <= remaining else { throw fault("the state ends early") }
        return offset + Int(length)
    }

    /// Reads a string and compares it with `string`, byte by byte.
    mutating func matches(_ string: String) throws(EventError) -> Bool {
        let range = try advance(try count())
        return range.count == string.utf8.count && bytes[range].elementsEqual(string.utf8)
    }

    /// Reads `count` bytes.
    mutating func bytes(_ count: Int) throws(EventError) -> ArraySlice<UInt8> {
        bytes[try advance(count)]
    }

    /// The bytes of a range that was read before.
    func bytes(in range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

    /// True if the bytes at `offset`, which were read before, begin with `prefix`.
    func begins(with prefix: ArraySlice<UInt8>, at offset: Int) -> Bool {
        bytes[offset...].starts(with: prefix)
    }

    /// True if the bytes of a range that was read before precede `other` in lexicographic order.
    func isLess(_ range: Range<Int>, than other: ArraySlice<UInt8>) -> Bool {
        bytes[range].lexicographicallyPrecedes(other)
    }

    /// True if the first range's bytes precede the second's in lexicographic order.
    func precedes(_ first: Range<Int>, _ second: Range<Int>) -> Bool {
        let bytes = self.bytes.span.bytes
        return bytes.extracting(first).precedes(bytes.extracting(second))
    }

    /// Reads an integer of 16 bytes.
    public mutating func integer128() throws(EventError) -> UInt128 {
        let range = try advance(16)
        return bytes.span.bytes.integer(at: range.lowerBound)
    }

    /// Reads a UUID.
    public mutating func uuid() throws(EventError) -> UUID { UUID(integer: try integer128()) }

    /// Reads a string.
    public mutating func string() throws(EventError) -> String {
        let range = try advance(try count())
        guard let text = String(utf8: bytes.span.bytes.extracting(range)) else {
            throw fault("a string is not UTF-8")
        }
        return text
    }

    /// Skips a string, and checks that it is UTF-8.
    public mutating func checkString() throws(EventError) {
        let range = try advance(try count())
        let text = bytes.span.bytes.extracting(range)
        guard text.isASCII || String(utf8: text) != nil else {
            throw fault("a string is not UTF-8")
        }
    }

    /// Skips `count` bytes.
    public mutating func skip(_ count: Int) throws(EventError) { _ = try advance(count) }

    /// The bytes that `body` reads or skips.
    public mutating func bytes(
        _ body: (inout StateReader) throws(EventError) -> Void
    ) throws(EventError) -> ArraySlice<UInt8> {
        let start = offset
        try body(&self)
        return bytes[start..<offset]
    }

    /// Reads a time of the years 0 to 9999, which a line can express.
    public mutating func time() throws(EventError) -> Timestamp {
        let value = try integer()
        let milliseconds = Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
        guard Timestamp.range.contains(milliseconds) else {
            throw fault("a time is outside the years 0 to 9999")
        }
        return Timestamp(milliseconds: milliseconds)
    }

    /// Reads an LWW timestamp.
    public mutating func lwwTimestamp() throws(EventError) -> LWWTimestamp {
        LWWTimestamp(time: try time(), source: try integer128(), sequence: try integer())
    }

    /// Reads entries, whose keys must ascend; `body` reads the rest of each entry after its key.
    public mutating func entries(
        _ body: (inout StateReader, EntityID) throws(EventError) -> Void
    ) throws(EventError) {
        var last: EntityID?
        for _ in 0..<(try count()) {
            let key = EntityID(try string())
            if let last, !(last < key) { throw fault("the keys are not in ascending order") }
            try body(&self, key)
            last = key
        }
    }
}
