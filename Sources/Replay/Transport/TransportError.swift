// What a transport of this library refuses, and what the network refuses it: what, where, what to
// do; never a token, a header's value, or what a server wrote. Spec/operations/secrets.md, SEC-1.

import Foundation

/// A failure of a transport.
public struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The name or the value of a header is not what RFC 9110 allows.
        case badHeader = "bad-header"
        /// A header that the transport sets by itself, or that would change the request's frame.
        case reservedHeader = "reserved-header"
        /// An endpoint that is no http or https URL with a host, or that has a user name.
        case badEndpoint = "bad-endpoint"
        /// A token, or headers of the app, that would go over `http` to another machine, which was
        /// not allowed.
        case tokenInClear = "token-in-clear"
        /// The token is for another account than the log.
        case wrongAccount = "wrong-account"
        /// A token that cannot stand in a header.
        case badToken = "bad-token"
        /// A client certificate that cannot be opened.
        case badCertificate = "bad-certificate"
        /// A proxy whose address, user or password cannot be used.
        case badProxy = "bad-proxy"
        /// The system's HTTP client cannot present client certificates.
        case certificatesUnsupported = "certificates-unsupported"
        /// A link to another server, to which the token must not go.
        case foreignPage = "foreign-page"
        /// A reply of more than 4 MiB.
        case replyTooLong = "reply-too-long"
        /// A reply that is not what the contract says, or not HTTP.
        case malformedReply = "malformed-reply"
        /// There was no connection, or it ended before the reply did.
        case connectionFailed = "connection-failed"
        /// The server was silent, or did not finish in time.
        case timedOut = "timed-out"
    }

    /// Whether the same request may succeed later with nothing changed on this side.
    public var isTransient: Bool {
        switch code {
        case .connectionFailed, .timedOut, .malformedReply, .replyTooLong: true
        case .badHeader, .reservedHeader, .badEndpoint, .tokenInClear, .wrongAccount, .badToken,
            .badCertificate, .badProxy, .certificatesUnsupported, .foreignPage:
            false
        }
    }

    /// True if the app must change the endpoint: nothing goes to this one.
    var isMisuse: Bool { code == .badEndpoint || code == .tokenInClear }

    /// The kind of failure.
    public var code: Code
    /// What it is about: the name of a header, the host of a server.
    public var place: String
    /// What happened, with what to do where that is not plain.
    public var detail: String

    /// Creates an error. `detail` must hold no token and nothing that a server wrote.
    public init(_ code: Code, place: String, _ detail: String) {
        self.code = code
        self.place = place
        self.detail = detail
    }

    /// Place and detail in one line.
    public var description: String { "\(place): \(detail)" }
}

extension TransportError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .badHeader, .reservedHeader: "Correct or remove the header in HTTPOptions."
        case .badEndpoint:
            "Give the server's http or https URL, with its host and without a user name or a password."
        case .tokenInClear:
            "Use an https endpoint, or set allowsTokenInClear in HTTPOptions where the network is trusted."
        case .wrongAccount: "Sign in with the account of the log."
        case .badToken: "Sign in again."
        case .badCertificate: "Choose another certificate, or correct its password."
        case .badProxy: "Correct the proxy in HTTPOptions."
        case .certificatesUnsupported:
            "Remove the client certificate, or use Linux or an Apple system."
        case .foreignPage, .malformedReply, .replyTooLong:
            "Check that the endpoint is the sync server's. A sign-in page of the network may have answered "
                + "instead."
        case .connectionFailed, .timedOut: "Check the network, then try again."
        }
    }
}
