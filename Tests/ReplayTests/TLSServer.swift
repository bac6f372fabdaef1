// The openssl tool as a server with a self-signed certificate; if a test requires it, only
// for clients that present one.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// An openssl server on a free port. It answers each GET with a page about the connection.
final class TLSServer {
    let port: Int
    /// The server's own certificate, which is its own authority.
    var authoritiesFile: String { folder.path + "/certificate" }
    private let process = Process()
    private let folder: TemporaryFolder
    private let text = Text()

    private final class Text: Sendable {
        private let text = Mutex("")
        var all: String { text.withLock { $0 } }
        func add(_ more: String) { text.withLock { $0 += more } }
    }

    /// Starts a server.
    ///
    /// - Parameter asksForCertificate: whether only the client with `clientCertificate` is served.
    init(asksForCertificate: Bool = false) throws {
        folder = try TemporaryFolder()
        let path = folder.path
        try Self.makeCertificate("127.0.0.1", path + "/key", path + "/certificate")
        try Self.makeCertificate("phone", path + "/client-key", path + "/client")
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments =
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www"]
            + ["-key", path + "/key", "-cert", path + "/certificate"]
            + (asksForCertificate
                ? ["-Verify", "1", "-verify_return_error", "-CAfile", path + "/client"] : [])
        process.standardError = FileHandle.nullDevice
        let output = Pipe.betweenStarts()
        process.standardOutput = output
        process.standardInput = Pipe.betweenStarts()
        try process.runAlone()
        // ACCEPT 127.0.0.1:43211
        var line = ""
        while !line.contains("ACCEPT") || !line.hasSuffix("\n") {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { break }
            line += String(decoding: data, as: UTF8.self)
        }
        text.add(line)
        port =
            Int(
                line.split(separator: ":").last?.trimmingCharacters(in: .whitespacesAndNewlines)
                    ?? "")
            ?? 0
        try #require(port > 0)
        output.fileHandleForReading.readabilityHandler = { [text] handle in
            let data = handle.availableData
            text.add(String(decoding: data, as: UTF8.self))
        }
    }

    private static func makeCertificate(
        _ name: String, _ key: String, _ certificate: String
    ) throws {
        try openssl(
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
                + ["-nodes", "-days", "2", "-subj", "/CN=\(name)"]
                + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate])
    }

    private static func openssl(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.standardError = FileHandle.nullDevice
        try process.runAlone()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    /// The certificate that the server asks for, in a file with a password.
    func clientCertificate(password: String) throws -> ClientCertificate {
        let path = folder.path
        try Self.openssl(
            ["pkcs12", "-export", "-inkey", path + "/client-key", "-in", path + "/client"]
                + ["-out", path + "/client.p12", "-passout", "pass:secret"])
        let bytes = try Data(contentsOf: folder.appending("client.p12"))
        return ClientCertificate(pkcs12: Array(bytes), password: password)
    }

    func output() -> String { text.all }

    deinit {
        // Not SIGTERM: openssl was seen to outlive it, and the wait for it never ended.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
