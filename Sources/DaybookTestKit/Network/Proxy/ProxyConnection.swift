// One client's connection through a HostileProxy. Forwards each request to the server and the reply to the
// client, with the faults of the connection's plan. Runs on its own thread.

import Foundation

/// A connection from a client, with the corresponding one to the server.
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

    /// Serves the connection until it ends.
    mutating func serve() {
        do {
            while requests.hasNext() {
                core.count("proxy: requests")
                guard try exchange(core.isCalm ? nil : plan.next()) else { return }
            }
        } catch {
            // One side has disconnected. The client must not take the end for a complete reply.
            client.resetOnClose()
        }
    }

    /// Forwards one request and its reply, with a fault if there is one.
    ///
    /// - Returns: true if the connection stays open.
    private mutating func exchange(_ fault: ProxyPlan.PlannedFault?) throws -> Bool {
        guard let fault else { return try exchangeWithoutFault() }
        switch fault.kind {
        case .connectionRefused, .cutBeforeRequest:
            core.count(.cutBeforeRequest)
            return closeConnection(fault)
        case .cutInRequest: return try truncateRequest(fault)
        case .replyCut, .replyTruncated, .replyCorrupted, .replyDelayed:
            return try damageReply(fault)
        case .requestDoubled:
            let request = try requests.readRequest()
            core.deliverLater(request, milliseconds: fault.delayMilliseconds)
            return try sendToClient(try fetchReply(to: request))
        case .requestOvertaken:
            let request = try requests.readRequest()
            if core.waitUntilOvertaken() { core.count(.requestOvertaken) }
            return try sendToClient(try fetchReply(to: request))
        case .requestCorrupted:
            let request = try requests.readRequest()
            guard let corrupted = request.corrupted(at: fault.fraction) else {
                return try sendToClient(try fetchReply(to: request))
            }
            core.count(.requestCorrupted)
            return try sendToClient(try fetchReply(to: corrupted))
        }
    }

    private mutating func exchangeWithoutFault() throws -> Bool {
        try sendToClient(try fetchReply(to: try requests.readRequest()))
    }

    // MARK: Faults

    private func closeConnection(_ fault: ProxyPlan.PlannedFault) -> Bool {
        if fault.isReset { client.resetOnClose() }
        return false
    }

    private mutating func truncateRequest(_ fault: ProxyPlan.PlannedFault) throws -> Bool {
        var request = try requests.readHead(isReply: false)
        let total = request.announcedBytes ?? request.head.count
        // At least one byte is forwarded, and at least one is not.
        let count = max(1, min(total - 1, Int(Double(total) * fault.fraction)))
        if count > request.head.count, !request.expectsContinue {
            try requests.readBody(of: &request, upTo: count - request.head.count)
        }
        let server = try connectToServer()
        try server.socket.send(request.bytes.prefix(count))
        core.count(.cutInRequest)
        if fault.isReset { server.socket.resetOnClose() }
        return closeConnection(fault)
    }

    private mutating func damageReply(_ fault: ProxyPlan.PlannedFault) throws -> Bool {
        let reply = try fetchReply(to: try requests.readRequest())
        switch fault.kind {
        case .replyCut:
            core.count(.replyCut)
            let count = Int(Double(reply.bytes.count) * fault.fraction)
            try client.send(reply.bytes.prefix(count))
            if count < reply.head.count, !core.options.endsInHeaders { client.resetOnClose() }
            return closeConnection(fault)
        case .replyDelayed:
            core.count(.replyDelayed)
            core.wait(milliseconds: fault.delayMilliseconds)
            return try sendToClient(reply)
        case .replyTruncated:
            guard let truncated = reply.truncated(to: fault.fraction) else {
                return try sendToClient(reply)
            }
            core.count(.replyTruncated)
            return try sendToClient(truncated)
        default:
            guard let corrupted = reply.corrupted(at: fault.fraction) else {
                return try sendToClient(reply)
            }
            core.count(.replyCorrupted)
            return try sendToClient(corrupted)
        }
    }

    // MARK: Forwarding

    private mutating func connectToServer() throws -> HTTPReader {
        // A readable idle connection has been closed by the server, which may have been restarted.
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

    private mutating func fetchReply(to request: HTTPMessage) throws -> HTTPMessage {
        var server = try connectToServer()
        try server.socket.send(request.bytes)
        core.countDelivery()
        let reply: HTTPMessage
        do { reply = try server.readReply() } catch {
            core.count("proxy: server gave no reply")
            throw error
        }
        self.server = reply.isLast ? nil : server
        return reply
    }

    private func sendToClient(_ reply: HTTPMessage) throws -> Bool {
        try client.send(reply.bytes)
        return !reply.isLast
    }
}
