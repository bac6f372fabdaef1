// Secret bytes. Their memory is overwritten before it is freed.

#if canImport(CryptoKit)
    import Darwin
#else
    import CCrypto
#endif

/// A key. Its memory is overwritten when the last reference to it goes.
package final class SecretBytes: Sendable {
    /// Immutable until `deinit`.
    private nonisolated(unsafe) let memory: UnsafeMutableBufferPointer<UInt8>

    /// Copies a key. The caller's copy is not overwritten.
    package init(_ bytes: [UInt8]) {
        memory = .allocate(capacity: bytes.count)
        _ = memory.initialize(from: bytes)
    }

    /// The number of bytes.
    package var count: Int { memory.count }

    /// Calls `body` with the bytes, which it must not keep.
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows
        -> Result
    {
        try body(UnsafeBufferPointer(memory))
    }

    /// Random bytes from the system's generator, for keys and nonces.
    package static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    deinit {
        if let address = memory.baseAddress {
            #if canImport(CryptoKit)
                _ = memset_s(address, memory.count, 0, memory.count)
            #else
                OPENSSL_cleanse(address, memory.count)
            #endif
        }
        memory.deallocate()
    }
}
