// All event types and views of the model in one list. Spec/model/events.md.

import Daybook

/// The built-in event types and views.
public enum OfflineModel {
    /// Prefix of all built-in types.
    static let prefix = "daybook."

    /// The event types with their rules. A type with an action is shipped to the server; the types that are not
    /// listed here stay on the device.
    public static let catalogue = EventCatalogue(
        [
            .of(CitySaved.self, action: "SAVE_CITY"),
            .of(CityUnsaved.self, action: "UNSAVE_CITY"),
            .of(NoteAdded.self, action: "ADD_NOTE", beginsEntity: true).refusingDeletedNotes,
            .of(NoteUpdated.self, action: "UPDATE_NOTE").refusingDeletedNotes,
            .of(NoteDeleted.self, action: "DELETE_NOTE", endsEntity: true),
            .of(PreferencesUpdated.self, action: "UPDATE_PREFERENCES"),
            .of(CourseActivated.self, action: "ACTIVATE_COURSE"),
            .of(LessonCompleted.self, action: "COMPLETE_LESSON"),
            .of(ReviewCompleted.self, action: "COMPLETE_REVIEW"),
        ] + keptTypes
    ).reserving(prefix)

    /// The views that are folded from these events.
    public static let views: [any ListableView.Type] = [
        CitiesView.self, NotesView.self, PreferencesView.self, ProgressView.self, PagesView.self,
        ContentView.self, DownloadsView.self, SettingsView.self, LearningView.self,
        AssetsView.self, AlbumsView.self, DeviceMediaView.self, ImagesView.self,
    ]
}

extension EventPayload {
    /// Checks that an identifier is not empty before it is recorded.
    static func require(_ value: String, _ name: String) throws(EventError) {
        guard !value.isEmpty else { throw EventError(.refused, "the \(name) is empty") }
    }
}
