// The storage of secrets: tokens, client certificates, headers for proxies. Never the log. Implementations:
// KeychainSecretStore (the system's keychain), SealedFileSecretStore in DaybookSecrets (a file, encrypted
// with a key of the app), InMemorySecretStore in DaybookTestKit. Spec/operations/secrets.md.

/// A store of secrets: byte values by name.
///
/// If a write fails, an implementation must keep the earlier value. An error or a log must not contain any
/// part of a value.
public protocol SecretStore: Sendable {
    /// Reads the value with a name.
    ///
    /// - Parameter name: 1 to 256 bytes of UTF-8.
    /// - Returns: nil if there is none.
    /// - Throws: `SecretStoreError` if the value could not be read.
    func read(_ name: String) async throws(SecretStoreError) -> [UInt8]?

    /// Stores a value and replaces an earlier one. Durable on return.
    ///
    /// - Parameters:
    ///   - value: the secret; may be empty.
    ///   - name: 1 to 256 bytes of UTF-8.
    /// - Throws: `SecretStoreError`. The old value is kept; after `indeterminate` the value may be the old or
    ///   the new one.
    func write(_ value: [UInt8], for name: String) async throws(SecretStoreError)

    /// Deletes the value with a name. Durable on return. Does nothing if there is none.
    func delete(_ name: String) async throws(SecretStoreError)

    /// Deletes all values. Durable on return. Succeeds even if no value can be read.
    func deleteAll() async throws(SecretStoreError)
}
