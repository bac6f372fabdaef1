// The addresses of this machine and of its network, to which a server on the internet must not direct a
// request: a login page, or a device that trusts its network. Spec/model/downloads.md, DL-12.

import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

extension HTTPOrigin {
    /// Whether the host is this machine or a machine of its network, by its name or address alone: loopback,
    /// private, shared (RFC 6598), link-local and multicast addresses, in any notation that a resolver
    /// takes for an address, and the names that only a local network resolves. Other names are not resolved:
    /// `BoundedHTTPRequest.refusesLocalAddresses`.
    public var isLocal: Bool {
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return Self.isLocalAddress(name)
            ?? (!name.contains(".")
                || [".localhost", ".local", ".internal", ".home.arpa", ".lan"]
                    .contains(where: name.hasSuffix))
    }

    /// Whether an address is that of this machine or of a local network; nil for a name.
    static func isLocalAddress(_ address: String) -> Bool? {
        var four = in_addr()
        // Takes 127.1, 0x7f000001 and 2130706433, as resolvers do.
        if inet_aton(address, &four) != 0 { return isLocal(UInt32(bigEndian: four.s_addr)) }
        var six = in6_addr()
        guard inet_pton(AF_INET6, String(address.prefix { $0 != "%" }), &six) == 1 else {
            return nil
        }
        return withUnsafeBytes(of: six) { isLocal(Array($0)) }
    }

    /// Whether an IPv6 address is that of this machine or of a local network.
    private static func isLocal(_ bytes: [UInt8]) -> Bool {
        // 6to4 (RFC 3056): 2002:a.b.c.d::/48. Local-use translation (RFC 8215): 64:ff9b:1::/48, whatever it has.
        if bytes.starts(with: [0x20, 0x02]) {
            return isLocal(bytes[2..<6].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        }
        if bytes.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 1]) { return true }
        // An IPv4 address: ::a.b.c.d with ::1 and ::, mapped, or translated (RFC 6052).
        let zeros = [UInt8](repeating: 0, count: 10)
        let prefixes = [
            zeros + [0, 0], zeros + [0xFF, 0xFF], [0, 0x64, 0xFF, 0x9B] + zeros.prefix(8),
        ]
        if prefixes.contains(where: { bytes.starts(with: $0) }) {
            return isLocal(bytes.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        }
        // fc00::/7, fe80::/10 with the former fec0::/10, ff00::/8.
        return bytes[0] & 0xFE == 0xFC || bytes[0] == 0xFF
            || bytes[0] == 0xFE && bytes[1] & 0x80 == 0x80
    }

    /// Whether an IPv4 address is that of this machine or of a local network.
    private static func isLocal(_ address: UInt32) -> Bool {
        let networks: [(UInt32, bits: UInt32)] = [
            (0x0000_0000, 8), (0x0A00_0000, 8), (0x6440_0000, 10), (0x7F00_0000, 8),
            (0xA9FE_0000, 16), (0xAC10_0000, 12), (0xC0A8_0000, 16), (0xE000_0000, 3),
        ]
        return networks.contains { address >> (32 - $1) == $0 >> (32 - $1) }
    }
}
