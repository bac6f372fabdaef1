// The mailbox of a run: everything that happens arrives here and is handled one after the other.

import EventSourcing
import Foundation
import LogFormat

/// The signals of a run.
struct RunMailbox {
    enum Signal: Sendable {
        case answered(RequestTask.Exchange)
        case failed(any Error)
        case timer(Int)
        /// A wait was interrupted, or the store was closed: the run ends.
        case stopped
        case committed
        case trigger(Replayer.Trigger)
        case stream(Following.Signal)
    }

    /// Sends a signal; may be called from any thread.
    let mail: AsyncStream<Signal>.Continuation
    private var signals: AsyncStream<Signal>.Iterator
    private let sleep: @Sendable (Duration) async throws -> Void
    private var timers = 0
    private var senders: [Task<Void, Never>] = []

    init(sleep: @escaping @Sendable (Duration) async throws -> Void) {
        let (stream, mail) = AsyncStream.makeStream(of: Signal.self)
        self.mail = mail
        self.sleep = sleep
        signals = stream.makeAsyncIterator()
    }

    /// Starts the tasks that forward signals. Every run gets the closing of the store; a run without end
    /// gets commits and triggers, too.
    mutating func listen(
        to store: EventStore, _ triggers: AsyncStream<Replayer.Trigger>?, isLive: Bool
    ) async {
        let commits = await store.commits()
        senders.append(
            Task { [mail] in
                for await _ in commits where isLive { mail.yield(.committed) }
                // The store was closed.
                mail.yield(.stopped)
            })
        guard let triggers else { return }
        senders.append(
            Task { [mail] in for await trigger in triggers { mail.yield(.trigger(trigger)) } })
    }

    /// The next signal, or `timer` at a time; nil if the mailbox is closed or the task is cancelled.
    mutating func next(until time: Int64?, now: Int64) async -> Signal? {
        timers += 1
        let timer = time.map { startTimer(timers, after: max(1, $0 - now)) }
        defer { timer?.cancel() }
        while let signal = await signals.next() {
            // The timer of an earlier wait may have fired before it was cancelled.
            if case .timer(let number) = signal, number != timers { continue }
            return signal
        }
        return nil
    }

    private func startTimer(_ number: Int, after milliseconds: Int64) -> Task<Void, Never> {
        Task { [mail, sleep] in
            do {
                try await sleep(.milliseconds(milliseconds))
                mail.yield(.timer(number))
            } catch {
                if !Task.isCancelled { mail.yield(.stopped) }
            }
        }
    }

    /// Stops forwarding signals.
    func stopListening() { for task in senders { task.cancel() } }

    /// Closes the mailbox.
    func close() { mail.finish() }
}
