// Which addresses only this machine can reach: the only ones served without tokens.

import Foundation

/// Loopback addresses.
enum Loopback {
    /// Whether a host name or address is reached by this machine only.
    static func contains(_ host: String) -> Bool {
        if host == "localhost" { return true }
        var v4 = in_addr()
        if inet_pton(AF_INET, host, &v4) == 1 {
            return UInt32(bigEndian: v4.s_addr) >> 24 == 127
        }
        return host == "::1"
    }
}
