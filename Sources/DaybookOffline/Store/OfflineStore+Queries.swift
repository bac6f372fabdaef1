// What an app shows: values that follow from the views, now and as they change. Those about cities
// stand beside the commands: `store.cities.saved(by:)`.

import Daybook

extension OfflineStore {
    /// The notes of a city, oldest first. O(notes of the city).
    public func notes(in cityId: String) -> ViewQuery<NoteList> {
        query(NotesView.self) { $0.notes(in: cityId) }
    }

    /// A note; nil while there is none with this id, and once it was deleted. O(1).
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

    /// How many actions the server has not settled. O(1).
    public var outboxCount: ViewQuery<Int> { events.outboxCount }

    /// Asks a view for a value, now and as it changes. See `EventStore.query(_:_:)`.
    public func query<View: Projection, Value: Equatable & Sendable>(
        _ view: View.Type, _ answer: @escaping @Sendable (View) -> Value
    ) -> ViewQuery<Value> {
        events.query(view, answer)
    }

    /// The states of a view: the present one, and a new one whenever it has folded something.
    public func changes<View: Projection>(of view: View.Type) -> ViewChanges<View> {
        events.changes(of: view)
    }

    /// The states of a view: the present one, and a new one whenever it has become another.
    public func changes<View: Projection & Equatable>(of view: View.Type) -> ViewChanges<View> {
        events.changes(of: view)
    }

    /// The durable events behind a position, from the disk and then live: where there is none yet,
    /// iterating waits. `recordedEvents(after:)` ends instead. See `EventSequence`.
    public func events(after position: Position) -> EventSequence {
        events.events(after: position)
    }

    /// The durable events behind a position, up to the last one that there is when the iteration
    /// begins. Ends there; on an empty log at once. See `EventSequence`.
    ///
    /// - Parameter position: the last event that is not wanted any more; `zero` for all.
    public func recordedEvents(after position: Position = .zero) -> EventSequence {
        events.recordedEvents(after: position)
    }
}
