// Who looks on while jobs are worked on. Between the meters and the app's screens.
// Spec/downloads.md, DL-20.

import EventSourcing
import Foundation
import OfflineModel
import Synchronization

/// Tells subscribers how far each job has come.
final class ProgressHub: Sendable {
    private struct State {
        var meters: [String: DownloadMeter] = [:]
        var subscribers: [String: [UUID: Subscriber]] = [:]
    }

    private struct Subscriber {
        var continuation: AsyncStream<DownloadJob>.Continuation
        /// What it was told last: nobody is told the same twice.
        var last: DownloadJob?
    }

    private let store: EventStore
    private let state = Mutex(State())

    init(_ store: EventStore) { self.store = store }

    /// A job is worked on from now on, or, with nil, is not.
    func set(_ meter: DownloadMeter?, for jobId: String) {
        state.withLock { $0.meters[jobId] = meter }
        tell(jobId)
    }

    /// The present numbers of a job that is worked on.
    func numbers(_ jobId: String) -> DownloadNumbers? {
        state.withLock { $0.meters[jobId] }?.numbers
    }

    /// A job as it is now; nil if there is none.
    func job(_ jobId: String) -> DownloadJob? {
        guard let job = store.view(DownloadsView.self)[jobId] else { return nil }
        guard job.status == .downloading, let numbers = numbers(jobId) else { return job }
        return job.with(numbers)
    }

    /// The numbers of a job have changed.
    func tell(_ jobId: String) {
        state.withLock { state in
            guard let subscribers = state.subscribers[jobId] else { return }
            guard var job = store.view(DownloadsView.self)[jobId] else { return }
            if job.status == .downloading, let meter = state.meters[jobId] {
                job = job.with(meter.numbers)
            }
            // Told inside, so that the newest is told last.
            for (id, subscriber) in subscribers where subscriber.last != job {
                state.subscribers[jobId]?[id]?.last = job
                subscriber.continuation.yield(job)
            }
        }
    }

    /// A job over time, its present state first. Ends when it is removed or the store is closed.
    func changes(of jobId: String) -> AsyncStream<DownloadJob> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadJob.self, bufferingPolicy: .bufferingNewest(1))
        let id = UUID()
        state.withLock {
            $0.subscribers[jobId, default: [:]][id] = Subscriber(continuation: continuation)
        }
        let states = store.query(DownloadsView.self) { $0[jobId] }.changes
        let following = Task { [weak self] in
            for await state in states {
                guard state != nil, let self else { break }
                self.tell(jobId)
            }
            continuation.finish()
        }
        continuation.onTermination = { [weak self] _ in
            following.cancel()
            self?.state.withLock { state in
                state.subscribers[jobId]?[id] = nil
                if state.subscribers[jobId]?.isEmpty ?? false { state.subscribers[jobId] = nil }
            }
        }
        return stream
    }
}
