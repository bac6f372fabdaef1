// The HTTP header that names the account of a request, so that a log and a token of different accounts
// are not mixed. Spec/protocol/sync-protocol.md, SYNC-47 to SYNC-49.

import EventSourcing

/// The header `Daybook-Account`: the account's name in percent-encoded UTF-8.
package enum AccountHeader {
    /// The header's name.
    package static let name = "Daybook-Account"

    /// The header's value for an account: all bytes but RFC 3986's unreserved ones are encoded.
    package static func value(for account: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var value: [UInt8] = []
        for byte in account.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                value.append(byte)
            default:
                value += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: value, as: UTF8.self)
    }

    /// The account that a value names. A `%` without two digits is kept: such a value names no account.
    package static func account(of value: String) -> String {
        String(decoding: percentDecoded(Array(value.utf8)), as: UTF8.self)
    }

    /// Decodes percent-encoded bytes. A `%` without two digits is kept. O(n).
    package static func percentDecoded(_ bytes: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let high = JSONText.hexadecimalDigit(bytes[index + 1]),
                let low = JSONText.hexadecimalDigit(bytes[index + 2])
            {
                decoded.append(UInt8(high << 4 | low))
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded
    }
}
