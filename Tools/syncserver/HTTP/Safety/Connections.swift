// The open connections. ConnectionGuard reports the phase of each; when there are too many, one is
// closed, by the rule of ConnectionTable. Spec/operations/operating.md, OPS-6.

import NIOCore
import SyncServerAdmission
import Synchronization

/// The open connections of a server.
final class Connections: Sendable {
    private struct State {
        var table: ConnectionTable<ObjectIdentifier>
        var channels: [ObjectIdentifier: any Channel] = [:]
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
            state.channels[key] = channel
            return state.table.open(key, holder: holder)
                .flatMap { state.channels.removeValue(forKey: $0) }
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

    /// Sets the account that a connection is counted for.
    func set(_ channel: any Channel, account: String) {
        state.withLock { $0.table.set(ObjectIdentifier(channel), account: account) }
    }

    /// Removes a closed connection.
    func close(_ channel: any Channel) {
        state.withLock { state in
            state.table.close(ObjectIdentifier(channel))
            state.channels[ObjectIdentifier(channel)] = nil
        }
    }
}
