// An open stream of the server: its task, and the events that it has brought. Spec/protocol/push.md.

import Foundation
import Telemetry

/// A stream of the account's events.
struct PushedStream: Sendable {
    private let task: Task<Void, Never>
    private let events: PushedEvents

    /// Opens a stream.
    ///
    /// - Parameters:
    ///   - cursor: the log's cursor.
    ///   - signal: passes a signal to the run.
    init(
        _ number: Int, _ transport: any FollowingTransport, after cursor: String?, token: String?,
        account: String?, _ instruments: Instruments,
        signal: @escaping @Sendable (Following.Signal) -> Void
    ) {
        let events = PushedEvents(after: cursor)
        self.events = events
        task = Task {
            let end: StreamSchedule.End
            do {
                let result = try await transport.follow(
                    after: cursor, token: token, account: account
                ) {
                    switch $0 {
                    case .opened:
                        signal(.opened(number))
                        return true
                    case .event(let line, let next):
                        instruments.count(.receivedBytes, line.count)
                        switch events.append(line, next: next) {
                        case .first: signal(.received(number))
                        case .later: break
                        case .full: return false
                        }
                        return true
                    }
                }
                switch result {
                case .ended: end = .wasOpen(hadEvents: false)
                case .refused(let status, let seconds):
                    end = .refused(status: status, retryAfterSeconds: seconds)
                }
            } catch let error as TransportError where error.code == .timedOut {
                end = .silent
            } catch { end = .failed }
            signal(.ended(number, end))
        }
    }

    /// Removes the oldest events that wait, as a page.
    func dequeuePage() -> ReplayState.Page? { events.dequeuePage() }

    /// Ends the stream.
    func close() { task.cancel() }

    /// Waits until the task of the stream has ended.
    func finish() async { await task.value }
}

/// The stream of a run: performs what `Following` decides.
struct StreamDriver {
    private let transport: any FollowingTransport
    private let replayer: Replayer
    private let signal: @Sendable (Following.Signal) -> Void
    private var machine: Following
    private var stream: PushedStream?

    /// - Parameter signal: passes a signal to the run.
    /// - Returns: nil if the transport has no stream, or if the run does not follow one.
    init?(_ replayer: Replayer, signal: @escaping @Sendable (Following.Signal) -> Void) {
        guard replayer.options.reads, replayer.options.follows,
            let transport = replayer.transport as? any FollowingTransport
        else { return nil }
        self.transport = transport
        self.replayer = replayer
        self.signal = signal
        machine = Following(
            pollMilliseconds: replayer.options.readMilliseconds
                ?? StreamSchedule.pollMilliseconds)
    }

    /// How the run learns of new events.
    var connection: SyncStatus.Connection { machine.connection }

    /// The time at which a stream without a byte counts as withheld; nil if none is being opened.
    var deadline: Int64? { machine.deadline }

    /// Handles an input.
    ///
    /// - Parameters:
    ///   - cursor: the log's cursor, after which a stream is opened.
    ///   - token: the token of the run, if there is one.
    ///   - account: the account to name if a stream is opened.
    /// - Returns: the effects, of which those on the stream are performed.
    mutating func handle(
        _ input: Following.Input, after cursor: String?, token: String?, account: String?,
        _ moment: ReplayState.Moment
    ) -> [Following.Effect] {
        let effects = machine.handle(input, moment)
        for effect in effects {
            switch effect {
            case .open(let number):
                stream = PushedStream(
                    number, transport, after: cursor, token: token,
                    account: account, replayer.instruments, signal: signal)
            case .close:
                stream?.close()
                stream = nil
            case .read, .cancelReads: break
            }
        }
        return effects
    }

    /// Removes the oldest events that wait, as a page.
    func dequeuePage() -> ReplayState.Page? { stream?.dequeuePage() }

    /// Ends the stream, and waits until its task has ended.
    func finish() async {
        stream?.close()
        await stream?.finish()
    }
}
