// Where secrets are kept over restarts: tokens, client certificates, headers for proxies. Never the
// log. The system's keychain is KeychainSecretStore; a file under a key of the app is
// SealedFileSecretStore in DaybookSecrets; tests use InMemorySecretStore of DaybookTestKit.
// Spec/operations/secrets.md.

/// Keeps secrets: byte values under names.
///
/// Implementations must keep what was written before where a write fails, and must say nothing of a
/// value in an error or a log.
public protocol SecretStore: Sendable {
    /// The value under a name.
    ///
    /// - Parameter name: 1 to 256 bytes of UTF-8.
    /// - Returns: nil if there is none.
    /// - Throws: `SecretStoreError` where it is not known whether there is one, or which.
    func read(_ name: String) async throws(SecretStoreError) -> [UInt8]?

    /// Keeps a value, in place of what was there. Durable on return.
    ///
    /// - Parameters:
    ///   - value: the secret; may be empty.
    ///   - name: 1 to 256 bytes of UTF-8.
    /// - Throws: `SecretStoreError`. The value is then the old one; only after `indeterminate` may
    ///   it be either.
    func write(_ value: [UInt8], for name: String) async throws(SecretStoreError)

    /// Forgets the value under a name. Durable on return. No error where there is none.
    func delete(_ name: String) async throws(SecretStoreError)

    /// Forgets everything. Durable on return. Works also where nothing can be read any more.
    func deleteAll() async throws(SecretStoreError)
}
