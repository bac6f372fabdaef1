// The classification of responses to a request for an image: the table of Spec/model/downloads.md, by row.

import DownloadHistories
import Foundation
import Replay
import TestSupport
import Testing

@testable import DaybookOffline

@Suite(.verifies("DL-16")) struct RangeAnswerTests {
    private static let name = "manifest.images[3]"

    private static func answer(
        _ status: Int, _ headers: [String: String] = [:], from offset: Int? = 10,
        size: Int? = nil, bytesMax: Int = 1_000, etag: String? = "\"a\"", date: String? = nil,
        total: Int? = 100, at url: String = "https://server/image", allowsLocal: Bool = true
    ) throws -> RangeAnswer {
        var sidecar = PartialFile.Sidecar(url: url)
        (sidecar.etag, sidecar.lastModified, sidecar.total) = (etag, date, total)
        return RangeAnswer(
            BoundedHTTPResponseHead(status: status, headers),
            to: .init(
                name: name, url: try #require(URL(string: url)), offset: offset, sidecar: sidecar,
                size: size, bytesMax: bytesMax, allowsLocal: allowsLocal))
    }

    /// True if the image is to be fetched again, and the message names it.
    private static func isWrong(_ answer: RangeAnswer) -> Bool {
        if case .wrong(let problem) = answer { problem.contains(name) } else { false }
    }

    private static func isPortal(_ answer: RangeAnswer) -> Bool {
        if case .portal = answer { true } else { false }
    }

    private static func isRedirect(_ answer: RangeAnswer) -> Bool {
        if case .redirected = answer { true } else { false }
    }

    @Test func `a partial response is appended if it is the requested range`() throws {
        #expect(try Self.answer(206, ["Content-Range": "bytes 10-99/100"]) == .append)
        #expect(try Self.answer(206, ["Content-Range": "bytes 10-19/100"]) == .append)
        #expect(try Self.answer(206, ["Content-Range": "bytes 10-99/*"]) == .append)
        #expect(
            try Self.answer(
                206, ["content-range": "Bytes 10-99/100", "ETag": "\"a\"", "Content-Length": "90"])
                == .append)
    }

    @Test(arguments: [
        [:], ["Content-Range": "bytes 9-99/100"], ["Content-Range": "bytes 11-99/100"],
        ["Content-Range": "bytes 10-9/100"], ["Content-Range": "bytes 10-100/100"],
        ["Content-Range": "bytes 10-99/101"], ["Content-Range": "bytes 10-1000/*"],
        ["Content-Range": "bytes */100"], ["Content-Range": "items 10-99/100"],
        ["Content-Range": "bytes 10-99999999999999999999/*"],
        ["Content-Range": "bytes -10-99/100"],
        ["Content-Range": "bytes 10-99/100", "ETag": "\"b\""],
        ["Content-Range": "bytes 10-99/100", "ETag": "W/\"a\""],
        ["Content-Range": "bytes 10-99/100", "Content-Length": "91"],
        ["Content-Range": "bytes 10-99/100", "Content-Encoding": "gzip"],
        ["Content-Type": "multipart/byteranges; boundary=x"],
    ])
    func `any other partial response is wrong`(headers: [String: String]) throws {
        #expect(Self.isWrong(try Self.answer(206, headers)))
    }

    @Test func `a partial response of a changed image is wrong, if its date shows it`() throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let later = "Sun, 06 Nov 1994 08:49:38 GMT"
        func part(_ headers: [String: String], etag: String? = nil) throws -> RangeAnswer {
            try Self.answer(
                206, headers.merging(["Content-Range": "bytes 10-99/100"]) { a, _ in a },
                etag: etag, date: date)
        }
        #expect(try part([:]) == .append)
        #expect(try part(["Last-Modified": date]) == .append)
        #expect(Self.isWrong(try part(["Last-Modified": later])))
        // The strong tag decides, whatever the date.
        #expect(try part(["ETag": "\"a\"", "Last-Modified": later], etag: "\"a\"") == .append)
    }

    @Test func `a partial response without a requested range is wrong`() throws {
        #expect(Self.isWrong(try Self.answer(206, ["Content-Range": "bytes 0-99/100"], from: nil)))
    }

    @Test func `a complete response restarts the image, unless it is encoded or too long`() throws {
        #expect(try Self.answer(200) == .restart)
        #expect(try Self.answer(200, ["Content-Length": "1000"]) == .restart)
        #expect(try Self.answer(200, ["Content-Length": "-5"]) == .restart)
        #expect(Self.isWrong(try Self.answer(200, ["Content-Length": "1001"])))
        #expect(Self.isWrong(try Self.answer(200, ["Content-Encoding": "gzip"])))
    }

    @Test func `an unsatisfiable range means a complete image, if the lengths agree`() throws {
        let range = ["Content-Range": "bytes */10"]
        #expect(try Self.answer(416, range, total: nil) == .complete)
        #expect(try Self.answer(416, range, size: 10, total: 10) == .complete)
        #expect(Self.isWrong(try Self.answer(416, range, size: 11, total: nil)))
        #expect(Self.isWrong(try Self.answer(416, range, total: 100)))
        #expect(Self.isWrong(try Self.answer(416, ["Content-Range": "bytes */9"])))
        #expect(Self.isWrong(try Self.answer(416)))
        #expect(Self.isWrong(try Self.answer(416, range, from: nil, total: nil)))
    }

    @Test(.verifies("DL-12"))
    func `a redirect may lead to http or https, but never from https to http`()
        throws
    {
        func place(_ location: String, from url: String = "https://server/image") throws -> String?
        {
            if case .redirected(let url) = try Self.answer(302, ["Location": location], at: url) {
                return url.absoluteString
            }
            return nil
        }
        #expect(try place("https://other/x") == "https://other/x")
        #expect(try place("/x") == "https://server/x")
        #expect(try place("http://other/x", from: "http://server/i") == "http://other/x")
        #expect(try place("http://other/x") == nil)
        #expect(try place("file:///etc/passwd") == nil)
        #expect(try place("https://name:word@other/x") == nil)
        #expect(try Self.answer(302) != .restart)
    }

    @Test(
        .verifies("DL-12", "DL-25"),
        arguments: [
            "127.0.0.1", "127.1", "2130706433", "0x7f.1", "10.1.2.3", "172.16.0.1", "192.168.178.1",
            "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "[::1]", "[::]", "[fe80::1]",
            "[fd00::1]", "[ff02::1]", "[::ffff:192.168.0.1]", "[64:ff9b::a00:1]", "localhost",
            "[2002:a00:1::1]", "[64:ff9b:1::808:808]",
            "router", "router.local", "x.home.arpa", "LOCALHOST.", "metadata.internal",
        ])
    func `a redirect to this machine or its network is not followed from elsewhere`(
        host: String
    ) throws {
        let location = ["Location": "https://\(host)/login"]
        #expect(Self.isPortal(try Self.answer(302, location, allowsLocal: false)))
        #expect(Self.isRedirect(try Self.answer(302, location, allowsLocal: true)))
    }

    @Test(
        .verifies("DL-12"),
        arguments: [
            "x.example", "8.8.8.8", "172.32.0.1", "192.169.0.1", "[2001:db8::1]", "local.example",
            "[64:ff9b::808:808]", "[2002:808:808::1]", "1.example",
        ])
    func `a redirect to another machine is followed`(host: String) throws {
        let answer = try Self.answer(
            302, ["Location": "https://\(host)/x"], allowsLocal: false)
        #expect(Self.isRedirect(answer))
    }

    @Test(.verifies("DL-25")) func `a web page is none of the server's images`() throws {
        for type in ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"] {
            for status in [200, 206] {
                let answer = try Self.answer(
                    status, ["Content-Type": type, "Content-Range": "bytes 10-99/100"])
                #expect(Self.isPortal(answer))
            }
        }
        for type in ["image/png", "", "application/octet-stream", "text/plain", "x-unknown/y"] {
            #expect(try Self.answer(200, ["Content-Type": type]) == .restart)
        }
        for text in [
            "<!DOCTYPE HTML>", "\u{FEFF}\n <html lang=de>", "<HTML>", "<head><meta", "<body/>",
            "<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC", "<!-- x --> <!-- y --><html>",
        ] {
            #expect(WebPage.begins(text.utf8))
        }
        for text in [
            "", "<svg>", "<?xml?><svg>", "GIF89a<html>", "{}", "<header>", "<!-- <html>",
            "<?xml?><!DOCTYPE svg PUBLIC>",
        ] {
            #expect(!WebPage.begins(text.utf8))
        }
    }

    @Test(.verifies("DL-18"), arguments: [408, 425, 429, 500, 502, 503, 599])
    func `some statuses ask for a later retry`(status: Int) throws {
        guard case .later(let error) = try Self.answer(status, ["Retry-After": "5"]) else {
            Issue.record("\(status)")
            return
        }
        #expect(error.code == .unavailable)
        #expect(error.retryAfterSeconds == 5)
    }

    @Test(.verifies("DL-17")) func `SHA-256 digests of a server are read, others are ignored`()
        throws
    {
        let bytes = Array("hello".utf8)
        let digest = Data(FileID(of: bytes).bytes).base64EncodedString()
        #expect(ContentDigest.sha256(field: "sha-256=:\(digest):") == FileID(of: bytes))
        #expect(
            ContentDigest.sha256(field: "sha-512=:AAAA:, sha-256=:\(digest):;x=1")
                == FileID(of: bytes))
        for field in ["", "sha-256", "sha-256=\(digest)", "sha-256=:AAAA:", "sha-256=:*:", ":"] {
            #expect(ContentDigest.sha256(field: field) == nil)
        }
        // In a partial response, Content-Digest is the checksum of the part.
        let headers = ["Content-Digest": "sha-256=:\(digest):"]
        #expect(ContentDigest.sha256(BoundedHTTPResponseHead(status: 200, headers)) != nil)
        #expect(ContentDigest.sha256(BoundedHTTPResponseHead(status: 206, headers)) == nil)
    }
}
