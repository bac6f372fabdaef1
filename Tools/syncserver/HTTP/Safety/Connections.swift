// The connections that are open. Each has a ConnectionGuard that tells what it does; when there are
// too many, one makes room, by the rule of ConnectionTable. Spec/operations/operating.md, OPS-6.

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

    /// Connections that are open.
    var count: Int { state.withLock { $0.table.count } }

    /// Enters a new connection, and closes one if there are too many.
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

    /// Notes what a connection does.
    func set(_ channel: any Channel, _ phase: ConnectionTable<ObjectIdentifier>.Phase) {
        state.withLock { $0.table.set(ObjectIdentifier(channel), phase) }
    }

    /// Notes for which account a connection is used.
    func set(_ channel: any Channel, account: String) {
        state.withLock { $0.table.set(ObjectIdentifier(channel), account: account) }
    }

    /// Forgets a connection that is closed.
    func close(_ channel: any Channel) {
        state.withLock { state in
            state.table.close(ObjectIdentifier(channel))
            state.channels[ObjectIdentifier(channel)] = nil
        }
    }
}
