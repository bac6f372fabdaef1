// The loopback addresses: the only ones that a server without tokens serves.
// Spec/operations/operating.md, OPS-2 and OPS-23.

import Foundation

/// Loopback addresses.
enum Loopback {
    /// True if only this machine can reach a host name or address.
    static func contains(_ host: String) -> Bool {
        if host.lowercased() == "localhost" { return true }
        var v4 = in_addr()
        if inet_pton(AF_INET, host, &v4) == 1 {
            return UInt32(bigEndian: v4.s_addr) >> 24 == 127
        }
        return host == "::1"
    }

    /// True if `host`, `host:port`, `[host]` or `[host]:port` names this machine.
    static func contains(authority: String) -> Bool {
        let isBracketed = authority.hasPrefix("[")
        guard
            let end = isBracketed
                ? authority.firstIndex(of: "]")
                : authority.firstIndex(of: ":") ?? authority.endIndex
        else { return false }
        let host = isBracketed ? authority[..<end].dropFirst() : authority[..<end]
        let port = isBracketed ? authority[end...].dropFirst() : authority[end...]
        let isPort =
            port.isEmpty
            || (port.first == ":" && port.dropFirst().allSatisfy { ("0"..."9").contains($0) })
        return isPort && isBracketed == host.contains(":") && contains(String(host))
    }

    /// True if the header Origin names a page of this machine.
    static func contains(origin: String) -> Bool {
        for scheme in ["http://", "https://"] where origin.lowercased().hasPrefix(scheme) {
            return contains(authority: String(origin.dropFirst(scheme.count)))
        }
        return false
    }
}
