// One client's connection through a HostileProxy: takes each request, does to it what the plan says,
// and hands back the reply. Runs on a thread of its own. Part of HostileProxy.

import Foundation

/// A connection from a client, and the one to the server that belongs to it.
struct ProxyConnection {
    private let core: ProxyCore
    private let client: TCPSocket
    private var plan: ProxyPlan
    private var requests: HTTPReader
    private var server: HTTPReader?

    init(_ core: ProxyCore, _ client: TCPSocket, _ plan: ProxyPlan) {
        self.core = core
        self.client = client
        self.plan = plan
        requests = HTTPReader(client)
    }

    /// Serves the connection to its end.
    mutating func serve() {
        do {
            while requests.hasNext() {
                core.count("proxy: requests")
                guard try exchange(core.isCalm ? nil : plan.next()) else { return }
            }
        } catch {
            // One side has gone. So does the other, which cannot know what became of its request.
            client.willReset()
        }
    }

    /// Carries one request and its reply.
    ///
    /// - Returns: whether the connection goes on.
    private mutating func exchange(_ deed: ProxyPlan.Deed?) throws -> Bool {
        guard let deed else { return try pass() }
        switch deed.fault {
        case .connectionRefused, .cutBeforeRequest:
            core.count(.cutBeforeRequest)
            return cut(deed)
        case .cutInRequest: return try cutRequest(deed)
        case .replyCut, .replyTruncated, .replyCorrupted, .replyDelayed:
            return try damageReply(deed)
        case .requestDoubled:
            let request = try requests.request()
            core.deliverLater(request, milliseconds: deed.delayMilliseconds)
            return try answer(with: try reply(to: request))
        case .requestOvertaken:
            let request = try requests.request()
            if core.waitUntilOvertaken() { core.count(.requestOvertaken) }
            return try answer(with: try reply(to: request))
        case .requestCorrupted:
            let request = try requests.request()
            guard let corrupted = request.corrupted(at: deed.place) else {
                return try answer(with: try reply(to: request))
            }
            core.count(.requestCorrupted)
            return try answer(with: try reply(to: corrupted))
        }
    }

    private mutating func pass() throws -> Bool {
        try answer(with: try reply(to: try requests.request()))
    }

    // MARK: Faults

    private func cut(_ deed: ProxyPlan.Deed) -> Bool {
        if deed.isReset { client.willReset() }
        return false
    }

    private mutating func cutRequest(_ deed: ProxyPlan.Deed) throws -> Bool {
        var request = try requests.head(isReply: false)
        let total = request.announcedBytes ?? request.head.count
        // At least one byte gets through, and at least one does not.
        let count = max(1, min(total - 1, Int(Double(total) * deed.place)))
        if count > request.head.count, !request.waitsToContinue {
            try requests.body(of: &request, upTo: count - request.head.count)
        }
        let server = try connected()
        try server.socket.send(request.bytes.prefix(count))
        core.count(.cutInRequest)
        if deed.isReset { server.socket.willReset() }
        return cut(deed)
    }

    private mutating func damageReply(_ deed: ProxyPlan.Deed) throws -> Bool {
        let reply = try reply(to: try requests.request())
        switch deed.fault {
        case .replyCut:
            core.count(.replyCut)
            let count = Int(Double(reply.bytes.count) * deed.place)
            try client.send(reply.bytes.prefix(count))
            if count < reply.head.count, !core.options.endsInHeaders { client.willReset() }
            return cut(deed)
        case .replyDelayed:
            core.count(.replyDelayed)
            core.wait(milliseconds: deed.delayMilliseconds)
            return try answer(with: reply)
        case .replyTruncated:
            guard let truncated = reply.truncated(to: deed.place) else {
                return try answer(with: reply)
            }
            core.count(.replyTruncated)
            return try answer(with: truncated)
        default:
            guard let corrupted = reply.corrupted(at: deed.place) else {
                return try answer(with: reply)
            }
            core.count(.replyCorrupted)
            return try answer(with: corrupted)
        }
    }

    // MARK: Both sides

    private mutating func connected() throws -> HTTPReader {
        // A server that has ended the connection meanwhile may be there again.
        if let server, !server.socket.isReadable { return server }
        do {
            let new = HTTPReader(try TCPSocket(to: core.serverPort, stop: core.stop))
            server = new
            return new
        } catch {
            core.count("proxy: server not there")
            throw error
        }
    }

    private mutating func reply(to request: HTTPMessage) throws -> HTTPMessage {
        var server = try connected()
        try server.socket.send(request.bytes)
        core.hasDelivered()
        let reply: HTTPMessage
        do { reply = try server.reply() } catch {
            core.count("proxy: server gave no reply")
            throw error
        }
        self.server = reply.isLast ? nil : server
        return reply
    }

    private func answer(with reply: HTTPMessage) throws -> Bool {
        try client.send(reply.bytes)
        return !reply.isLast
    }
}
