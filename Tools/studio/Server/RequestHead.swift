// The head of a request of HTTP/1.1 (RFC 9112), as far as a browser and curl need it.

import Foundation

/// The request line and the fields of a request.
struct RequestHead: Sendable {
    let method: String
    /// The path as it was sent, with its percent signs.
    let path: String
    let query: String
    /// The size of the body.
    let bodyBytes: Int
    /// True if another request may follow on the connection.
    let keepsOpen: Bool
    private let fields: [(name: String, value: String)]

    /// Parses a head, without the empty line at its end.
    ///
    /// - Throws: `APIError` for a head that is not one of HTTP/1.x, or that announces a body without its size.
    init(_ bytes: some Collection<UInt8>) throws(APIError) {
        var lines = String(decoding: bytes, as: UTF8.self)
            .split(separator: "\r\n" as Character, omittingEmptySubsequences: false)[...]
        let parts = (lines.popFirst() ?? "").split(
            separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1].hasPrefix("/"), !parts[0].isEmpty else {
            throw APIError.badRequest("the first line is not that of a request")
        }
        guard parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else {
            throw APIError(505, "badVersion", "this server answers HTTP/1.1 only")
        }
        var fields: [(name: String, value: String)] = []
        for line in lines {
            let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, !pair[0].isEmpty, !pair[0].contains(where: \.isWhitespace) else {
                throw APIError.badRequest("a line of the head is not a field")
            }
            fields.append((pair[0].lowercased(), pair[1].trimmingCharacters(in: .whitespaces)))
        }
        let target = parts[1].split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        method = String(parts[0])
        path = String(target[0])
        query = target.count > 1 ? String(target[1]) : ""
        self.fields = fields
        bodyBytes = try Self.bodyBytes(fields)
        let isClosing = Self.values("connection", fields).contains {
            $0.lowercased().contains("close")
        }
        keepsOpen = parts[2] == "HTTP/1.1" && !isClosing
    }

    private static func bodyBytes(
        _ fields: [(name: String, value: String)]
    ) throws(APIError) -> Int {
        guard values("transfer-encoding", fields).isEmpty else {
            throw APIError(411, "lengthRequired", "a body needs a Content-Length")
        }
        let lengths = values("content-length", fields)
        guard !lengths.isEmpty else { return 0 }
        guard lengths.count == 1, lengths[0].utf8.allSatisfy({ (48...57).contains($0) }),
            !lengths[0].isEmpty
        else { throw APIError.badRequest("Content-Length is not a number") }
        // More digits than an `Int` has are too many as well.
        return Int(lengths[0]) ?? .max
    }

    private static func values(
        _ name: String, _ fields: [(name: String, value: String)]
    ) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    /// The values of a field, by its name in lower case.
    func values(_ name: String) -> [String] { Self.values(name, fields) }
}
