// The server and the account that a log has synced with. Kept in the record of the cursor, since a cursor means
// something to that server and that account only. Spec/protocol/sync-records.md, OUT-11.

import EventSourcing
import LogFormat

/// The server and the account that a log syncs with, as far as they are known.
public struct SyncPeer: Hashable, Sendable {
    /// The account, as the server names it. Nil if the server names none.
    public var account: String?
    /// The name of the server's database, with the generation of its last restore. Nil if the server has none.
    public var server: String?
    /// The host of the server, with its port unless that is the scheme's default.
    public var address: String?
    /// Whether the next account that the log syncs with gets the log's events.
    public var adopts = false

    /// The code of the `TransportError` with which the last run was refused because of the account; nil after a run
    /// that was not.
    public var refusal: String?

    /// The largest size of a name or an address in bytes.
    static let nameBytesMax = 255

    /// Creates a peer of which nothing is known.
    public init() {}

    /// The peer without what a record cannot hold.
    ///
    /// - Parameter isAllowed: whether a text may be recorded.
    init(
        account: String?, server: String?, address: String?, where isAllowed: (String) -> Bool
    ) {
        func checked(_ text: String?) -> String? {
            text.flatMap { Self.isName($0) && isAllowed($0) ? $0 : nil }
        }
        self.account = checked(account)
        self.server = checked(server)
        self.address = checked(address)
    }

    private static func isName(_ text: String) -> Bool {
        1...nameBytesMax ~= text.utf8.count
    }

    /// Reads the members of a record. A member that is no text of 1 to 255 bytes counts as missing.
    init(members: [String: JSONValue]) {
        func text(_ name: String) -> String? {
            members[name]?.stringValue.flatMap { Self.isName($0) ? $0 : nil }
        }
        account = text("account")
        server = text("server")
        address = text("address")
        adopts = members["adopts"] == .bool(true)
        refusal = text("refusal")
    }

    func appendMembers(to writer: inout JSONObjectWriter) {
        if let account { writer.appendMember("account", account) }
        if let server { writer.appendMember("server", server) }
        if let address { writer.appendMember("address", address) }
        if adopts { writer.appendMember("adopts", true) }
        if let refusal { writer.appendMember("refusal", refusal) }
    }

    func encode(to writer: inout StateWriter) {
        for text in [account, server, address, refusal] {
            writer.write(text != nil)
            if let text { writer.write(text) }
        }
        writer.write(adopts)
    }

    init(_ reader: inout StateReader) throws(EventError) {
        account = try Self.text(&reader)
        server = try Self.text(&reader)
        address = try Self.text(&reader)
        refusal = try Self.text(&reader)
        adopts = try reader.bool()
    }

    private static func text(_ reader: inout StateReader) throws(EventError) -> String? {
        guard try reader.bool() else { return nil }
        let text = try reader.string()
        guard isName(text) else {
            throw reader.fault(
                "the name of a server or an account is longer than a record can hold")
        }
        return text
    }
}

extension EventStore {
    /// The server and the account that the log has synced with. The store must keep the view `Outbox`.
    public nonisolated var syncPeer: SyncPeer { view(Outbox.self).peer }

    /// Gives the events of a log without an account to the account that it syncs with next.
    ///
    /// A log that belongs to no account, and has not synced with one, may hold the events of several users of
    /// the device. So a run sends none of them to a server that names the token's account, until this call. Does
    /// nothing if the log's account is known. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for the log that all accounts share; `LogError`.
    public nonisolated(nonsending) func adoptUnsentEvents() async throws {
        guard !catalogue.isShared else {
            throw EventError(
                .refused,
                "the log in \(directory) is shared by all accounts, and its events belong to none")
        }
        var peer = syncPeer
        guard account == nil, peer.account == nil, !peer.adopts else { return }
        peer.adopts = true
        try await record(
            SyncPulled(by: incarnation, next: view(Outbox.self).cursor, peer: peer))
        try await flush()
    }
}
