// TLS under HTTP. Only a build with the trait ToolsWithTLS compiles this file.
// Spec/operations/operating.md, OPS-2.

#if TLS
    import Hummingbird
    import HummingbirdCore
    import HummingbirdTLS
    import Logging
    import StandardStreams

    extension HTTPServerBuilder {
        /// Wraps these channels in TLS.
        ///
        /// - Parameters:
        ///   - certificate: the path of a certificate chain in PEM.
        ///   - key: the path of its private key in PEM.
        /// - Throws: an exit with 65 for files that are not PEM or do not belong together, and for a key that all
        ///   users may write.
        func encrypted(
            certificate: String, key: String, _ logger: Logger
        ) throws -> HTTPServerBuilder {
            var tls: TLSConfiguration
            do {
                let file = try SecretFile(key, kind: "private key", bytesMax: 1_048_576)
                if let warning = file.warning() { logger.warning("\(warning)") }
                tls = .makeServerConfiguration(
                    certificateChain: try NIOSSLCertificate.fromPEMFile(certificate)
                        .map { .certificate($0) },
                    privateKey: .privateKey(try NIOSSLPrivateKey(bytes: file.bytes, format: .pem)))
            } catch let error as SecretFile.Fault {
                throw SyncServer.failure(error.description, .badData)
            } catch {
                throw SyncServer.failure(
                    "cannot use the certificate \(certificate) with the key \(key): both must be "
                        + "PEM files", .badData)
            }
            tls.minimumTLSVersion = .tlsv12
            tls.cipherSuites = cipherSuites
            // A closing connection keeps its descriptor until the client has sent close_notify. Waiting
            // for that is optional (RFC 8446, 6.1), and a client that never sends it must cost nothing.
            tls.shutdownTimeout = .milliseconds(100)
            do {
                // Otherwise OpenSSL compares the two only once the server listens.
                _ = try TLSChannel(
                    HTTP1Channel(responder: { _, _, _ in }), tlsConfiguration: tls)
                return try .tls(self, tlsConfiguration: tls)
            } catch {
                throw SyncServer.failure(
                    "the certificate \(certificate) does not match the key \(key): use the key that "
                        + "it was issued for, and put the server's own certificate first", .badData)
            }
        }
    }

    /// The cipher suites of TLS 1.2, whose defaults include some without forward secrecy and with CBC.
    /// All those of TLS 1.3 are secure, and cannot be configured.
    private let cipherSuites = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ].joined(separator: ":")
#endif
