// Paces pipelined requests: those that a connection has sent before it had its reply, and that were
// read together. An event loop runs its tasks until none is left before it polls, and each request is
// a handful of tasks; requests that are fed from memory, one after the other, keep it from polling,
// and no other client is accepted or read. Used by InputGate. Spec/operations/operating.md, OPS-20.

import NIOCore
import NIOPosix

/// The turns of the connections of one event loop.
final class InputTurns {
    /// The time between two turns, in which the event loop polls: at most 1,000 pipelined requests a
    /// second go through one event loop.
    private static let interval = TimeAmount.milliseconds(1)

    // Sound: each thread has a value of its own.
    nonisolated(unsafe) private static let ofThread = ThreadSpecificVariable<InputTurns>()

    private let eventLoop: any EventLoop
    private var waiting = CircularBuffer<() -> Bool>()
    private var isScheduled = false

    private init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    /// The turns of the event loop whose thread this is.
    static func current(_ eventLoop: any EventLoop) -> InputTurns {
        eventLoop.preconditionInEventLoop()
        if let turns = ofThread.currentValue { return turns }
        let turns = InputTurns(eventLoop)
        ofThread.currentValue = turns
        return turns
    }

    /// Waits for a turn after those that wait already.
    ///
    /// - Parameter body: what is done in the turn; returns false if there was nothing to do.
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
