// TLS under HTTP. In a file of its own, since a build with the trait ToolsWithoutTLS has none of it.
// Spec/operations/operating.md, OPS-2.

#if TLS
    import Hummingbird
    import HummingbirdCore
    import HummingbirdTLS

    extension HTTPServerBuilder {
        /// These channels over TLS.
        ///
        /// - Parameters:
        ///   - certificate: the path of a certificate chain in PEM.
        ///   - key: the path of its private key in PEM.
        /// - Throws: an exit with 65 for files that cannot be used, or that do not belong together.
        func encrypted(certificate: String, key: String) throws -> HTTPServerBuilder {
            var tls: TLSConfiguration
            do {
                tls = .makeServerConfiguration(
                    certificateChain: try NIOSSLCertificate.fromPEMFile(certificate)
                        .map { .certificate($0) },
                    privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
            } catch {
                throw SyncServer.failure(
                    "cannot use the certificate \(certificate) with the key \(key): both must be "
                        + "PEM files", .badData)
            }
            tls.minimumTLSVersion = .tlsv12
            tls.cipherSuites = cipherSuites
            // A connection that ends keeps its descriptor until the client has said that it ends, too.
            // That need not be waited for (RFC 8446, 6.1), and a client that never says it must cost
            // nothing.
            tls.shutdownTimeout = .milliseconds(100)
            do {
                // Otherwise OpenSSL looks at the two together only once the server listens.
                _ = try TLSChannel(
                    HTTP1Channel(responder: { _, _, _ in }), tlsConfiguration: tls)
                return try .tls(self, tlsConfiguration: tls)
            } catch {
                throw SyncServer.failure(
                    "the certificate \(certificate) does not fit the key \(key): give the key that "
                        + "it was issued for, and put the server's own certificate first", .badData)
            }
        }
    }

    /// The suites of TLS 1.2, whose defaults include some without forward secrecy and with CBC.
    /// Those of TLS 1.3 are all good, and not to be chosen.
    private let cipherSuites = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ].joined(separator: ":")
#endif
