// The names of secrets with the types of their values: settings that must not be in a log.
// Spec/operations/secrets.md, SEC-21; Spec/model/settings.md, SET-4.

import EventSourcing

/// The key of a value that is stored in a `SecretStore` and never in a log.
public struct SecretKey<Value: Sendable>: Sendable {
    /// The secret's name in the store: 1 to 256 bytes of UTF-8.
    public let name: String
    let encode: @Sendable (Value) -> [UInt8]
    let decode: @Sendable ([UInt8]) -> Value?

    /// Creates a key.
    ///
    /// - Parameters:
    ///   - name: the secret's name in the store.
    ///   - encode: encodes a value.
    ///   - decode: decodes a value; returns nil for bytes that are not a value.
    public init(
        _ name: String, encode: @escaping @Sendable (Value) -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) -> Value?
    ) {
        self.name = name
        self.encode = encode
        self.decode = decode
    }
}

extension SecretKey where Value == AccessToken {
    /// The token that `RefreshingCredentials` stores.
    public static var accessToken: Self {
        SecretKey(
            RefreshingCredentials.defaultName, encode: StoredToken.bytes, decode: StoredToken.read)
    }
}

extension SecretKey where Value == ClientCertificate {
    /// The client certificate with its password.
    public static var clientCertificate: Self {
        SecretKey(
            ClientCertificate.defaultName, encode: \.stored, decode: ClientCertificate.init(stored:)
        )
    }
}

extension SecretKey where Value == [String: String] {
    /// Headers that a proxy requires: for `HTTPTransport(endpoint:headers:)`.
    public static var customHeaders: Self {
        SecretKey("daybook.custom-headers") { headers in
            var object = JSONObjectWriter()
            for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
                object.appendMember(name, value)
            }
            return object.finished()
        } decode: { bytes in
            guard case .object(let members) = try? JSONValue(bytes.span.bytes) else { return nil }
            var headers: [String: String] = [:]
            for (name, value) in members {
                guard case .string(let text) = value else { return nil }
                headers[name] = text
            }
            return headers
        }
    }
}

extension SecretKey where Value == String {
    /// A secret text of the app. Its name begins with `app.`, so that it is none of Daybook's.
    public static func text(_ name: String) -> Self {
        SecretKey(
            "app.\(name)", encode: { Array($0.utf8) },
            decode: { String(validating: $0, as: UTF8.self) })
    }
}

extension SecretStore {
    /// The value of a key; nil if there is none.
    ///
    /// - Throws: `SecretStoreError`; `damaged` if the stored bytes are not such a value.
    public func value<Value>(of key: SecretKey<Value>) async throws(SecretStoreError) -> Value? {
        guard let bytes = try await read(key.name) else { return nil }
        guard let value = key.decode(bytes) else {
            throw SecretStoreError(
                .damaged, location: key.name,
                "the stored bytes are not such a value; store it again")
        }
        return value
    }

    /// Stores a value and replaces an earlier one. Durable on return.
    public func write<Value>(
        _ value: Value, for key: SecretKey<Value>
    ) async throws(SecretStoreError) {
        try await write(key.encode(value), for: key.name)
    }
}
