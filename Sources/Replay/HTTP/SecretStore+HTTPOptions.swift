// The options of requests that are stored as secrets. Spec/operations/secrets.md.

extension SecretStore {
    /// The stored headers and client certificate (`SecretKey.customHeaders`, `.clientCertificate`), as
    /// options of requests.
    ///
    /// - Throws: `SecretStoreError`; `damaged` if a stored value is invalid.
    public func httpOptions() async throws(SecretStoreError) -> HTTPOptions {
        var options = HTTPOptions()
        options.headers = try await value(of: .customHeaders) ?? [:]
        options.certificate = try await value(of: .clientCertificate)
        return options
    }
}
