// The queries of an app: values computed from the views, now and as they change. Those of cities are with
// their commands: `store.cities.saved(by:)`.

import Daybook

extension OfflineStore {
    /// The notes of a city, oldest first. O(notes of the city).
    public func notes(in cityId: String) -> ViewQuery<NoteList> {
        query(NotesView.self) { $0.notes(in: cityId) }
    }

    /// A note; nil if there is none with this id or it was deleted. O(1).
    public func note(_ noteId: String) -> ViewQuery<Note?> {
        query(NotesView.self) { $0[noteId] }
    }

    /// A user's settings, defaults included. O(1).
    public func preferences(for userId: String) -> ViewQuery<OfflinePreferences> {
        query(PreferencesView.self) { $0[userId] }
    }

    /// A learner's active course and progress. O(completions of the learner).
    public func progress(of userId: String) -> ViewQuery<LearnerProgress> {
        query(ProgressView.self) { $0[userId] }
    }

    /// A learner's completed lessons, sorted by course and lesson. O(n log n) for the completions of the
    /// learner.
    ///
    /// - Parameters:
    ///   - userId: the learner.
    ///   - courseId: the course; nil for all.
    public func completedLessons(
        of userId: String, course courseId: String? = nil
    ) -> ViewQuery<[CompletedLesson]> {
        query(ProgressView.self) { $0.completedLessons(of: userId, course: courseId) }
    }

    /// The number of events that the server has not settled. O(1).
    public var outboxCount: ViewQuery<Int> { events.outboxCount }

    /// Makes a report on the log for a support mail. See `EventStore.diagnosticReport(progress:)`.
    public func diagnosticReport(
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> DiagnosticReport {
        try await events.diagnosticReport(progress: progress)
    }

    /// How the store syncs now. See `EventStore.syncStatus`.
    public var syncStatus: ViewQuery<SyncStatus> { events.syncStatus }

    /// Queries a view for a value, now and as it changes. See `EventStore.query(_:_:)`.
    public func query<View: Projection, Value: Equatable & Sendable>(
        _ view: View.Type, _ answer: @escaping @Sendable (View) -> Value
    ) -> ViewQuery<Value> {
        events.query(view, answer)
    }

    /// The states of a view: the current one, and a new one after each event that it folds.
    public func changes<View: Projection>(of view: View.Type) -> ViewChanges<View> {
        events.changes(of: view)
    }

    /// The states of a view: the current one, and a new one after each change of its value.
    public func changes<View: Projection & Equatable>(of view: View.Type) -> ViewChanges<View> {
        events.changes(of: view)
    }

    /// Returns the durable events after a position, from the disk and then live: at the end the iteration
    /// waits for new events. `recordedEvents(after:)` ends instead. See `EventSequence`.
    public func events(after position: Position) -> EventSequence {
        events.events(after: position)
    }

    /// Returns the durable events after a position, up to the last one at the beginning of the iteration. On
    /// an empty log the iteration ends at once. See `EventSequence`.
    ///
    /// - Parameter position: the position before the first event to return; `zero` for all.
    public func recordedEvents(after position: Position = .zero) -> EventSequence {
        events.recordedEvents(after: position)
    }
}
