// The account in the requests of HTTPTransport. Spec/protocol/sync-protocol.md, SYNC-47 to SYNC-51.

/// The account for which a transport ships and reads, as the server names it.
///
/// The server refuses a request whose token belongs to another account, and the transport refuses a reply
/// for another account, so that a user's events never get into another user's account.
public enum AccountCheck: Hashable, Sendable {
    /// The log's own account. For a log without one, a server that names the token's account refuses requests once
    /// the log has events, until the account is known or adopts them (SYNC-51).
    case ofLog
    /// The server's own name for the account.
    case named(String)
    /// No account is sent, and none is checked.
    case off

    /// The name to send for a log's account; nil to send none.
    ///
    /// - Parameter account: empty if the log has events of no known account.
    func name(for account: String?) -> String? {
        switch self {
        case .ofLog: account
        case .named(let name): name
        case .off: nil
        }
    }
}
