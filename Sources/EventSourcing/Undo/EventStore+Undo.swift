// Undoes and redoes this device's own changes by compensating events. Spec/model/undo.md.

import Foundation
import LogFormat
import LogStorage

extension EventStore {
    /// Undoes a change of this device: records an event that sets what the views would have without it. Durable on
    /// return.
    ///
    /// ```swift
    /// let done = try await store.append(GoalSet(habit: "reading", minutes: 30))
    /// try await store.undo(done.id)
    /// try await store.redo(done.id)   // as before the undo
    /// ```
    ///
    /// The event that undoes another has its time. So it replaces the event and nothing newer, also where a newer
    /// change of another device arrives later. It is shipped like any event.
    ///
    /// - Parameter id: the id of the event, also after a redo.
    /// - Returns: the event that undoes it.
    /// - Throws: `UndoError` if the event cannot be undone, with the reason; then nothing is recorded. What
    ///   `append(_:durability:)` throws, and what the type's own inverse throws.
    /// - Complexity: O(events after the newest checkpoint that is older than the event).
    @discardableResult
    public nonisolated func undo(_ id: UUID) async throws -> Appended {
        try await compensate(id, isRedo: false)
    }

    /// Redoes a change of this device that was undone: records an event that sets again what it has set. Durable on
    /// return.
    ///
    /// - Parameter id: the id of the change that was undone.
    /// - Returns: the event that redoes it.
    /// - Throws: as `undo(_:)`.
    /// - Complexity: O(events after the change).
    @discardableResult
    public nonisolated func redo(_ id: UUID) async throws -> Appended {
        try await compensate(id, isRedo: true)
    }

    /// The attempts to compute the event while others are recorded. The last one is made on the store's queue, where
    /// appends wait for it.
    private static let freeAttempts = 3

    private nonisolated func compensate(_ id: UUID, isRedo: Bool) async throws -> Appended {
        struct Moved: Error {}
        for _ in 0..<Self.freeAttempts {
            let computed = try await compensation(isRedo)
            let (draft, lwwTimestamp) = try await BlockingWork.run { try computed.draft(for: id) }
            do {
                return try await enqueueAppend(.durable) { store in
                    try store.flush()
                    guard store.lastDurable == computed.through else { throw Moved() }
                    return try store.prepare([draft], replacing: { _ in lwwTimestamp })
                }[0]
            } catch is Moved {
                try Task.checkCancellation()
            }
        }
        return try await enqueueAppend(.durable) { store in
            let (draft, lwwTimestamp) = try store.compensation(isRedo).draft(for: id)
            return try store.prepare([draft], replacing: { _ in lwwTimestamp })
        }[0]
    }

    private func compensation(_ isRedo: Bool) throws -> Compensation {
        try checkOpen()
        try flush()
        let states = CheckpointSlots(log.directory, fileSystem: environment.fileSystem).usable()
            .filter { $0.logID == log.id }.flatMap(\.states)
        return Compensation(
            log: log, catalogue: catalogue, views: views.frozen(), states: states,
            through: lastDurable, isRedo: isRedo)
    }
}
