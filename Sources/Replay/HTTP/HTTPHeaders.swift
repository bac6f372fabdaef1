// The headers that an app adds to every request, for proxies. Checked once, so that no name or value can
// inject a line, and none replaces a header of the transport. Spec/operations/secrets.md, SEC-17.

/// Checked headers.
package struct HTTPHeaders: Sendable, CustomReflectable, CustomStringConvertible {
    let fields: [(name: String, value: String)]

    /// The names of headers that only the transport sets, or that frame the message.
    private static let reserved: Set<String> = [
        "accept", "accept-encoding", "authorization", "connection", "content-encoding",
        "content-length", "content-type", AccountHeader.name.lowercased(), "expect", "host",
        "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// Checks headers.
    ///
    /// - Parameters:
    ///   - headers: names and values.
    ///   - reservedNames: further names, in lower case, that this transport sets.
    /// - Throws: `TransportError` with `badHeader` or `reservedHeader`, with the name of the header
    ///   if it can be printed, and never its value.
    init(
        _ headers: [String: String], reserving reservedNames: Set<String> = []
    ) throws(TransportError) {
        var lowerNames: Set<String> = []
        for (name, value) in headers {
            guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte) else {
                throw TransportError(
                    .badHeader, location: "headers",
                    "a name may have letters, digits and !#$%&'*+-.^_`|~ only (RFC 9110, 5.6.2)")
            }
            let lower = name.lowercased()
            guard !Self.reserved.contains(lower), !reservedNames.contains(lower) else {
                throw TransportError(
                    .reservedHeader, location: name, "only the transport may set this header")
            }
            guard lowerNames.insert(lower).inserted else {
                throw TransportError(.badHeader, location: name, "this header is given twice")
            }
            guard Self.isValue(value) else {
                throw TransportError(
                    .badHeader, location: name,
                    "a value may have visible ASCII, and spaces and tabs within (RFC 9110, 5.5)")
            }
        }
        // Sorted, so that the same headers make the same request.
        fields = headers.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Checks a bearer token: visible ASCII and nothing else.
    package static func checkToken(_ token: String, location: String) throws(TransportError) {
        guard !token.isEmpty, token.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw TransportError(
                .badToken, location: location, "it is empty, or has bytes other than visible ASCII")
        }
    }

    /// The names of the headers.
    package var description: String { "HTTPHeaders(\(fields.map(\.name).joined(separator: ", ")))" }

    /// A mirror with the names only: a value may be a password for a proxy.
    package var customMirror: Mirror { Mirror(self, children: ["names": fields.map(\.name)]) }

    /// Whether a value cannot inject a line: the check for values that are not the app's.
    static func isSafe(_ value: String) -> Bool {
        value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: Array("!#$%&'*+-.^_`|~".utf8).contains(byte)
        }
    }

    private static func isValue(_ value: String) -> Bool {
        guard value.utf8.allSatisfy({ 0x20...0x7E ~= $0 || $0 == 0x09 }) else { return false }
        let blanks: [UInt8] = [0x20, 0x09]
        return ![value.utf8.first, value.utf8.last].contains { $0.map(blanks.contains) ?? false }
    }
}
