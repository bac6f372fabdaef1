// The name of a file, which is the hash of its content. Spec/model/files.md.

import Cryptography
import Daybook

/// The name of a file in the store: the SHA-256 of its content.
public struct FileID: Hashable, Sendable, Comparable, CustomStringConvertible {
    private let high: UInt128
    private let low: UInt128

    /// Creates an id from the high and the low half of the hash.
    init(high: UInt128, low: UInt128) {
        self.high = high
        self.low = low
    }

    /// Creates an id from 64 hexadecimal digits in lower case; nil for anything else.
    public init?(_ text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 64 else { return nil }
        var halves: [UInt128] = [0, 0]
        for (index, digit) in digits.enumerated() {
            guard let value = Hexadecimal.value(of: digit) else { return nil }
            halves[index / 32] = halves[index / 32] << 4 | UInt128(value)
        }
        self.init(high: halves[0], low: halves[1])
    }

    /// Creates the id of a content. O(bytes).
    public init(of content: [UInt8]) { self.init(hash: SHA256.hash(content)) }

    /// Creates an id from the 32 bytes of the hash.
    init(hash: [UInt8]) {
        let halves = hash.withUnsafeBytes {
            (
                UInt128(bigEndian: $0.loadUnaligned(as: UInt128.self)),
                UInt128(bigEndian: $0.loadUnaligned(fromByteOffset: 16, as: UInt128.self))
            )
        }
        self.init(high: halves.0, low: halves.1)
    }

    /// The hash as 64 hexadecimal digits in lower case.
    public var description: String { Hexadecimal.text(of: bytes) }

    /// The 32 bytes of the hash.
    public var bytes: [UInt8] {
        [high, low].flatMap { half in
            stride(from: 120, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> $0) }
        }
    }

    /// Compares the hashes, which is also the order of the digits.
    public static func < (lhs: FileID, rhs: FileID) -> Bool {
        (lhs.high, lhs.low) < (rhs.high, rhs.low)
    }
}

extension FileID: Codable {}

extension FileID: MemberText {
    public static var memberDescription: String { "the id of a file" }

    public static var memberSamples: [String] {
        (0..<3).map { FileID(of: [$0]).description }
    }

    /// A placeholder that names no file.
    static var example: FileID { FileID(high: 0, low: 0) }
}

extension FileID: StateValue {
    public func write(to state: inout StateWriter) {
        state.write(high)
        state.write(low)
    }

    public init(from state: inout StateReader) throws(EventError) {
        self.init(high: try state.integer128(), low: try state.integer128())
    }
}

extension StateWriter {
    /// Writes a file's id.
    mutating func write(_ file: FileID) { file.write(to: &self) }
}

extension StateReader {
    /// Reads a file's id.
    mutating func file() throws(EventError) -> FileID { try FileID(from: &self) }
}

/// Conversion between bytes and hexadecimal digits in lower case.
enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    static func text(of bytes: [UInt8]) -> String {
        String(
            decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
            as: UTF8.self)
    }

    static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
