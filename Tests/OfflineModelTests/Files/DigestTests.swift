// The two hash functions, tested with their official vectors and the system's tools.

import Cryptography
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

/// The output of a system tool for a file.
private func digest(_ tool: String, _ bytes: [UInt8]) throws -> String {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let file = folder.appending("bytes")
    try Data(bytes).write(to: file)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [tool, file.path]
    let output = Pipe.betweenStarts()
    process.standardOutput = output
    try process.runAlone()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return String(text.prefix { $0 != " " })
}

private func md5(_ bytes: [UInt8]) -> String { Hexadecimal.text(of: MD5.hash(bytes)) }

@Suite(.verifies("FILE-1")) struct DigestTests {
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `SHA-256 matches the vectors of FIPS 180-4`(text: String, digest: String) {
        #expect(FileID(of: Array(text.utf8)).description == digest)
    }

    @Test(arguments: [
        ("", "d41d8cd98f00b204e9800998ecf8427e"), ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "57edf4a22be3c955ac49da2e2107b67a"
        ),
    ])
    func `MD5 matches the vectors of RFC 1321`(text: String, digest: String) {
        #expect(md5(Array(text.utf8)) == digest)
    }

    @Test func `lengths around every block boundary agree with the system's tools`() throws {
        var choices = Choices(seed: Property.defaultSeed)
        for count in [1, 55, 56, 63, 64, 65, 119, 120, 127, 128, 129, 100_003] {
            let bytes = choices.bytes(count: count)
            #expect(try FileID(of: bytes).description == digest("sha256sum", bytes))
            #expect(
                try md5(bytes) == digest("md5sum", bytes))
        }
    }

    @Test func `bytes in any portions give the hash of the whole`() throws {
        try Property.check("SHA-256 of portions = SHA-256 of the whole", runs: 200) { choices in
            let bytes = choices.bytes(count: choices.int(in: 0...300))
            var hash = SHA256()
            var rest = bytes[...]
            while !rest.isEmpty {
                let portion = Array(rest.prefix(choices.int(in: 1...130)))
                hash.update(portion.span.bytes)
                rest = rest.dropFirst(portion.count)
            }
            try #require(hash.finished() == FileID(of: bytes).bytes)
        }
    }

    @Test func `an id is parsed from its digits and from nothing else`() {
        let id = FileID(of: [1, 2, 3])
        #expect(FileID(id.description) == id)
        #expect(FileID(id.description.uppercased()) == nil)
        #expect(FileID(String(id.description.dropLast())) == nil)
        #expect(FileID(id.description + "0") == nil)
        #expect(FileID("") == nil)
        #expect(FileID(String(repeating: "é", count: 32)) == nil)
        let ids = (0..<20).map { FileID(of: [$0]) }
        #expect(ids.sorted().map(\.description) == ids.map(\.description).sorted())
    }
}
