// The bytes of a sealed file: header, nonce, ciphertext, tag. The plaintext is a SecretTable. No I/O.
// Spec/operations/secrets.md, SEC-5 and SEC-7.

import Cryptography
import Foundation
import Replay

/// Encrypts bytes with a key, and decrypts them.
struct SealedFile: Sendable {
    private let key: SecretBytes
    /// Derived from the key by HKDF: it identifies the key without revealing it.
    private let keyCheck: [UInt8]

    static let magic = Array("DAYBSEC\0".utf8)
    static let version: UInt8 = 1
    static let keyBytes = AESGCM.keyBytes
    static let checkBytes = 16
    /// The size of the header: magic, version, three zeros, key check. All of it is authenticated.
    static let headerBytes = 8 + 4 + checkBytes
    static let nonceBytes = AESGCM.nonceBytes
    static let tagBytes = AESGCM.tagBytes
    static let bytesMin = headerBytes + nonceBytes + tagBytes
    /// The largest size of a file in bytes.
    static let bytesMax = 1024 * 1024

    /// Creates the value for a key of 32 bytes.
    ///
    /// - Throws: `SecretStoreError` with `badKey`.
    init(key: [UInt8], location: String) throws(SecretStoreError) {
        guard key.count == Self.keyBytes else {
            throw SecretStoreError(
                .badKey, location: location, "the key must have \(Self.keyBytes) bytes")
        }
        self.key = SecretBytes(key)
        keyCheck = HKDF.sha256(
            key, info: Array("daybook secrets 1 key check".utf8), count: Self.checkBytes)
    }

    private var header: [UInt8] { Self.magic + [Self.version, 0, 0, 0] + keyCheck }

    /// Encrypts with a new random nonce.
    func seal(_ plaintext: [UInt8], location: String) throws(SecretStoreError) -> [UInt8] {
        guard plaintext.count <= Self.bytesMax - Self.bytesMin else {
            throw SecretStoreError(
                .tooLarge, location: location,
                "the file would have more than \(Self.bytesMax) bytes")
        }
        let nonce = SecretBytes.random(Self.nonceBytes)
        guard let sealed = AESGCM.seal(plaintext, header: header, key: key, nonce: nonce) else {
            throw SecretStoreError(
                .io, location: location, "the system's cryptography cannot encrypt it")
        }
        return header + nonce + sealed
    }

    /// Decrypts the result of `seal`.
    ///
    /// - Throws: `SecretStoreError` with `damaged`, `newerVersion` or `wrongKey`.
    func open(_ bytes: [UInt8], location: String) throws(SecretStoreError) -> [UInt8] {
        guard bytes.count >= Self.bytesMin, bytes.starts(with: Self.magic) else {
            throw Self.damaged(location)
        }
        let version = bytes[Self.magic.count...].prefix(4).enumerated().reduce(UInt32(0)) {
            $0 | UInt32($1.element) << UInt32(8 * $1.offset)
        }
        guard version != 0 else { throw Self.damaged(location) }
        guard version == UInt32(Self.version) else {
            throw SecretStoreError(
                .newerVersion, location: location,
                "it is of version \(version), or damaged; this is version \(Self.version)")
        }
        // Authenticated with the key check of this key, to distinguish a damaged key check from a file with
        // another key.
        let sealed = bytes[Self.headerBytes...]
        let plaintext = AESGCM.open(
            Array(sealed.dropFirst(Self.nonceBytes)), header: header, key: key,
            nonce: Array(sealed.prefix(Self.nonceBytes)))
        let isSameKey = bytes.starts(with: header)
        guard let plaintext, isSameKey else {
            guard plaintext == nil, !isSameKey else { throw Self.damaged(location) }
            throw SecretStoreError(
                .wrongKey, location: location,
                "it was encrypted with another key; use that key, or call deleteAll()")
        }
        return plaintext
    }

    static func damaged(_ location: String) -> SecretStoreError {
        SecretStoreError(
            .damaged, location: location,
            "it is damaged; restore a copy, or call deleteAll() and sign in again")
    }
}

extension SealedFile: CustomStringConvertible, CustomReflectable {
    /// The type's name without the key.
    var description: String { "SealedFile(hidden)" }
    /// A mirror without children, so that `dump` does not show the key.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
