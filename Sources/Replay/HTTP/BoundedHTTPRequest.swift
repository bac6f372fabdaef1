// The types of BoundedHTTPClient and the two clients below it: a request, the head of its reply, and the
// handler of the reply's body.

import Foundation

/// A request without the headers that the client adds.
public struct BoundedHTTPRequest: Sendable {
    /// The URL.
    public var url: URL
    /// The header fields, each name once.
    public private(set) var fields: [(name: String, value: String)] = []
    /// The method; nil for POST with a body, and GET without one.
    public var method: RequestMethod?
    /// The body.
    public var body: [UInt8]?
    /// True if the client must not repeat the request by itself: the server would apply it twice. On Apple systems the
    /// system decides: URLSession repeats a request if a reused connection breaks, and has no option against it.
    public var isSentOnce = false
    /// True to refuse a server whose name resolves to an address of this machine or its network: the request
    /// ends with `localAddress`. On Apple systems, and through a proxy, which resolves the name, the address is
    /// not known and not checked. On Linux the exceptions of the environment's proxy (`no_proxy`) do not count for it.
    public var refusesLocalAddresses = false

    /// Creates a request.
    public init(_ url: URL) { self.url = url }

    /// Sets a header field and replaces one with that name, in upper or lower case.
    public mutating func set(_ name: String, _ value: String) {
        fields.removeAll { $0.name.lowercased() == name.lowercased() }
        fields.append((name, value))
    }

    /// Sets a header field unless there is one with that name, in upper or lower case.
    public mutating func setDefault(_ name: String, _ value: String) {
        guard !fields.contains(where: { $0.name.lowercased() == name.lowercased() }) else { return }
        fields.append((name, value))
    }
}

/// Status and header fields of a reply.
public struct BoundedHTTPResponseHead: Sendable {
    /// The HTTP status.
    public var status: Int
    /// True if the protocol itself marks the end of every body, as HTTP/2 does. Known once the reply has ended.
    public var isFramed = false
    private var fields: [String: String] = [:]

    /// Creates a head.
    public init(status: Int, _ fields: [String: String] = [:]) {
        self.status = status
        for (name, value) in fields { add(name, value) }
    }

    /// Adds a field. Fields of one name count as one list (RFC 9110, section 5.3).
    public mutating func add(_ name: String, _ value: String) {
        let name = name.lowercased()
        fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }

    /// The value of a field; the case of the name does not matter.
    public subscript(_ name: String) -> String? { fields[name.lowercased()] }

    /// Whether the body has no content encoding.
    public var isPlain: Bool {
        ["", "identity"].contains((self["Content-Encoding"] ?? "").lowercased())
    }
}

/// A receiver of a reply. All calls for one request come one after the other, on a thread that may block.
public protocol ResponseBodyHandler: Sendable {
    /// Receives status and header fields, before the first byte of the body.
    ///
    /// - Returns: false to end the request here.
    func begin(_ head: BoundedHTTPResponseHead) -> Bool
    /// Receives the next bytes of the body.
    ///
    /// - Returns: false to end the request here.
    func receive(_ bytes: [UInt8]) -> Bool
}
