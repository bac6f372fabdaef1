// The bytes of a sealed file: header, nonce, ciphertext, tag. No I/O.
// SealedFileSecretStore uses it; SecretTable is what is sealed. Spec/secrets.md, SEC-5 and SEC-7.

import Crypto
import Foundation
import Replay

/// Seals bytes under a key, and opens them.
struct SealedFile: Sendable {
    private let key: SymmetricKey
    /// Tells the key from others without giving anything of it away.
    private let keyCheck: [UInt8]

    static let magic = Array("DAYBSEC\0".utf8)
    static let version: UInt8 = 1
    static let keyBytes = 32
    static let checkBytes = 16
    /// Magic, version, three zeros, key check: all of it is authenticated.
    static let headerBytes = 8 + 4 + checkBytes
    static let nonceBytes = 12
    static let tagBytes = 16
    static let bytesMin = headerBytes + nonceBytes + tagBytes
    /// Bytes of a file at most.
    static let bytesMax = 1024 * 1024

    /// Takes a key of 32 bytes.
    init(key: [UInt8], place: String) throws(SecretStoreError) {
        guard key.count == Self.keyBytes else {
            throw SecretStoreError(
                .badKey, place: place, "the key must have \(Self.keyBytes) bytes")
        }
        self.key = SymmetricKey(data: key)
        let check = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: self.key, info: Data("daybook secrets 1 key check".utf8),
            outputByteCount: Self.checkBytes)
        keyCheck = check.withUnsafeBytes { Array($0) }
    }

    private var header: [UInt8] { Self.magic + [Self.version, 0, 0, 0] + keyCheck }

    /// Seals under a fresh random nonce.
    func seal(_ plaintext: [UInt8], place: String) throws(SecretStoreError) -> [UInt8] {
        guard plaintext.count <= Self.bytesMax - Self.bytesMin else {
            throw SecretStoreError(
                .tooLarge, place: place,
                "with this the file would have more than \(Self.bytesMax) bytes")
        }
        let nonce = AES.GCM.Nonce()
        guard
            let box = try? AES.GCM.seal(plaintext, using: key, nonce: nonce, authenticating: header)
        else { throw SecretStoreError(.io, place: place, "it cannot be sealed") }
        return header + Array(nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    /// Opens what `seal` made.
    func open(_ bytes: [UInt8], place: String) throws(SecretStoreError) -> [UInt8] {
        guard bytes.count >= Self.bytesMin, bytes.starts(with: Self.magic) else {
            throw Self.damaged(place)
        }
        let version = bytes[Self.magic.count...].prefix(4).enumerated().reduce(UInt32(0)) {
            $0 | UInt32($1.element) << UInt32(8 * $1.offset)
        }
        guard version != 0 else { throw Self.damaged(place) }
        guard version == UInt32(Self.version) else {
            throw SecretStoreError(
                .newerVersion, place: place,
                "it is of version \(version), or damaged; this is version \(Self.version)")
        }
        // With the check that this key would have written: so a damaged check is told from a file
        // under another key.
        let sealed = bytes[Self.headerBytes...]
        let plaintext: Data?
        if let nonce = try? AES.GCM.Nonce(data: sealed.prefix(Self.nonceBytes)),
            let box = try? AES.GCM.SealedBox(
                nonce: nonce,
                ciphertext: sealed.dropFirst(Self.nonceBytes).dropLast(Self.tagBytes),
                tag: sealed.suffix(Self.tagBytes))
        {
            plaintext = try? AES.GCM.open(box, using: key, authenticating: header)
        } else {
            plaintext = nil
        }
        let isSameKey = bytes.starts(with: header)
        guard let plaintext, isSameKey else {
            guard plaintext == nil, !isSameKey else { throw Self.damaged(place) }
            throw SecretStoreError(
                .wrongKey, place: place,
                "it was sealed under another key. Give that key, or call deleteAll()")
        }
        return Array(plaintext)
    }

    static func damaged(_ place: String) -> SecretStoreError {
        SecretStoreError(
            .damaged, place: place,
            "it is not as it was written. Put back a copy, or call deleteAll() and sign in again")
    }
}

extension SealedFile: CustomStringConvertible, CustomReflectable {
    /// Says nothing of the key.
    var description: String { "SealedFile(hidden)" }
    /// Shows nothing, so that `dump` does not either.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
