// The keychain of Apple systems as a secret store. Kept small, because the project is tested on Linux.
// Spec/operations/secrets.md.

#if canImport(Security)
    import Foundation
    import Security

    /// The system's keychain.
    ///
    /// Items are generic passwords that can be read after the first unlock of the device, stay on
    /// it, and are not synchronised. The project's tests run on Linux and do not reach this type.
    public struct KeychainSecretStore: SecretStore {
        private let service: String

        /// Creates a store. Nothing is read or written.
        ///
        /// - Parameter service: the service name of the store's items, such as the app's bundle id.
        public init(service: String) { self.service = service }

        public func read(_ name: String) throws(SecretStoreError) -> [UInt8]? {
            var query = try query(name)
            query[kSecReturnData] = true
            query[kSecMatchLimit] = kSecMatchLimitOne
            var item: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &item)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess else { throw error(status) }
            guard let data = item as? Data else {
                throw SecretStoreError(.damaged, location: service, "the keychain item has no data")
            }
            return Array(data)
        }

        public func write(_ value: [UInt8], for name: String) throws(SecretStoreError) {
            let query = try query(name)
            let content: [CFString: Any] = [
                kSecValueData: Data(value),
                kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            ]
            // Another process may add or remove the item between the two calls.
            for _ in 0..<3 {
                let changed = SecItemUpdate(query as CFDictionary, content as CFDictionary)
                if changed == errSecSuccess { return }
                guard changed == errSecItemNotFound else { throw error(changed) }
                let new = query.merging(content) { _, new in new }
                let added = SecItemAdd(new as CFDictionary, nil)
                if added == errSecSuccess { return }
                guard added == errSecDuplicateItem else { throw error(added) }
            }
            throw SecretStoreError(
                .busy, location: service, "another process writes the same item; try again")
        }

        public func delete(_ name: String) throws(SecretStoreError) { try remove(query(name)) }

        public func deleteAll() throws(SecretStoreError) { try remove(base) }

        private func remove(_ query: [CFString: Any]) throws(SecretStoreError) {
            let status = SecItemDelete(query as CFDictionary)
            guard status == errSecSuccess || status == errSecItemNotFound else {
                throw error(status)
            }
        }

        private var base: [CFString: Any] {
            [
                kSecClass: kSecClassGenericPassword,
                kSecAttrService: service,
                kSecAttrSynchronizable: false,
                kSecUseDataProtectionKeychain: true,
            ]
        }

        private func query(_ name: String) throws(SecretStoreError) -> [CFString: Any] {
            guard 1...256 ~= name.utf8.count else {
                throw SecretStoreError(.badName, location: service, "a name has 1 to 256 bytes")
            }
            return base.merging([kSecAttrAccount: name]) { _, new in new }
        }

        private func error(_ status: OSStatus) -> SecretStoreError {
            switch status {
            case errSecInteractionNotAllowed:
                SecretStoreError(
                    .locked, location: service,
                    "the keychain is locked until the device is unlocked once after it started")
            case errSecMissingEntitlement:
                SecretStoreError(
                    .locked, location: service,
                    "the app has no entitlement for the keychain; sign it with a keychain access group"
                )
            default:
                SecretStoreError(
                    .io, location: service,
                    "the keychain answers \(status)"
                        + (SecCopyErrorMessageString(status, nil).map { ": \($0)" } ?? ""))
            }
        }
    }
#endif
