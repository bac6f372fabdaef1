// The works. The preparation is the same for any number of repetitions, so the difference of two counts is
// the work alone. Each work checks its result, because a work that does nothing would seem cheap.
// Spec/benchmarks.

import DaybookOffline
import LogStorage

/// Work on a hot path.
enum HotWork: String, CaseIterable {
    /// Appends new events, one durable commit for each.
    case append
    /// Appends new events in one batch.
    case bulk
    /// Reads every line as bytes.
    case scan
    /// Opens the log without a checkpoint: all views from all events.
    case rebuild
    /// Opens the log with a checkpoint and a tail of events after it.
    case open
    case verify
    /// Looks up ids that the log does not have.
    case lookup
    /// Appends new events in one batch and ships them to a server that accepts everything.
    case ship

    /// Fills a log with `events` events, then does the work `times` times.
    func perform(on log: WorkLog, events: Int, times: Int) async throws {
        try await log.fill(events)
        switch self {
        case .append:
            let store = try await log.openCopy()
            for _ in 0..<times * events {
                try await store.events.append(contentsOf: [try log.draft()])
            }
        case .bulk:
            let store = try await log.openCopy()
            for _ in 0..<times { try await store.events.append(contentsOf: try log.drafts(events)) }
        case .ship:
            let store = try await log.openCopy()
            for _ in 0..<times {
                try await store.events.append(contentsOf: try log.drafts(events))
                try await log.ship(store, events)
            }
        case .lookup:
            let store = try await log.openCopy()
            for _ in 0..<times * events {
                guard try await store.events.event(id: store.events.newID()) == nil else {
                    throw HotPathFailure("an id is known")
                }
            }
        case .scan:
            for _ in 0..<times {
                var count = 0
                try LogReader(WorkLog.path, fileSystem: log.disk).forEachLine { _, _ in
                    count += 1
                    return true
                }
                guard count >= events else { throw HotPathFailure("lines are missing") }
            }
        case .verify:
            for _ in 0..<times {
                let summary = try LogVerifier(WorkLog.path, fileSystem: log.disk)
                    .verify { _, _ in nil }
                guard summary.events >= events, summary.findings.isEmpty else {
                    throw HotPathFailure("the log is damaged")
                }
            }
        case .rebuild:
            log.removeCheckpoints()
            try await open(log, times)
        case .open:
            try await log.appendTail()
            try await open(log, times)
        }
    }

    private func open(_ log: WorkLog, _ times: Int) async throws {
        for _ in 0..<times {
            guard try await log.openCopy().view(NotesView.self).counts.live > 0 else {
                throw HotPathFailure("the views are empty")
            }
        }
    }
}

/// A work with a wrong result.
struct HotPathFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
