// Headers, certificates and proxies: which servers get them. Spec/operations/secrets.md.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// Collects a reply's body.
private final class Body: ResponseBodyHandler {
    private let bytes = Mutex<[UInt8]>([])
    var text: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }
    func begin(_ head: BoundedHTTPResponseHead) -> Bool { true }
    func receive(_ more: [UInt8]) -> Bool {
        bytes.withLock { $0 += more }
        return true
    }
}

@Suite struct HTTPOptionsTests {
    private func failure(
        _ options: HTTPOptions, _ url: URL, isOwn: Bool = true
    ) async -> TransportError.Code? {
        let client = BoundedHTTPClient(options, requestSeconds: 30)
        do {
            _ = try await client.send(BoundedHTTPRequest(url), token: nil, isOwn: isOwn, to: Body())
            return nil
        } catch { return (error as? TransportError)?.code }
    }

    @Test(.verifies("SEC-17"))
    func `the app's headers are sent to its own servers, and replace no header of a request`()
        async throws
    {
        let server = try LocalServer { _ in .reply(200) }
        var options = HTTPOptions()
        options.headers = ["X-Proxy": "s3cret", "Range": "bytes=0-1", "x-own": "app"]
        let client = BoundedHTTPClient(options, requestSeconds: 30)
        var request = BoundedHTTPRequest(try #require(URL(string: server.base)))
        request.set("Range", "bytes=7-")
        for isOwn in [true, false] {
            _ = try await client.send(request, token: nil, isOwn: isOwn, to: Body())
            let sent = try #require(server.requests.last)
            #expect(sent.values("X-Proxy") == (isOwn ? ["s3cret"] : []))
            #expect(sent.values("Range") == ["bytes=7-"])
        }
    }

    @Test(.verifies("SEC-17", "SEC-28"))
    func `invalid options are refused when a transport is created, and by each request`()
        async throws
    {
        let url = try #require(URL(string: "http://127.0.0.1:1/v1/events"))
        func proxy(_ url: String, _ user: String? = nil) -> HTTPOptions {
            var options = HTTPOptions()
            options.proxy = HTTPProxy(URL(string: url) ?? URL(filePath: "/"), user: user)
            return options
        }
        var headers = HTTPOptions()
        headers.headers = ["Host": "elsewhere"]
        for (options, code) in [
            (headers, TransportError.Code.reservedHeader), (proxy("socks5://127.0.0.1"), .badProxy),
            (proxy("http://u:p@127.0.0.1"), .badProxy), (proxy("/file"), .badProxy),
            (proxy("http://127.0.0.1", "a\r\nb"), .badProxy),
        ] {
            let error = #expect(throws: TransportError.self) {
                try HTTPTransport(endpoint: url, http: options)
            }
            #expect(error?.code == code)
            #expect(await failure(options, url) == code)
        }
    }

    @Test(.verifies("SEC-1"))
    func `options show no value of a header, no certificate and no password`() throws {
        var options = HTTPOptions()
        options.headers = ["X-Proxy": "recognisable"]
        options.certificate = ClientCertificate(
            pkcs12: Array("recognisable".utf8), password: "recognisable")
        options.proxy = HTTPProxy(
            try #require(URL(string: "http://proxy.example:3128")), user: "recognisable",
            password: "recognisable")
        var dumped = ""
        dump(options, to: &dumped)
        #expect(!"\(options) \(dumped)".contains("recognisable"))
        #expect(dumped.contains("X-Proxy"))
        #expect(dumped.contains("proxy.example"))
    }

    #if os(Linux)
        @Test(.verifies("SEC-27"))
        func `a server that asks for a certificate gets the app's, and no other server does`()
            async throws
        {
            let server = try TLSServer(asksForCertificate: true)
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            var options = HTTPOptions()
            options.authoritiesFile = server.authoritiesFile
            #expect(await failure(options, url) == .connectionFailed)
            options.certificate = try server.clientCertificate(password: "secret")
            let client = BoundedHTTPClient(options, requestSeconds: 30)
            let body = Body()
            let head = try await client.send(BoundedHTTPRequest(url), token: nil, to: body)
            #expect(head.status == 200)
            #expect(body.text.contains("CN=phone"))
            #expect(await failure(options, url, isOwn: false) == .connectionFailed)
            // Also with the same client, which has an open connection with the certificate.
            await #expect(throws: TransportError.self) {
                try await client.send(BoundedHTTPRequest(url), token: nil, isOwn: false, to: Body())
            }
        }

        @Test(.verifies("SEC-27"))
        func `a certificate that cannot be opened is named, and nothing is sent`() async throws {
            let server = try TLSServer(asksForCertificate: true)
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            var options = HTTPOptions()
            options.authoritiesFile = server.authoritiesFile
            options.certificate = try server.clientCertificate(password: "wrong")
            #expect(await failure(options, url) == .badCertificate)
            options.certificate = ClientCertificate(pkcs12: [1, 2, 3], password: "")
            #expect(await failure(options, url) == .badCertificate)
            options.certificate = ClientCertificate(pkcs12: [], password: "")
            #expect(await failure(options, url) == .badCertificate)
        }

        @Test(.verifies("SEC-28"))
        func `https goes through the proxy with its password, http does not`() async throws {
            let server = try TLSServer()
            let proxy = try LocalServer { request in
                guard request.method == "CONNECT",
                    let port = request.target.split(separator: ":").last.flatMap({ UInt16($0) })
                else { return .reply(405) }
                return .script { connection in
                    connection.send("HTTP/1.1 200 Connection established\r\n\r\n")
                    connection.tunnel(to: port)
                }
            }
            var options = HTTPOptions()
            options.headers = ["X-Own": "for the server"]
            options.authoritiesFile = server.authoritiesFile
            options.proxy = HTTPProxy(
                try #require(URL(string: proxy.base)), user: "ana", password: "pass word")
            let client = BoundedHTTPClient(options, requestSeconds: 30)
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            let head = try await client.send(BoundedHTTPRequest(url), token: "token", to: Body())
            #expect(head.status == 200)
            let connect = try #require(proxy.requests.first)
            #expect(connect.target == "127.0.0.1:\(server.port)")
            // "ana:pass word" in Base64.
            #expect(connect.values("Proxy-Authorization") == ["Basic YW5hOnBhc3Mgd29yZA=="])
            #expect(connect.values("Authorization").isEmpty)
            #expect(connect.values("X-Own").isEmpty)
            let plain = try LocalServer { _ in .reply(204) }
            let direct = BoundedHTTPRequest(try #require(URL(string: plain.base)))
            #expect(try await client.send(direct, token: nil, to: Body()).status == 204)
            #expect(proxy.requests.count == 1)
            #expect(plain.requests.count == 1)
            #expect(plain.requests[0].values("Proxy-Authorization").isEmpty)
        }
    #endif
}
