// The open connections. ConnectionGuard reports the phase of each; when there are too many, one is
// closed, by the rule of ConnectionTable. Spec/operations/operating.md, OPS-6.

import Foundation
import NIOCore
import SyncServerAdmission
import Synchronization

/// The open connections of a server.
final class Connections: Sendable {
    private struct Client {
        let channel: any Channel
        /// The permission of the last request that had one.
        var permission: Permission?
    }

    private struct State {
        var table: ConnectionTable<ObjectIdentifier>
        var clients: [ObjectIdentifier: Client] = [:]
    }

    private let metrics: ServerMetrics
    private let state: Mutex<State>

    init(atMost countMax: Int, metrics: ServerMetrics) {
        self.metrics = metrics
        state = Mutex(State(table: ConnectionTable(countMax: countMax)))
    }

    /// The number of open connections.
    var count: Int { state.withLock { $0.table.count } }

    /// Inserts a new connection, and closes one if there are too many.
    func open(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        let holder = ConnectionHolder(ipAddress: channel.remoteAddress?.ipAddress)
        let victim = state.withLock { state -> (any Channel)? in
            state.clients[key] = Client(channel: channel)
            return state.table.open(key, holder: holder)
                .flatMap { state.clients.removeValue(forKey: $0)?.channel }
        }
        metrics.countConnection()
        if let victim {
            metrics.countCut(.tooMany)
            victim.close(promise: nil)
        }
    }

    /// Sets the phase of a connection.
    func set(_ channel: any Channel, _ phase: ConnectionTable<ObjectIdentifier>.Phase) {
        state.withLock { $0.table.set(ObjectIdentifier(channel), phase) }
    }

    /// Sets the permission of a connection's request, for whose account the connection is counted.
    func set(_ channel: any Channel, _ permission: Permission) {
        let key = ObjectIdentifier(channel)
        state.withLock { state in
            state.table.set(key, account: permission.credential.account)
            state.clients[key]?.permission = permission
        }
    }

    /// Resets the connections on which a reply is being sent to a client whose token has been withdrawn. What
    /// this process and the system have not sent yet is discarded. The other requests of the token ask by
    /// themselves, and get 401.
    func closeWithdrawn() {
        let withdrawn = state.withLock { state in
            state.clients.compactMap { key, client in
                client.permission?.holds == false && state.table.isReplying(key)
                    ? client.channel : nil
            }
        }
        for channel in withdrawn {
            metrics.countCut(.tokenWithdrawn)
            // Otherwise the system would send megabytes after the end.
            let reset = linger(l_onoff: 1, l_linger: 0)
            guard let socket = channel as? any SocketOptionProvider else {
                channel.close(promise: nil)
                continue
            }
            socket.setSoLinger(reset).whenComplete { _ in channel.close(promise: nil) }
        }
    }

    /// Removes a closed connection.
    func close(_ channel: any Channel) {
        state.withLock { state in
            state.table.close(ObjectIdentifier(channel))
            state.clients[ObjectIdentifier(channel)] = nil
        }
    }
}
