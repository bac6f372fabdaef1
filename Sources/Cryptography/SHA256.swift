// SHA-256 as of FIPS 180-4, computed by the system: libcrypto on Linux, CryptoKit elsewhere. For the names of
// a store's files, the sealed file, and the server's tokens. Spec/decisions/0032.

#if canImport(CryptoKit)
    import CryptoKit
#else
    import CCrypto
#endif

/// An incremental SHA-256. O(bytes).
public struct SHA256 {
    /// The size of a hash in bytes.
    public static let byteCount = 32

    #if canImport(CryptoKit)
        private var hash = CryptoKit.SHA256()

        /// Creates a hash of no bytes.
        public init() {}

        /// Appends bytes.
        public mutating func update(_ bytes: RawSpan) {
            bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
        }

        /// The hash of the appended bytes: 32 bytes.
        public func finished() -> [UInt8] { Array(hash.finalize()) }
    #else
        private var context = SHA256_CTX()

        /// Creates a hash of no bytes.
        public init() { SHA256_Init(&context) }

        /// Appends bytes.
        public mutating func update(_ bytes: RawSpan) {
            _ = bytes.withUnsafeBytes { SHA256_Update(&context, $0.baseAddress, $0.count) }
        }

        /// The hash of the appended bytes: 32 bytes.
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
