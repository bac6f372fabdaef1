// The sync protocol over PostgREST: two functions of a Supabase project, called by POST. Replies are
// converted to those of HTTPTransport. Spec/operations/supabase.md has the requests and answers in full.

import EventSourcing
import Foundation
import SyncWire

/// The transport for a Supabase project that has the functions `append_events` and `read_events`.
public final class SupabaseTransport: Transport {
    private let functions: URL
    private let apiKey: String
    private let client: BoundedHTTPClient

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - project: the project's address, `https://<reference>.supabase.co`, or its `…/rest/v1` or
    ///     `…/rest/v1/rpc`.
    ///   - apiKey: the project's publishable key. It is sent with every request, and as the token if there
    ///     is none.
    ///   - http: headers, certificate, proxy and limits, as with `HTTPTransport`.
    /// - Throws: `TransportError`: `badToken` for the key, and what `HTTPTransport` throws.
    public init(project: URL, apiKey: String, http: HTTPOptions) throws(TransportError) {
        _ = try HTTPOrigin(endpoint: project)
        try HTTPHeaders.checkToken(apiKey, location: "apikey")
        functions = Self.functionsURL(of: project)
        self.apiKey = apiKey
        client = BoundedHTTPClient(forSyncing: http, reserving: ["apikey"])
        try client.check()
    }

    /// Creates a transport with headers and a certificate. See `init(project:apiKey:http:)`.
    public convenience init(
        project: URL, apiKey: String, timeoutSeconds: Double = 30, headers: [String: String] = [:],
        certificate: ClientCertificate? = nil, allowsTokenInClear: Bool = false
    ) throws(TransportError) {
        try self.init(
            project: project, apiKey: apiKey,
            http: HTTPOptions(
                headers: headers, certificate: certificate, timeoutSeconds: timeoutSeconds,
                allowsTokenInClear: allowsTokenInClear))
    }

    /// The URL of a project's functions. The address may already contain a part of `/rest/v1/rpc`.
    private static func functionsURL(of project: URL) -> URL {
        let path = ["rest", "v1", "rpc"]
        let named = project.path.split(separator: "/").map(String.init)
        let known = path.indices.reversed().first { named.suffix($0 + 1) == path.prefix($0 + 1) }
        return path.dropFirst(known.map { $0 + 1 } ?? 0)
            .reduce(project) { $0.appending(path: $1) }
    }

    /// Calls one of the functions.
    ///
    /// - Throws: `TransportError`, also if no complete reply was received; `malformedReply` if a page
    ///   violates Spec/operations/supabase.md; `CancellationError`.
    public func send(_ call: TransportRequest, token: String?) async throws -> TransportReply {
        var body = JSONObjectWriter()
        switch call {
        case .append(let batch):
            body.appendMember("events", raw: batch)
            return try await invoke("append_events", body, token)
        case .read(let cursor):
            body.appendMember(
                "after", raw: cursor.map(JSONObjectWriter.string) ?? Array("null".utf8))
            body.appendMember("max", WireLimits.events)
            return try page(try await invoke("read_events", body, token))
        }
    }

    /// Calls the function for batches, with the parameter `offered`.
    ///
    /// - Throws: as `send(_:token:)`.
    public func offer(
        _ batch: [UInt8], token: String?, account: String?
    ) async throws -> TransportReply {
        var body = JSONObjectWriter()
        body.appendMember("events", raw: batch)
        body.appendMember("offered", raw: Array("true".utf8))
        return try await invoke("append_events", body, token)
    }

    /// The host of the project.
    public var serverAddress: String? { HTTPOrigin(functions)?.address }

    /// The token's user: the claim `sub`.
    public func knownAccount(ofLog account: String?, token: String?) -> String? {
        token.flatMap(TokenSubject.of)
    }

    private func invoke(
        _ function: String, _ body: JSONObjectWriter, _ token: String?
    ) async throws -> TransportReply {
        var request = BoundedHTTPRequest(functions.appending(path: function))
        request.set("Content-Type", "application/json")
        request.set("Accept", "application/json")
        request.set("apikey", apiKey)
        request.body = body.finished()
        var reply = try await client.send(request, token: token ?? apiKey)
        // A page has its cursor in the body, not in a `Link` header.
        reply.next = nil
        // The project has accepted the token, whose user its functions use.
        reply.account = reply.status == 200 ? token.flatMap(TokenSubject.of) : nil
        return reply
    }

    /// Extracts the array and the cursor from an answer. The array's bytes are not changed.
    private func page(_ reply: TransportReply) throws(TransportError) -> TransportReply {
        guard reply.status == 200 else { return reply }
        var page = reply
        guard let fields = try? JSONFields(reply.body), let events = fields.raw("events"),
            events.first == UInt8(ascii: "["), let next = try? fields.string("next")
        else {
            throw TransportError(
                .malformedReply, location: "read_events",
                "the answer is not {\"events\":[…],\"next\":\"…\"}; check the project's function")
        }
        page.body = events
        page.next = next
        return page
    }
}

extension SupabaseTransport: CustomReflectable {
    /// A mirror with the functions' URL and without the key.
    public var customMirror: Mirror { Mirror(self, children: ["functions": functions]) }
}
