// The declarations of CryptoKit that the libraries use.

public import Foundation

public protocol Digest: Hashable, Sendable, Sequence where Element == UInt8 {}

public protocol HashFunction {
    associatedtype Digest: CryptoKit.Digest
    init()
    mutating func update(bufferPointer: UnsafeRawBufferPointer)
    func finalize() -> Digest
}

extension HashFunction {
    public static func hash<D: DataProtocol>(data _: D) -> Digest { fatalError() }
}

public struct SHA256Digest: Digest {
    public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
}

public struct SHA256: HashFunction, Sendable {
    public typealias Digest = SHA256Digest
    public init() {}
    public mutating func update(bufferPointer _: UnsafeRawBufferPointer) {}
    public func finalize() -> SHA256Digest { fatalError() }
}

public enum Insecure {
    public struct MD5Digest: Digest {
        public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
    }
    public struct MD5: HashFunction, Sendable {
        public typealias Digest = MD5Digest
        public init() {}
        public mutating func update(bufferPointer _: UnsafeRawBufferPointer) {}
        public func finalize() -> MD5Digest { fatalError() }
    }
}

public struct SymmetricKey: Sendable {
    public init<D: ContiguousBytes>(data _: D) {}
}

public enum AES {
    public enum GCM {
        public struct Nonce: Sendable {
            public init<D: DataProtocol>(data _: D) throws {}
        }
        public struct SealedBox: Sendable {
            public init<C: DataProtocol, T: DataProtocol>(
                nonce _: AES.GCM.Nonce, ciphertext _: C, tag _: T
            ) throws {}
            public var ciphertext: Data { fatalError() }
            public var tag: Data { fatalError() }
        }
        public static func seal<Plaintext: DataProtocol, AuthenticatedData: DataProtocol>(
            _: Plaintext, using _: SymmetricKey, nonce _: AES.GCM.Nonce? = nil,
            authenticating _: AuthenticatedData
        ) throws -> AES.GCM.SealedBox { fatalError() }
        public static func open<AuthenticatedData: DataProtocol>(
            _: AES.GCM.SealedBox, using _: SymmetricKey, authenticating _: AuthenticatedData
        ) throws -> Data { fatalError() }
    }
}
