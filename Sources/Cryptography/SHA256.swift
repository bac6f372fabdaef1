// SHA-256 as of FIPS 180-4, computed by the system: libcrypto on Linux, CryptoKit elsewhere. What the
// files of a store are named by, and what the sealed file and the server's tokens rest on.
// Spec/decisions/0032.

#if canImport(CryptoKit)
    import CryptoKit
#else
    import CCrypto
#endif

/// SHA-256, fed piece by piece. O(bytes).
public struct SHA256 {
    /// Bytes of a hash.
    public static let byteCount = 32

    #if canImport(CryptoKit)
        private var hash = CryptoKit.SHA256()

        /// Begins with no bytes.
        public init() {}

        /// Takes in more bytes.
        public mutating func update(_ bytes: RawSpan) {
            bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
        }

        /// The hash of what was taken in: 32 bytes.
        public func finished() -> [UInt8] { Array(hash.finalize()) }
    #else
        private var context = SHA256_CTX()

        /// Begins with no bytes.
        public init() { SHA256_Init(&context) }

        /// Takes in more bytes.
        public mutating func update(_ bytes: RawSpan) {
            _ = bytes.withUnsafeBytes { SHA256_Update(&context, $0.baseAddress, $0.count) }
        }

        /// The hash of what was taken in: 32 bytes.
        public func finished() -> [UInt8] {
            var copy = context
            var hash = [UInt8](repeating: 0, count: Self.byteCount)
            SHA256_Final(&hash, &copy)
            return hash
        }
    #endif

    /// The hash of all bytes: 32 bytes.
    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var hash = SHA256()
        bytes.withUnsafeBytes { hash.update($0.bytes) }
        return hash.finished()
    }
}
