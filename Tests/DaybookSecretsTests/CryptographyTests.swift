// The cryptography of the sealed file, against official test vectors. Spec/operations/secrets.md, SEC-5.

import Cryptography
import DaybookTestKit
import TestSupport
import Testing

/// The bytes of hexadecimal digits.
private func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
}

@Suite(.verifies("SEC-5")) struct CryptographyTests {
    @Test(arguments: [
        (
            String(repeating: "0b", count: 20), "4869205468657265",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            String(repeating: "aa", count: 131),
            "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048"
                + "617368204b6579204669727374",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `HMAC with SHA-256 is that of RFC 4231`(key: String, message: String, code: String) {
        #expect(HMAC.sha256(bytes(message), key: bytes(key)) == bytes(code))
    }

    @Test func `HKDF with SHA-256 is that of RFC 5869`() {
        let derived = HKDF.sha256(bytes(String(repeating: "0b", count: 22)), info: [], count: 42)
        #expect(
            derived
                == bytes(
                    "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                        + "9d201395faa4b61a96c8"))
    }

    /// Test cases 13 to 16 of the specification of GCM by McGrew and Viega.
    @Test(arguments: [
        (
            String(repeating: "0", count: 64), String(repeating: "0", count: 24), "", "",
            "530f8afbc74536b9a963b4f1c4cb738b"
        ),
        (
            String(repeating: "0", count: 64), String(repeating: "0", count: 24), "",
            String(repeating: "0", count: 32),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
        ),
        (
            "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
                + "76fc6ece0f4e1768cddf8853bb2d551b"
        ),
    ])
    func `AES-256-GCM is that of its specification`(
        key: String, nonce: String, header: String, plaintext: String, sealed: String
    ) {
        let key = SecretBytes(bytes(key))
        let (nonce, header) = (bytes(nonce), bytes(header))
        #expect(
            AESGCM.seal(bytes(plaintext), header: header, key: key, nonce: nonce)
                == bytes(sealed))
        #expect(
            AESGCM.open(bytes(sealed), header: header, key: key, nonce: nonce)
                == bytes(plaintext))
    }

    @Test func `sealed bytes are opened, and not after any change`() throws {
        try Property.check("open(seal(x)) = x", runs: 300) { choices in
            let key = SecretBytes(choices.bytes(count: 32))
            let nonce = choices.bytes(count: 12)
            let header = choices.bytes(count: choices.int(in: 0...40))
            let plaintext = choices.bytes(count: choices.int(in: 0...200))
            let sealed = try #require(
                AESGCM.seal(plaintext, header: header, key: key, nonce: nonce))
            try #require(
                AESGCM.open(sealed, header: header, key: key, nonce: nonce) == plaintext)
            var changed = sealed
            changed[choices.int(in: 0...sealed.count - 1)] ^= 1 << UInt8(choices.int(in: 0...7))
            try #require(AESGCM.open(changed, header: header, key: key, nonce: nonce) == nil)
            try #require(
                AESGCM.open(sealed, header: header + [0], key: key, nonce: nonce) == nil)
            try #require(
                AESGCM.open(
                    Array(sealed.dropLast(choices.int(in: 1...sealed.count))), header: header,
                    key: key, nonce: nonce) == nil)
        }
    }

    @Test func `a key or a nonce of another length seals and opens nothing`() {
        for (key, nonce) in [(31, 12), (33, 12), (32, 11), (32, 13), (0, 0)] {
            let key = SecretBytes([UInt8](repeating: 7, count: key))
            let nonce = [UInt8](repeating: 7, count: nonce)
            #expect(AESGCM.seal([1], header: [], key: key, nonce: nonce) == nil)
            #expect(
                AESGCM.open(
                    [UInt8](repeating: 0, count: 40), header: [], key: key, nonce: nonce) == nil)
        }
    }
}
