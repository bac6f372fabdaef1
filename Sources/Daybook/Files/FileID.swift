// The name of a file, which is the hash of its content. Spec/model/files.md.

import Cryptography
import EventSourcing

/// The name of a file in a file store: the SHA-256 of its content.
public struct FileID: Hashable, Sendable, Comparable, CustomStringConvertible {
    private let high: UInt128
    private let low: UInt128

    private init(high: UInt128, low: UInt128) {
        self.high = high
        self.low = low
    }

    /// Creates an id from 64 hexadecimal digits in lower case; nil for anything else.
    public init?(_ text: String) {
        guard let high = UInt128(text.prefix(32), radix: 16),
            let low = UInt128(text.dropFirst(32), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
        guard description == text else { return nil }
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
    public var description: String {
        [high, low].map { half in
            let digits = String(half, radix: 16)
            return String(repeating: "0", count: 32 - digits.count) + digits
        }.joined()
    }

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
