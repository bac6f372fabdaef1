// A client certificate for servers that require one (mTLS), and its storage in a secret store.
// Spec/operations/secrets.md, SEC-4 and SEC-27.

import EventSourcing
import Foundation

/// A client certificate with its private key, as a PKCS #12 file holds them.
public struct ClientCertificate: Hashable, Sendable {
    /// The content of the file (`.p12`, `.pfx`).
    public var pkcs12: [UInt8]
    /// The password of the file.
    public var password: String

    /// Creates a certificate from a file's content and its password. Neither is checked yet.
    public init(pkcs12: [UInt8], password: String) {
        self.pkcs12 = pkcs12
        self.password = password
    }

    /// The default name of a certificate in a secret store.
    public static let defaultName = "daybook.client-certificate"

    /// Saves the certificate in a secret store and replaces an earlier one. Durable on return.
    public func save(
        to store: any SecretStore, name: String = defaultName
    ) async throws(SecretStoreError) {
        try await store.write(stored, for: name)
    }

    /// The stored form: a JSON object.
    var stored: [UInt8] {
        var object = JSONObjectWriter()
        object.appendMember("data", Data(pkcs12).base64EncodedString())
        object.appendMember("password", password)
        return object.finished()
    }

    /// Decodes the stored form; nil if the bytes are not a certificate.
    init?(stored: [UInt8]) {
        guard let fields = try? JSONFields(stored), let text = try? fields.string("data"),
            let data = Data(base64Encoded: text), let password = try? fields.string("password")
        else { return nil }
        self.init(pkcs12: Array(data), password: password)
    }

    /// Loads the certificate from a secret store.
    ///
    /// - Returns: nil if there is none.
    /// - Throws: `SecretStoreError`; `damaged` if the stored value is not a certificate.
    public static func load(
        from store: any SecretStore, name: String = defaultName
    ) async throws(SecretStoreError) -> ClientCertificate? {
        guard let bytes = try await store.read(name) else { return nil }
        guard let certificate = ClientCertificate(stored: bytes) else {
            throw SecretStoreError(
                .damaged, location: name, "the stored value is not a certificate; save it again")
        }
        return certificate
    }

    /// Deletes the certificate from a secret store. Durable on return.
    public static func delete(
        from store: any SecretStore, name: String = defaultName
    ) async throws(SecretStoreError) {
        try await store.delete(name)
    }
}

extension ClientCertificate: CustomStringConvertible, CustomReflectable {
    /// The type's name without any content.
    public var description: String { "ClientCertificate(hidden)" }
    /// A mirror without children, so that `dump` shows no content.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

#if canImport(Security)
    import Security

    extension ClientCertificate {
        /// The answer to a server that asks for a certificate. The project's tests run on Linux and do not
        /// reach it.
        ///
        /// - Throws: `TransportError` with `badCertificate`.
        func credential() throws(TransportError) -> URLCredential {
            let options: [CFString: Any] = [
                kSecImportExportPassphrase: password,
                // macOS would store the key in the user's keychain otherwise.
                kSecImportToMemoryOnly: true,
            ]
            var items: CFArray?
            let status = SecPKCS12Import(
                Data(pkcs12) as CFData, options as CFDictionary, &items)
            guard status == errSecSuccess, let list = items as? [[String: Any]],
                let item = list.first?[kSecImportItemIdentity as String] as CFTypeRef?,
                CFGetTypeID(item) == SecIdentityGetTypeID()
            else {
                throw TransportError(
                    .badCertificate, location: "client certificate",
                    "it cannot be opened (\(status)); check its password")
            }
            let chain = list.first?[kSecImportItemCertChain as String] as? [SecCertificate] ?? []
            let identity = unsafeDowncast(item, to: SecIdentity.self)
            return URLCredential(
                identity: identity, certificates: Array(chain.dropFirst()),
                persistence: .forSession)
        }
    }
#endif
