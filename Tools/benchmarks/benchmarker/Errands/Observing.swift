// The cost of observers of a long list: for an unrelated event, and for one that changes an element. Runs
// in a process of its own.

import DaybookOffline
import Foundation
import Synchronization

/// A store with two observers of a city's notes: one gets the list, one the differences.
struct Observing: Errand {
    /// Processor time of the process for one event, in microseconds, appending included.
    struct Figures: Codable {
        /// A change of a note without observers.
        var alone = 0.0
        /// An event of a type that the view does not fold.
        var unrelated = 0.0
        /// A change of a note of another city.
        var elsewhere = 0.0
        /// A change of one of the notes.
        var changed = 0.0
        /// The longest job of an actor with both observers, which an app would have on the main actor.
        var longestJob = 0.0
    }

    var log: String
    var notes: Int
    /// Events of each kind.
    var events: Int

    func perform() async throws -> Figures {
        let store = try await OfflineStore.open(at: URL(filePath: log), account: "local")
        try await fill(store)
        // As in an app that has synced; and the first figure does not include the checkpoint that is due.
        try await store.settle()
        try await store.events.checkpoint()
        var figures = Figures()
        func time(_ body: (Int) async throws -> Void) async throws -> Double {
            let before = SystemCounters.processorSeconds()
            for number in 0..<events { try await body(number) }
            return (SystemCounters.processorSeconds() - before) * 1e6 / Double(events)
        }
        func change(_ number: Int, _ city: String) async throws {
            try await store.notes.update("\(city)-\(number * 7 % notes)", "text \(number)", by: "u")
        }
        figures.alone = try await time { try await change($0, "lisbon") }
        let observers = [
            Task {
                for await notes in store.notes(in: "lisbon").changes {
                    precondition(!notes.isEmpty)
                }
            },
            Task { for await _ in store.notes(in: "lisbon").differences {} },
        ]
        // Waits until both observers have begun.
        try await Task.sleep(for: .seconds(1))
        figures.unrelated = try await time {
            try await store.cities.save("city-\($0)", by: "u")
        }
        figures.elsewhere = try await time { try await change($0, "porto") }
        figures.changed = try await time { try await change($0, "lisbon") }
        for observer in observers { observer.cancel() }
        for observer in observers { await observer.value }
        figures.longestJob = try await longestJob(store) { try await change($0, "lisbon") }
        try await store.close()
        return figures
    }

    /// Measures the processor time of the longest job of an actor with both observers, in microseconds.
    private func longestJob(
        _ store: OfflineStore, _ change: (Int) async throws -> Void
    ) async throws -> Double {
        let screen = Screen()
        let observers = [
            Task { await screen.follow(store.notes(in: "lisbon")) },
            Task { await screen.followDifferences(store.notes(in: "lisbon")) },
        ]
        try await Task.sleep(for: .seconds(1))
        for number in 0..<events { try await change(number) }
        for observer in observers { observer.cancel() }
        for observer in observers { await observer.value }
        return screen.executor.longestJob * 1e6
    }

    private func fill(_ store: OfflineStore) async throws {
        for start in stride(from: 0, to: notes, by: 1_000) {
            let drafts = try (start..<min(start + 1_000, notes)).flatMap { number in
                try ["lisbon", "porto"].map { city in
                    try EventDraft(
                        NoteAdded(
                            noteId: "\(city)-\(number)", cityId: city,
                            content: "Great coffee at number \(number)", createdBy: "u"))
                }
            }
            try await store.events.append(contentsOf: drafts)
        }
    }
}

/// A stand-in for the main actor, whose jobs cannot be measured.
private actor Screen {
    nonisolated let executor = MeasuringExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    func follow(_ notes: ViewQuery<NoteList>) async {
        for await notes in notes.changes { precondition(!notes.isEmpty) }
    }

    func followDifferences(_ notes: ViewQuery<NoteList>) async {
        for await _ in notes.differences {}
    }
}

/// An executor that measures the processor time of its longest job.
private final class MeasuringExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "screen")
    private let longest = Mutex(0.0)

    /// The processor time of the longest job, in seconds.
    var longestJob: Double { longest.withLock { $0 } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in
            let before = SystemCounters.threadProcessorSeconds()
            job.runSynchronously(on: asUnownedSerialExecutor())
            let seconds = SystemCounters.threadProcessorSeconds() - before
            longest.withLock { $0 = max($0, seconds) }
        }
    }
}
