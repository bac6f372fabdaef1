// Paces pipelined requests, which were read together. An event loop runs all its tasks before it polls,
// and each request is several tasks: a long run of requests from memory would keep it from polling, so
// that no other client would be accepted or read. Spec/operations/operating.md, OPS-20.

import NIOCore
import NIOPosix

/// The turns of the connections of one event loop.
final class InputTurns {
    /// The time between two turns, in which the event loop polls. It bounds one event loop to 1,000
    /// pipelined requests a second.
    private static let interval = TimeAmount.milliseconds(1)

    // Safe, because each thread has a value of its own.
    nonisolated(unsafe) private static let ofThread = ThreadSpecificVariable<InputTurns>()

    private let eventLoop: any EventLoop
    private var waiting = CircularBuffer<() -> Bool>()
    private var isScheduled = false

    private init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    /// The turns of the current thread's event loop.
    static func current(_ eventLoop: any EventLoop) -> InputTurns {
        eventLoop.preconditionInEventLoop()
        if let turns = ofThread.currentValue { return turns }
        let turns = InputTurns(eventLoop)
        ofThread.currentValue = turns
        return turns
    }

    /// Appends a turn after those that wait.
    ///
    /// - Parameter body: the work of the turn; returns false if there was nothing to do.
    func append(_ body: @escaping () -> Bool) {
        waiting.append(body)
        schedule()
    }

    private func schedule() {
        guard !isScheduled, !waiting.isEmpty else { return }
        isScheduled = true
        let box = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(in: Self.interval) {
            let turns = box.value
            turns.isScheduled = false
            while let body = turns.waiting.popFirst(), !body() {}
            turns.schedule()
        }
    }
}
