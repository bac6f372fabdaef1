// What a secret store keeps for requests. Spec/operations/secrets.md.

extension SecretStore {
    /// The headers and the client certificate that are kept here (`SecretKey.customHeaders`,
    /// `.clientCertificate`), as options of requests.
    ///
    /// - Throws: `SecretStoreError`; `damaged` if the stored value is no certificate, or no headers.
    public func httpOptions() async throws(SecretStoreError) -> HTTPOptions {
        var options = HTTPOptions()
        options.headers = try await value(of: .customHeaders) ?? [:]
        options.certificate = try await value(of: .clientCertificate)
        return options
    }
}
