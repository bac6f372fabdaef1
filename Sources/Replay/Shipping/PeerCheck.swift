// Compares the server and the account of each reply with those that the log has synced with. Between ReplayEffects and
// the outbox. Spec/protocol/replay.md, RPL-15 and RPL-16.

import EventSourcing
import LogFormat
import SyncWire

/// The comparison of a run's replies with the log's peer.
struct PeerCheck {
    /// The host of the transport's server.
    private let address: String?
    /// The peer on record.
    private var recorded: SyncPeer
    /// The peer on record with what a reply has added; nil if nothing was added.
    private(set) var news: SyncPeer?
    /// The other server that a read has shown, until everything was offered to it.
    private var other: SyncPeer?
    /// Whether the server may be another one than on record, until a read shows it. Also a run that reads no events
    /// sends that read.
    private(set) var isSuspect: Bool
    /// True if the outbox waits for that read: what it would send is based on events that another server lacks.
    private(set) var holdsOutbox: Bool

    /// - Parameter recorded: the log's peer.
    init(_ recorded: SyncPeer, address: String?) {
        self.recorded = recorded
        self.address = address
        isSuspect = recorded.address != nil && address != nil && recorded.address != address
        holdsOutbox = isSuspect
    }

    // MARK: The account

    /// The account to name in a request or a stream: that of the log, else the recorded one, else the empty name of a
    /// log with events of no known account.
    ///
    /// - Parameters:
    ///   - store: the log.
    ///   - token: the token of the request, whose account the transport may know.
    /// - Throws: `TransportError`: `wrongAccount`, `accountNeeded`.
    static func account(
        of store: EventStore, over transport: any Transport, token: String?
    ) throws(TransportError) -> String? {
        let (recorded, hasContent) = { (outbox: Outbox) in (outbox.peer, outbox.hasContent) }(
            store.view(Outbox.self))
        let account = store.account
        let known = transport.knownAccount(ofLog: account, token: token)
        let location = transport.serverAddress ?? "server"
        if let expected = recorded.account {
            guard known.map({ isSame($0, expected) }) ?? true else {
                throw .account(expected, at: location)
            }
            return account ?? expected
        }
        guard account == nil, hasContent, !recorded.adopts else { return account }
        guard known == nil else { throw .account("", at: location) }
        return ""
    }

    // MARK: Replies

    /// The answer to a request of the outbox or to a read, with the effect of another peer: another account refuses
    /// it, and another server makes a read that of a restored one, which may lack everything.
    ///
    /// - Parameters:
    ///   - isRead: whether the request was a read.
    ///   - isAllowed: whether a text of the server may be recorded.
    mutating func vet(
        _ answer: ReplayState.Answer, isRead: Bool, where isAllowed: (String) -> Bool
    ) -> ReplayState.Answer {
        guard case .reply(let reply) = answer else {
            if case .refused(let error) = answer { refused(error) }
            return answer
        }
        let peer = SyncPeer(
            account: reply.account, server: reply.server, address: address, where: isAllowed)
        if let expected = recorded.account, let named = peer.account,
            !Self.isSame(expected, named)
        {
            let error = TransportError.account(expected, at: address ?? "server")
            refused(error)
            return .refused(error)
        }
        let isOther = isOther(peer)
        if isRead, isOther, Self.isServers(reply) {
            other = moved(to: peer)
            isSuspect = true
            return .reply(restored(reply, peer))
        }
        if isRead, !Self.isTemporary(reply.status) { (isSuspect, holdsOutbox) = (false, false) }
        if !isRead, isOther { isSuspect = true }
        if reply.status == 200, !isOther { news = completed(by: peer) }
        return answer
    }

    private mutating func refused(_ error: TransportError) {
        guard error.isOfAccount, recorded.refusal != error.code.rawValue else { return }
        news = recorded
        news?.refusal = error.code.rawValue
    }

    /// The news, or the peer on record.
    var current: SyncPeer { news ?? recorded }

    /// Replaces the peer on record by that of the log: the app may have adopted the log's events during the run.
    mutating func setRecorded(_ peer: SyncPeer) { recorded = peer }

    /// Drops the news: the reply was none of a sync server.
    mutating func dropNews() { news = nil }

    /// Takes the peer that was recorded.
    mutating func didRecord(_ peer: SyncPeer) {
        recorded = peer
        news = nil
    }

    /// Returns the other server, to be recorded: everything was offered to it. Nil if it has no name.
    mutating func takeOther() -> SyncPeer? {
        defer { other = nil }
        (isSuspect, holdsOutbox) = (false, false)
        return other
    }

    /// Whether a server is another one than on record: by its name if both have one, otherwise by its address.
    private func isOther(_ peer: SyncPeer) -> Bool {
        if let known = recorded.server, let named = peer.server {
            return !Self.isSame(known, named)
        }
        guard let known = recorded.address, let address = peer.address else { return false }
        return !Self.isSame(known, address)
    }

    /// Whether a reply to a read may come from a sync server: a page, or the refusal of a cursor.
    private static func isServers(_ reply: TransportReply) -> Bool {
        reply.restore != nil || [200, 400, 404, 410, 422].contains(reply.status) && !reply.isHTML
    }

    /// Whether the answer to a repeated request may be another one.
    private static func isTemporary(_ status: Int) -> Bool {
        status == 401 || status == 429 || status >= 500
    }

    /// The reply of a restored server. That of the same database says itself what it lacks, unless the log has no
    /// cursor for it to tell.
    private func restored(_ reply: TransportReply, _ peer: SyncPeer) -> TransportReply {
        if reply.restore != nil, let known = recorded.server, let named = peer.server,
            Self.isSame(Self.database(known), Self.database(named))
        {
            return reply
        }
        var restored = TransportReply(status: 400, date: reply.date)
        restored.restore = ServerRestore(
            otherServer: peer.server ?? peer.address ?? "unknown")
        return restored
    }

    /// The name of a database, without the generation of its last restore.
    private static func database(_ server: String) -> Substring {
        server.prefix { $0 != "." }
    }

    private func moved(to peer: SyncPeer) -> SyncPeer {
        var peer = peer
        peer.account = peer.account ?? recorded.account
        peer.adopts = recorded.adopts && peer.account == nil
        return peer
    }

    /// The peer on record with what a reply adds; nil if it adds nothing.
    private func completed(by peer: SyncPeer) -> SyncPeer? {
        var completed = recorded
        completed.account = recorded.account ?? peer.account
        completed.server = recorded.server ?? peer.server
        // The next run need not ask this address again.
        completed.address = peer.address ?? recorded.address
        if completed.account != nil { completed.adopts = false }
        completed.refusal = nil
        return completed == recorded ? nil : completed
    }

    private static func isSame(_ one: some StringProtocol, _ other: some StringProtocol) -> Bool {
        one.utf8.elementsEqual(other.utf8)
    }
}
