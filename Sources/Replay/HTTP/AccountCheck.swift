// What a transport says to the server of the account whose log it ships. Used by HTTPTransport.
// Spec/protocol/sync-protocol.md, SYNC-47 to SYNC-49.

/// The account for which a transport ships and reads, as the server names it.
///
/// The server refuses a request whose token stands for another account, and the transport refuses a
/// reply for another account, so that one user's log never ends up in another one's account.
public enum AccountCheck: Hashable, Sendable {
    /// The log's own account. A log without one is not checked.
    case ofLog
    /// The server has another name for it.
    case named(String)
    /// Nothing is said and nothing is checked.
    case off

    /// The name to send for a log's account; nil: none.
    func name(for account: String?) -> String? {
        switch self {
        case .ofLog: account
        case .named(let name): name
        case .off: nil
        }
    }
}
