// The report and the status of a run, folded from what has happened. Spec/protocol/replay.md, RPL-7;
// Spec/protocol/triggers.md, STA-1 to STA-5.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

/// What a run has done so far, and what it does now.
struct SyncProgress {
    /// Something that happened in a run.
    enum Fact {
        /// An exchange has ended with this message; nil if nothing is wrong.
        case answered(ReplayState.Answer, message: String?)
        /// The message of the report is this one; nil if nothing is wrong any more.
        case message(String?, SyncFailure = .failed)
        /// The transport refuses to send.
        case refused(TransportError)
        /// Why the resolver left a conflict. Later answers replace the report's message, but not this one.
        case resolverFailed(String)
        /// The last exchange failed if there is a message, and otherwise succeeded at this time.
        case ended(at: Int64)
        case succeeded(at: Int64)
        case failed
        /// Outcomes were recorded.
        case settled(applied: Int, duplicate: Int, rejected: Int, conflict: Int)
        /// Events of the server were recorded.
        case received(Received)
        case unusable(Int)
        /// A page of an app's own API was recorded: with new states, and elements that wait.
        case read(new: Int, waiting: Int)
        /// All sources of an app's own API were read, or one of them could not be. Later answers do not replace this
        /// message.
        case statesRead(failure: String?)
        case resolved
        case tookNewName
        /// Events were shipped again after a restore.
        case recovered(LossRecovery.Counts)
        /// The recovery from a restore is complete. With the number of lines that compaction has removed.
        case restored(ServerRestore, compacted: Int)
        /// The number of events that a parked event or a conflict holds, at the end of the run.
        case held(Int)
        /// The number of the account's events that are still to be read, by the server's last answer.
        case behind(Int?)
        /// The run waits.
        case waiting(SyncStatus.Obstacle?, nextAttempt: Int64?)
    }

    private(set) var report = SyncReport()
    /// What the run does now, as apps see it.
    private var activity: SyncActivity
    private var resolverMessage: String?
    private var readMessage: String?
    /// Why the last request failed; nil after a success.
    private(set) var failure: SyncStatus.Obstacle?

    /// - Parameter store: its last run has left what it knew.
    init(_ store: EventStore) {
        activity = store.transient(SyncActivity.self)[true] ?? SyncActivity()
        (activity.obstacle, activity.nextAttempt) = (nil, nil)
    }

    mutating func fold(_ fact: Fact) {
        switch fact {
        case .answered(let answer, let message):
            report.message = message
            report.failure = message == nil ? nil : SyncFailure(answer)
            report.refusal = if case .refused(let error) = answer { error } else { nil }
        case .message(let message, let failure):
            report.message = message
            report.failure = message == nil ? nil : failure
        case .refused(let error): report.refusal = error
        case .resolverFailed(let message): resolverMessage = message
        case .statesRead(let message): readMessage = message
        case .ended(let time): fold(report.message == nil ? .succeeded(at: time) : .failed)
        case .succeeded(let time):
            failure = nil
            activity.lastSuccess = Timestamp(milliseconds: time)
        case .failed:
            guard let message = report.message else { return }
            failure = SyncStatus.Obstacle(kind: .failed, message: message)
        case .behind(let count): activity.behind = count
        case .waiting(let obstacle, let time):
            activity.obstacle = obstacle
            activity.nextAttempt = time.map { Timestamp(milliseconds: $0) }
        default: count(fact)
        }
    }

    /// Folds a fact that is about numbers.
    private mutating func count(_ fact: Fact) {
        switch fact {
        case .settled(let applied, let duplicate, let rejected, let conflict):
            report.applied += applied
            report.duplicate += duplicate
            report.rejected += rejected
            report.conflict += conflict
        case .received(let received):
            report.received += received.new.count
            report.unusable += received.clashing.count
            report.refused += received.refused.count
        case .unusable(let count): report.unusable += count
        case .read(let new, let waiting):
            report.received += new
            report.waiting += waiting
        case .resolved:
            report.resolved += 1
            resolverMessage = nil
        case .held(let count): report.held = count
        case .tookNewName: report.tookNewName = true
        case .recovered(let counts):
            report.shippedAgain += counts.applied
            report.notAcceptedPositions += counts.notAccepted
        case .restored(let restore, let compacted):
            report.noteRestore(restore)
            report.compacted += compacted
        default: break
        }
    }

    /// The report now.
    func snapshot(pending: Int, isBehind: Bool, underWay: Set<UUID>) -> SyncReport {
        var report = report
        report.pending = pending
        report.isBehind = isBehind
        report.underWay = underWay
        if report.message == nil, let resolverMessage {
            report.message = resolverMessage
            report.failure = .unresolved
        }
        if report.message == nil, let readMessage {
            report.message = readMessage
            report.failure = .failed
        }
        return report
    }

    /// Publishes what the run does now: `EventStore.syncStatus`.
    func publish(
        in store: EventStore, connection: SyncStatus.Connection, isExchanging: Bool
    ) {
        SyncActivity.update(in: store) {
            $0 = activity
            $0.connection = connection
            $0.isExchanging = isExchanging
        }
    }

    /// The reason why the run has ended before everything was exchanged; nil if it was cancelled.
    func endReason(of result: Result<SyncReport, any Error>) -> SyncStatus.Obstacle? {
        switch result {
        case .success(let report):
            guard !Task.isCancelled else { return nil }
            return report.message.map {
                SyncStatus.Obstacle(kind: report.failure ?? .ended, message: $0)
            }
        case .failure(is CancellationError): return nil
        case .failure(let error):
            return SyncStatus.Obstacle(kind: .ended, message: RequestTask.message(of: error))
        }
    }
}
