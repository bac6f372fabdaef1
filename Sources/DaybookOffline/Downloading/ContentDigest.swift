// The checksum in a response's head (RFC 9530), for an image whose manifest states none.
// Spec/model/downloads.md, DL-17.

import Daybook
import Foundation

/// Reads `Repr-Digest` and `Content-Digest`.
enum ContentDigest {
    /// The SHA-256 of the complete content according to the response; nil if it states none.
    static func sha256(_ head: BoundedHTTPResponseHead) -> FileID? {
        // `Content-Digest` covers this message only: the complete content in a 200, a part in a 206.
        head["Repr-Digest"].flatMap(sha256(field:))
            ?? (head.status == 200 ? head["Content-Digest"].flatMap(sha256(field:)) : nil)
    }

    /// The value of `sha-256` in a dictionary of byte sequences (RFC 8941): `sha-256=:…:`.
    static func sha256(field: String) -> FileID? {
        for member in field.split(separator: ",") {
            let parts = member.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].trimmingCharacters(in: .whitespaces) == "sha-256"
            else { continue }
            let value = parts[1].trimmingCharacters(in: .whitespaces)
            guard value.hasPrefix(":"), let end = value.dropFirst().firstIndex(of: ":"),
                let bytes = Data(base64Encoded: String(value[..<end].dropFirst())),
                bytes.count == 32
            else { return nil }
            return FileID(bytes.map { String(format: "%02x", Int($0)) }.joined())
        }
        return nil
    }
}
