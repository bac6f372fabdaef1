// The notes of one city, now and as they change.

import EventSourcing

/// The notes of a city.
public struct NotesQuery: Sendable {
    private let store: EventStore
    private let cityId: String

    package init(_ store: EventStore, city cityId: String) {
        self.store = store
        self.cityId = cityId
    }

    /// The notes as they are now, oldest first. O(notes of the city).
    public var current: [Note] { store.view(NotesView.self).notes(in: cityId) }

    /// The notes as they are now, then again whenever they are others. Whoever takes them slowly
    /// gets the newest only. Ends when the store is closed.
    public var changes: AsyncStream<[Note]> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task {
                var last: [Note]?
                for await _ in await store.commits() {
                    let notes = current
                    guard notes != last else { continue }
                    last = notes
                    continuation.yield(notes)
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
