// MD5 as of RFC 1321, computed by the system: the content cache names its files with it. Not for security:
// two texts with the same hash can be computed. Spec/model/content.md.

#if canImport(CryptoKit)
    import CryptoKit
#else
    import CCrypto
#endif

/// MD5.
public enum MD5 {
    /// The hash of all bytes: 16 bytes. O(bytes).
    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        #if canImport(CryptoKit)
            return Array(Insecure.MD5.hash(data: bytes))
        #else
            var context = MD5_CTX()
            MD5_Init(&context)
            MD5_Update(&context, bytes, bytes.count)
            var hash = [UInt8](repeating: 0, count: 16)
            MD5_Final(&hash, &context)
            return hash
        #endif
    }
}
