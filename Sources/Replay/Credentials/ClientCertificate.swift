// A client certificate for servers that ask for one (mTLS), and where it is kept. Presented by
// BoundedHTTPClient. Spec/operations/secrets.md, SEC-4 and SEC-27.

import EventSourcing
import Foundation

/// A client certificate with its private key, as a PKCS #12 file holds them.
public struct ClientCertificate: Hashable, Sendable {
    /// The content of the file (`.p12`, `.pfx`).
    public var pkcs12: [UInt8]
    /// The password of the file.
    public var password: String

    /// Takes a file's content and its password. Neither is looked at yet.
    public init(pkcs12: [UInt8], password: String) {
        self.pkcs12 = pkcs12
        self.password = password
    }

    /// The name under which a certificate is kept unless the app says otherwise.
    public static let defaultName = "daybook.client-certificate"

    /// Keeps it in a store, in place of what was there. Durable on return.
    public func save(
        to store: any SecretStore, name: String = defaultName
    ) async throws(SecretStoreError) {
        try await store.write(stored, for: name)
    }

    /// As a secret store keeps it.
    var stored: [UInt8] {
        var object = JSONObjectWriter()
        object.add("data", Data(pkcs12).base64EncodedString())
        object.add("password", password)
        return object.finished()
    }

    /// Of what a secret store keeps; nil if that is no certificate.
    init?(stored: [UInt8]) {
        guard let fields = try? JSONFields(stored), let text = try? fields.string("data"),
            let data = Data(base64Encoded: text), let password = try? fields.string("password")
        else { return nil }
        self.init(pkcs12: Array(data), password: password)
    }

    /// The certificate of a store.
    ///
    /// - Returns: nil if there is none.
    /// - Throws: `SecretStoreError`; `damaged` where what is stored is no certificate.
    public static func load(
        from store: any SecretStore, name: String = defaultName
    ) async throws(SecretStoreError) -> ClientCertificate? {
        guard let bytes = try await store.read(name) else { return nil }
        guard let certificate = ClientCertificate(stored: bytes) else {
            throw SecretStoreError(
                .damaged, place: name, "what is stored is no certificate. Save it again")
        }
        return certificate
    }

    /// Forgets the certificate of a store. Durable on return.
    public static func delete(
        from store: any SecretStore, name: String = defaultName
    ) async throws(SecretStoreError) {
        try await store.delete(name)
    }
}

extension ClientCertificate: CustomStringConvertible, CustomReflectable {
    /// Says that there is a certificate, and nothing of it.
    public var description: String { "ClientCertificate(hidden)" }
    /// Shows nothing, so that `dump` does not either.
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
                let found = list.first?[kSecImportItemIdentity as String] as CFTypeRef?,
                CFGetTypeID(found) == SecIdentityGetTypeID()
            else {
                throw TransportError(
                    .badCertificate, place: "client certificate",
                    "it cannot be opened (\(status)). Is the password right?")
            }
            let chain = list.first?[kSecImportItemCertChain as String] as? [SecCertificate] ?? []
            let identity = unsafeDowncast(found, to: SecIdentity.self)
            return URLCredential(
                identity: identity, certificates: Array(chain.dropFirst()),
                persistence: .forSession)
        }
    }
#endif
