// HMAC and HKDF with SHA-256, as of RFC 2104 and RFC 5869.

/// A hash that can be computed only with a key.
package enum HMAC {
    private static let blockBytes = 64

    /// HMAC with SHA-256: 32 bytes. O(bytes).
    package static func sha256(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        var block = key.count > blockBytes ? SHA256.hash(key) : key
        block += [UInt8](repeating: 0, count: blockBytes - block.count)
        let inner = SHA256.hash(block.map { $0 ^ 0x36 } + message)
        return SHA256.hash(block.map { $0 ^ 0x5C } + inner)
    }
}

/// Derives keys from a key.
package enum HKDF {
    /// HKDF with SHA-256, without salt.
    ///
    /// - Parameter count: the number of bytes, 1 to 8,160 (RFC 5869, 2.3).
    package static func sha256(_ key: [UInt8], info: [UInt8], count: Int) -> [UInt8] {
        let extracted = HMAC.sha256(key, key: [UInt8](repeating: 0, count: SHA256.byteCount))
        var derived: [UInt8] = []
        var block: [UInt8] = []
        var number: UInt8 = 1
        while derived.count < count {
            block = HMAC.sha256(block + info + [number], key: extracted)
            derived += block
            number &+= 1
        }
        return Array(derived.prefix(count))
    }
}
