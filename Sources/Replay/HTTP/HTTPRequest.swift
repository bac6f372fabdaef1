// A request, the head of its reply, and where the reply's body goes: what HTTPClient and the two
// sessions beneath it speak in.

import Foundation

/// A request without what every request of a client carries.
package struct HTTPRequest: Sendable {
    /// Where it goes.
    package var url: URL
    /// Header fields, each name once.
    package private(set) var fields: [(name: String, value: String)] = []
    /// The body: such a request is a POST, one without a GET.
    package var body: [UInt8]?

    /// Creates a request.
    package init(_ url: URL) { self.url = url }

    /// Sets a header field in place of the one of that name, whatever its case.
    package mutating func set(_ name: String, _ value: String) {
        fields.removeAll { $0.name.lowercased() == name.lowercased() }
        fields.append((name, value))
    }

    /// Sets a header field unless there is one of that name, whatever its case.
    package mutating func setDefault(_ name: String, _ value: String) {
        guard !fields.contains(where: { $0.name.lowercased() == name.lowercased() }) else { return }
        fields.append((name, value))
    }
}

/// Status and header fields of a reply.
package struct HTTPResponseHead: Sendable {
    /// The HTTP status.
    package var status: Int
    private var fields: [String: String] = [:]

    /// Creates a head.
    package init(status: Int, _ fields: [String: String] = [:]) {
        self.status = status
        for (name, value) in fields { add(name, value) }
    }

    /// Adds a field. Fields of one name count as one list (RFC 9110, section 5.3).
    package mutating func add(_ name: String, _ value: String) {
        let name = name.lowercased()
        fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }

    /// The value of a field, whatever the case of its name.
    package subscript(_ name: String) -> String? { fields[name.lowercased()] }

    /// Whether the body has no content encoding.
    package var isPlain: Bool {
        ["", "identity"].contains((self["Content-Encoding"] ?? "").lowercased())
    }
}

/// Receives a reply as it comes. All calls for one request come one after the other, on a thread
/// that may block.
package protocol ResponseBodyHandler: Sendable {
    /// Receives status and header fields, before the first byte of the body.
    ///
    /// - Returns: false to end the request here.
    func begin(_ head: HTTPResponseHead) -> Bool
    /// Receives the next bytes of the body.
    ///
    /// - Returns: false to end the request here.
    func receive(_ bytes: [UInt8]) -> Bool
}
