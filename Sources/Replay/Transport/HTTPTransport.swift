// The sync protocol: POST {endpoint} with a batch, GET {endpoint} for pages. HTTPClient carries the
// requests. Spec/sync-protocol.md.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The transport of the sync protocol.
public final class HTTPTransport: Transport {
    private let endpoint: URL
    private let client: HTTPClient

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - endpoint: where batches are posted: the server's `…/v1/events`.
    ///   - timeoutSeconds: how long the server may be silent.
    public init(endpoint: URL, timeoutSeconds: Double = 30) {
        self.endpoint = endpoint
        client = HTTPClient(timeoutSeconds: timeoutSeconds)
    }

    /// Creates a transport for a server behind a proxy that wants to know who comes.
    ///
    /// - Parameters:
    ///   - endpoint: where batches are posted: the server's `…/v1/events`.
    ///   - timeoutSeconds: how long the server may be silent.
    ///   - headers: go with every request. Visible ASCII; never those that the transport sets by
    ///     itself, such as `Authorization`, `Content-Type`, `Content-Length` and `Host`.
    ///   - certificate: for a server that asks for a client certificate. Apple systems only.
    /// - Throws: `TransportError`: `badHeader`, `reservedHeader`, `badCertificate`;
    ///   `certificatesUnsupported` on Linux.
    public init(
        endpoint: URL, timeoutSeconds: Double = 30, headers: [String: String],
        certificate: ClientCertificate? = nil
    ) throws(TransportError) {
        self.endpoint = endpoint
        client = try HTTPClient(
            timeoutSeconds: timeoutSeconds, headers: HTTPHeaders(headers), certificate: certificate)
    }

    /// Carries one request.
    ///
    /// - Throws: `TransportError`; `URLError` where no complete answer came.
    public func send(_ call: TransportRequest, token: String?) async throws -> TransportReply {
        var request = URLRequest(url: endpoint)
        switch call {
        case .append(let batch):
            request.httpMethod = "POST"
            request.setValue(
                "application/cloudevents-batch+json", forHTTPHeaderField: "Content-Type")
            request.setValue("application/json", forHTTPHeaderField: "Accept")
            request.httpBody = Data(batch)
        case .read(let cursor):
            // A link to another server is not followed: the token would go with it.
            if let cursor { request.url = try HTTPOrigin.page(cursor, from: endpoint) }
            request.setValue("application/cloudevents-batch+json", forHTTPHeaderField: "Accept")
        }
        return try await client.send(request, token: token)
    }
}
