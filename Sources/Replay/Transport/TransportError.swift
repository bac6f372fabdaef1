// The error of this library's transports. It never contains a token, a header's value, or text from a server.
// Spec/operations/secrets.md, SEC-1.

import Foundation

/// A failure of a transport.
public struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failures. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The name or the value of a header is not what RFC 9110 allows.
        case badHeader = "bad-header"
        /// A header that the transport sets, or that would change the framing of the request.
        case reservedHeader = "reserved-header"
        /// An endpoint that is not an http or https URL with a host, or that has a user name.
        case badEndpoint = "bad-endpoint"
        /// A token, or headers of the app, would be sent over `http` to another machine, which is not
        /// allowed.
        case tokenInClear = "token-in-clear"
        /// The token belongs to another account than the log.
        case wrongAccount = "wrong-account"
        /// The log has events of no known account, which must not get into the token's account unasked.
        case accountNeeded = "account-needed"
        /// The log belongs to another API, which has the events that it has sent.
        case otherAPI = "other-api"
        /// A token that is not a valid header value.
        case badToken = "bad-token"
        /// A client certificate that cannot be opened.
        case badCertificate = "bad-certificate"
        /// A proxy whose address, user or password cannot be used.
        case badProxy = "bad-proxy"
        /// The system's HTTP client cannot present client certificates.
        case certificatesUnsupported = "certificates-unsupported"
        /// A link to another server, which must not get the token.
        case foreignPage = "foreign-page"
        /// The server's name leads to this machine or its network, which the request refuses.
        case localAddress = "local-address"
        /// A reply of more than 4 MiB.
        case replyTooLong = "reply-too-long"
        /// A reply that violates the protocol, or is not HTTP.
        case malformedReply = "malformed-reply"
        /// There was no connection, or it ended before the reply was complete.
        case connectionFailed = "connection-failed"
        /// The server sent nothing, or did not finish, within the timeout.
        case timedOut = "timed-out"
    }

    /// Whether the same request may succeed later without a change by the app or the user.
    public var isTransient: Bool {
        switch code {
        case .connectionFailed, .timedOut, .malformedReply, .replyTooLong: true
        case .badHeader, .reservedHeader, .badEndpoint, .tokenInClear, .wrongAccount,
            .accountNeeded, .otherAPI, .badToken, .badCertificate, .badProxy,
            .certificatesUnsupported,
            .foreignPage, .localAddress:
            false
        }
    }

    /// True if the app must change the endpoint: nothing is ever sent to this one.
    var isMisuse: Bool { code == .badEndpoint || code == .tokenInClear }

    /// True if the token's account is not known to be the log's.
    var isOfAccount: Bool { code == .wrongAccount || code == .accountNeeded }

    /// The kind of failure.
    public var code: Code
    /// The name of the header, the host of the server, or the option that is affected.
    public var location: String
    /// What happened, and what to do if that is not obvious.
    public var detail: String

    /// The error of a token of another account than the log's.
    ///
    /// - Parameters:
    ///   - account: the log's account; empty if the log has events of no known account.
    ///   - server: the host of the server.
    static func account(_ account: String, at server: String) -> TransportError {
        account.isEmpty
            ? TransportError(
                .accountNeeded, location: server,
                "the log has events of no known account; open it with its account, or have the "
                    + "token's account adopt them")
            : TransportError(
                .wrongAccount, location: server,
                "the token belongs to another account than the log; sign in as \(account)")
    }

    /// Creates an error. `detail` must contain neither a token nor text from a server.
    public init(_ code: Code, location: String, _ detail: String) {
        self.code = code
        self.location = location
        self.detail = detail
    }

    /// Location and detail in one line.
    public var description: String { "\(location): \(detail)" }
}

extension TransportError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }

    /// The remedy.
    public var recoverySuggestion: String? {
        switch code {
        case .badHeader, .reservedHeader: "Correct or remove the header in HTTPOptions."
        case .badEndpoint:
            "Give the server's http or https URL, with its host and without a user name or a password."
        case .tokenInClear:
            "Use an https endpoint, or set allowsTokenInClear in HTTPOptions where the network is trusted."
        case .wrongAccount: "Sign in with the account of the log."
        case .accountNeeded:
            "Open the log with its account, or call adoptUnsentEvents() to give its events to this one."
        case .otherAPI: "Name the API that the log has sent its events to, or open another log."
        case .badToken: "Sign in again."
        case .badCertificate: "Choose another certificate, or correct its password."
        case .badProxy: "Correct the proxy in HTTPOptions."
        case .certificatesUnsupported:
            "Remove the client certificate, or use Linux or an Apple system."
        case .foreignPage, .localAddress, .malformedReply, .replyTooLong:
            "Check that the endpoint is the sync server's. A sign-in page of the network may have answered "
                + "instead."
        case .connectionFailed, .timedOut: "Check the network, then try again."
        }
    }
}
