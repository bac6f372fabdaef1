// AES-256 in Galois/Counter Mode (NIST SP 800-38D), computed by the system: libcrypto on Linux,
// CryptoKit elsewhere.

#if canImport(CryptoKit)
    import CryptoKit
#else
    import CCrypto
#endif

/// Authenticated encryption.
package enum AESGCM {
    /// The size of a key in bytes.
    package static let keyBytes = 32
    /// The size of a nonce in bytes. A nonce must not be used twice with one key.
    package static let nonceBytes = 12
    /// The size of a tag in bytes.
    package static let tagBytes = 16

    /// Encrypts and authenticates.
    ///
    /// - Parameters:
    ///   - plaintext: the bytes to encrypt.
    ///   - header: the associated data, which is authenticated and not encrypted.
    ///   - key: 32 bytes.
    ///   - nonce: 12 bytes.
    /// - Returns: the ciphertext with the tag after it; nil if the system cannot encrypt.
    /// - Complexity: O(bytes).
    package static func seal(
        _ plaintext: [UInt8], header: [UInt8], key: SecretBytes, nonce: [UInt8]
    ) -> [UInt8]? {
        guard key.count == keyBytes, nonce.count == nonceBytes else { return nil }
        #if canImport(CryptoKit)
            guard let nonce = try? AES.GCM.Nonce(data: nonce),
                let box = try? AES.GCM.seal(
                    plaintext, using: key.withBytes { SymmetricKey(data: $0) }, nonce: nonce,
                    authenticating: header)
            else { return nil }
            return Array(box.ciphertext) + Array(box.tag)
        #else
            guard let context = EVP_CIPHER_CTX_new() else { return nil }
            defer { EVP_CIPHER_CTX_free(context) }
            var sealed = [UInt8](repeating: 0, count: plaintext.count)
            var tag = [UInt8](repeating: 0, count: tagBytes)
            var count: Int32 = 0
            guard
                key.withBytes({
                    EVP_EncryptInit_ex(
                        context, EVP_aes_256_gcm(), nil, $0.baseAddress, nonce)
                }) == 1,
                let headerCount = Int32(exactly: header.count),
                let plainCount = Int32(exactly: plaintext.count),
                EVP_EncryptUpdate(context, nil, &count, header, headerCount) == 1,
                EVP_EncryptUpdate(context, &sealed, &count, plaintext, plainCount) == 1,
                EVP_EncryptFinal_ex(context, &tag, &count) == 1,
                EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), &tag) == 1
            else { return nil }
            return sealed + tag
        #endif
    }

    /// Decrypts the result of `seal`.
    ///
    /// - Returns: nil if the ciphertext, the tag, the header, the key or the nonce is not the same.
    /// - Complexity: O(bytes).
    package static func open(
        _ sealed: [UInt8], header: [UInt8], key: SecretBytes, nonce: [UInt8]
    ) -> [UInt8]? {
        guard key.count == keyBytes, nonce.count == nonceBytes, sealed.count >= tagBytes else {
            return nil
        }
        let ciphertext = Array(sealed.dropLast(tagBytes))
        var tag = Array(sealed.suffix(tagBytes))
        #if canImport(CryptoKit)
            guard let nonce = try? AES.GCM.Nonce(data: nonce),
                let box = try? AES.GCM.SealedBox(
                    nonce: nonce, ciphertext: ciphertext, tag: tag),
                let plaintext = try? AES.GCM.open(
                    box, using: key.withBytes { SymmetricKey(data: $0) }, authenticating: header)
            else { return nil }
            return Array(plaintext)
        #else
            guard let context = EVP_CIPHER_CTX_new() else { return nil }
            defer { EVP_CIPHER_CTX_free(context) }
            var plaintext = [UInt8](repeating: 0, count: ciphertext.count)
            // GCM writes no final bytes; the call needs a buffer all the same.
            var finalBytes = [UInt8](repeating: 0, count: tagBytes)
            var count: Int32 = 0
            guard
                key.withBytes({
                    EVP_DecryptInit_ex(
                        context, EVP_aes_256_gcm(), nil, $0.baseAddress, nonce)
                }) == 1,
                let headerCount = Int32(exactly: header.count),
                let cipherCount = Int32(exactly: ciphertext.count),
                EVP_DecryptUpdate(context, nil, &count, header, headerCount) == 1,
                EVP_DecryptUpdate(context, &plaintext, &count, ciphertext, cipherCount) == 1,
                EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), &tag) == 1,
                EVP_DecryptFinal_ex(context, &finalBytes, &count) == 1
            else { return nil }
            return plaintext
        #endif
    }
}
