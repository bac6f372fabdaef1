// Unsigned numbers in LEB128, which take a byte for each 7 bits. Spec/format/segment.md.

extension Array<UInt8> {
    /// Appends an unsigned LEB128 number.
    package mutating func append(varint value: UInt64) {
        var remaining = value
        while remaining >= 0x80 {
            append(UInt8(truncatingIfNeeded: remaining) | 0x80)
            remaining >>= 7
        }
        append(UInt8(remaining))
    }
}

extension RawSpan {
    /// Reads an unsigned LEB128 number and advances the offset past it.
    ///
    /// - Throws: `FormatError` (`malformed`) if it does not end before `end`.
    package func varint(at offset: inout Int, end: Int) throws(FormatError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while offset < end, shift < 64 {
            let byte = byte(at: offset)
            offset += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
            shift += 7
        }
        throw FormatError(.malformed, "a number has no end")
    }
}
